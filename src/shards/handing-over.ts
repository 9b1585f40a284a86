// Identifications from one shard to another and their answers: those of a turn go over in one message, the texts as they are and the
// bodies in one piece of memory. As calls of a line each of them would be packed, copied and taken apart, at twice the price. The other
// shard serves a part of them in each turn, so that not all wait for the same stage at once (D240).

import { IDENTIFY_BODY_BYTES_MAX } from '../domain/identify.ts'
import type { HandedBack, HandedOver, HandOver } from '../ingress/hand-over.ts'
import { Unavailable } from '../lib/failures.ts'
import { openInFlight } from '../lib/in-flight.ts'
import type { Line } from '../lib/line.ts'

export interface HandingOver {
  /** Its body need not outlive the call. */
  readonly handOver: HandOver
  /** Whether answers of the other shard are still to come. */
  isWaiting(): boolean
  /** Whether calls of the other shard are still to be served. */
  isBehind(): boolean
  /** Fails what is under way and what comes later. */
  end(): void
}

/** A call without its body, whose bytes follow those of the calls before it. */
type Sent = readonly [
  id: number,
  bodyBytes: number,
  key: string,
  address: string,
  hopsBefore: number,
  isFirstParty: boolean,
  cookieToken: string | null,
  trace: string | null,
  evidence: readonly string[],
  bodyHash: number,
]
/** Status 0: it was not answered, for the reason in place of the body. */
type Returned = readonly [
  id: number,
  status: number,
  body: string,
  headers: HandedBack['headers'],
  commonHeaders: HandedBack['commonHeaders'],
]

interface Calls {
  readonly calls: readonly Sent[]
  readonly bodies: Uint8Array
}

interface Heard {
  readonly id: number
  readonly call: HandedOver
}

/** Names of casts. */
const CALLS = 'identify'
const ANSWERS = 'identified'
/** Of one message; what does not fit goes in the next. */
const BODIES_BYTES_MAX = 2 * IDENTIFY_BODY_BYTES_MAX
const FAILED = 0

const gone = () => new Unavailable('the other thread is gone')

/** Of all that another shard waits for half are served in a turn: the other half is on its way to the disk and back meanwhile. */
const SHARE_SERVED = 0.5
/** Turns that take fewer cost more for each. */
const SERVED_MIN = 32

export interface Whens {
  /** When what a turn brought for the other shard is sent. */
  readonly calls: (act: () => void) => void
  /** When answers are. */
  readonly answers: (act: () => void) => void
  /** When the next calls are served: behind the turn that has taken those before. */
  readonly next: (act: () => void) => void
}

export function openHandingOver(line: Pick<Line, 'cast' | 'hear'>, serve: HandOver, when: Whens): HandingOver {
  const waiting = openInFlight<number, (outcome: HandedBack | Error) => void>((id) => id)
  const bodies = Buffer.allocUnsafeSlow(BODIES_BYTES_MAX)
  let used = 0
  let calls: Sent[] = []
  let answers: Returned[] = []
  let ids = 0
  let ended = false
  /** Calls of the other shard that are still to be served. */
  const heard: Heard[] = []
  /** Served calls that were not answered yet. */
  let inside = 0

  function sendCalls(): void {
    if (calls.length === 0) return
    const sent = new Uint8Array(bodies.buffer.slice(0, used))
    // Who sleeps while its own decisions are being stored takes a few along with those that come until then.
    line.cast(CALLS, { calls, bodies: sent } satisfies Calls, [sent.buffer], calls.length >= SERVED_MIN)
    calls = []
    used = 0
  }

  function sendAnswers(): void {
    line.cast(ANSWERS, answers)
    answers = []
  }

  function giveBack(answer: Returned): void {
    inside--
    if (answers.length === 0) when.answers(sendAnswers)
    answers.push(answer)
  }

  function serveOne({ id, call }: Heard): void {
    serve(call, (outcome) =>
      giveBack(
        outcome instanceof Error
          ? [id, FAILED, outcome.message, [], undefined]
          : [id, outcome.status, outcome.body, outcome.headers, outcome.commonHeaders],
      ),
    )
  }

  function serveSome(): void {
    const some = heard.splice(0, Math.max(SERVED_MIN, Math.ceil(SHARE_SERVED * (heard.length + inside))))
    inside += some.length
    for (const one of some) serveOne(one)
    if (heard.length > 0) when.next(serveSome)
  }

  line.hear(CALLS, ({ calls, bodies }: Calls) => {
    if (heard.length === 0) when.next(serveSome)
    let at = 0
    for (const [
      id,
      bodyBytes,
      key,
      address,
      hopsBefore,
      isFirstParty,
      cookieToken,
      trace,
      evidence,
      bodyHash,
    ] of calls) {
      const body = bodies.subarray(at, at + bodyBytes)
      at += bodyBytes
      heard.push({
        id,
        call: { key, address, hopsBefore, isFirstParty, cookieToken, trace, evidence, body, bodyHash },
      })
    }
  })

  line.hear(ANSWERS, (message: readonly Returned[]) => {
    for (const [id, status, body, headers, commonHeaders] of message) {
      const answer = waiting.take(id)
      if (status === FAILED) answer?.(new Error(body))
      else answer?.(commonHeaders === undefined ? { status, headers, body } : { status, headers, body, commonHeaders })
    }
  })

  return {
    handOver({ key, address, hopsBefore, isFirstParty, cookieToken, trace, evidence, body, bodyHash }, answer) {
      if (ended) {
        answer(gone())
        return
      }
      if (used + body.length > BODIES_BYTES_MAX) sendCalls()
      if (calls.length === 0) when.calls(sendCalls)
      bodies.set(body, used)
      used += body.length
      ids += 1
      calls.push([ids, body.length, key, address, hopsBefore, isFirstParty, cookieToken, trace, evidence, bodyHash])
      waiting.set(ids, answer)
    },
    isWaiting: () => waiting.size() > 0,
    isBehind: () => heard.length > 0,
    end() {
      ended = true
      for (const answer of waiting.takeAll()) answer(gone())
    },
  }
}
