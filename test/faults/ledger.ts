// What the client of a server that is killed may rely on: every attempt and every outcome, and the promises that an outcome
// alone can already break. It outlives the server, so the checker can hold the server to it.

import type { Answered, Unanswered } from './http.ts'
import type { Facts } from './rules.ts'

/** What the answer to an identification says of the event, with either kind of key. */
export interface Answer {
  readonly requestId: string
  readonly visitorId: string
  readonly visitorFound: boolean
  readonly confidence: number
  readonly firstSeenAt: string
  readonly lastSeenAt: string
  readonly timestamp: string
}

/** One visit: sent once or, with a nonce, more often, always with the same bytes. */
export interface Attempt {
  readonly number: number
  /** null: sent once only, and if no answer comes there may be an event or not. */
  readonly nonce: string | null
  readonly key: 'public' | 'secret'
  readonly device: number
  readonly facts: Facts
  readonly headers: Readonly<Record<string, string>>
  /** Emptied when the attempt needs no repeat any more. */
  body: string
  answer: Answer | null
  /** Of a 202: accepted, so it must become an event. */
  pendingId: string | null
  firsts: number
  readonly history: string[]
}

/** A broken promise: the id at fault, and all that is known of it. */
export interface Violation {
  readonly id: string
  readonly what: string
  readonly history: readonly string[]
}

export type Ledger = ReturnType<typeof openLedger>

const HISTORY_MAX = 40

const nameOf = ({ nonce, number }: Attempt): string => nonce ?? `attempt ${number}`

export function openLedger() {
  const attempts: Attempt[] = []
  const byId = new Map<string, Attempt>()
  let violation: Violation | null = null
  const counts = { answered: 0, replayed: 0, pending: 0, refused: 0, refusedRepeats: 0, unknown: 0 }
  let epoch = 0
  let told: (() => void)[] = []

  function violate(id: string, what: string, history: readonly string[]): void {
    violation ??= { id, what, history }
    tellAll()
  }

  function tellAll(): void {
    const waiting = told
    told = []
    for (const tell of waiting) tell()
  }

  function takeId(attempt: Attempt, requestId: string): void {
    const owner = byId.get(requestId)
    if (owner === undefined) byId.set(requestId, attempt)
    else if (owner !== attempt)
      violate(requestId, `answered to ${nameOf(owner)} and to ${nameOf(attempt)}`, attempt.history)
  }

  function takeAnswer(attempt: Attempt, body: Answer, replayed: boolean): void {
    const { requestId, visitorId, visitorFound, confidence, firstSeenAt, lastSeenAt, timestamp } = body
    const answer = { requestId, visitorId, visitorFound, confidence, firstSeenAt, lastSeenAt, timestamp }
    note(attempt, `200 ${requestId} ${visitorId} found=${visitorFound}${replayed ? ' replayed' : ''}`)
    takeId(attempt, requestId)
    if (attempt.firsts > 1) violate(requestId, 'a repeat of its nonce was answered as a first', attempt.history)
    const promised = attempt.answer?.requestId ?? requestId
    if (promised !== requestId) violate(promised, `its nonce was answered with ${requestId} later`, attempt.history)
    if (attempt.answer !== null && JSON.stringify(attempt.answer) !== JSON.stringify(answer)) {
      violate(requestId, `a repeat of its nonce was answered differently: ${JSON.stringify(answer)}`, attempt.history)
    }
    attempt.answer ??= answer
  }

  function note(attempt: Attempt, text: string): void {
    const line = `epoch ${epoch}: ${text}`
    const { history } = attempt
    if (history.length < HISTORY_MAX && history.at(-1) !== line) history.push(line)
  }

  function takeSuccess(attempt: Attempt, { headers, text }: Answered): void {
    const replayed = headers['idempotent-replayed'] === 'true'
    counts.answered++
    if (replayed) counts.replayed++
    else attempt.firsts++
    takeAnswer(attempt, JSON.parse(text) as Answer, replayed)
    tellAll()
  }

  return {
    attempts,
    counts,
    violate,
    nameOf,
    /** The event of an attempt that got no answer, or only 202. */
    found: (attempt: Attempt, event: Answer) => takeAnswer(attempt, event, true),
    violation: () => violation,
    /** Resolves as soon as a client has its next answer, or a promise is broken. */
    nextAnswer: () => new Promise<void>((resolve) => told.push(resolve)),
    attemptOf: (requestId: string) => byId.get(requestId) ?? null,
    /** Marks in the histories that the server was started again. */
    nextEpoch() {
      epoch++
    },
    add(attempt: Omit<Attempt, 'answer' | 'pendingId' | 'firsts' | 'history'>): Attempt {
      const added = { ...attempt, answer: null, pendingId: null, firsts: 0, history: [] }
      attempts.push(added)
      return added
    },
    record(attempt: Attempt, outcome: Answered | Unanswered): void {
      if ('reason' in outcome) {
        if (outcome.reason === 'ECONNREFUSED') return
        counts.unknown++
        note(attempt, `unknown: ${outcome.reason}`)
        return
      }
      const { status, text } = outcome
      if (status === 200) takeSuccess(attempt, outcome)
      else if (status === 202) {
        const { requestId } = JSON.parse(text) as { requestId: string }
        counts.pending++
        note(attempt, `202 ${requestId}`)
        takeId(attempt, requestId)
        // Where nobody remembers the nonce yet, a repeat is told an id of its own. It leads to the first event or to none; that
        // it is no second event is what the list is checked for.
        if (attempt.answer === null) attempt.pendingId ??= requestId
      } else {
        const isRepeat = attempt.history.length > 0
        note(attempt, `${status} ${text.slice(0, 200)}`)
        // A repeat asks for the event of the first, which may be nowhere but in a store that is down.
        if (status === 503) counts[isRepeat ? 'refusedRepeats' : 'refused']++
        else violate(nameOf(attempt), `an identification was answered with ${status}`, attempt.history)
      }
    },
  }
}
