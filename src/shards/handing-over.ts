// Identifications from one shard to another and their answers: those of a turn go over in one message, the texts as they are and the
// bodies in one piece of memory. As calls of a line each of them would be packed, copied and taken apart, at twice the price.

import { IDENTIFY_BODY_BYTES_MAX } from '../domain/identify.ts'
import type { HandedBack, HandedOver } from '../ingress/hand-over.ts'
import { Unavailable } from '../lib/failures.ts'
import { openInFlight } from '../lib/in-flight.ts'
import type { Line } from '../lib/line.ts'

export interface HandingOver {
  /** Its body need not outlive the call. Rejects with Unavailable when the other shard is lost before it has answered. */
  handOver(call: HandedOver): Promise<HandedBack>
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

interface Waiting {
  readonly resolve: (back: HandedBack) => void
  readonly reject: (error: Error) => void
}

/** Names of casts. */
const CALLS = 'identify'
const ANSWERS = 'identified'
/** Of one message; what does not fit goes in the next. */
const BODIES_BYTES_MAX = 2 * IDENTIFY_BODY_BYTES_MAX
const FAILED = 0

const gone = () => new Unavailable('the other thread is gone')

/** `later` says when what a turn brought is sent. */
export function openHandingOver(
  line: Pick<Line, 'cast' | 'hear'>,
  serve: (call: HandedOver) => Promise<HandedBack>,
  later: (send: () => void) => void,
): HandingOver {
  const waiting = openInFlight<number, Waiting>((id) => id)
  const bodies = Buffer.allocUnsafeSlow(BODIES_BYTES_MAX)
  let used = 0
  let calls: Sent[] = []
  let answers: Returned[] = []
  let ids = 0
  let ended = false

  function sendCalls(): void {
    if (calls.length === 0) return
    const sent = new Uint8Array(bodies.buffer.slice(0, used))
    line.cast(CALLS, { calls, bodies: sent } satisfies Calls, [sent.buffer])
    calls = []
    used = 0
  }

  function sendAnswers(): void {
    line.cast(ANSWERS, answers)
    answers = []
  }

  function giveBack(answer: Returned): void {
    if (answers.length === 0) later(sendAnswers)
    answers.push(answer)
  }

  line.hear(CALLS, (message: Calls) => {
    let at = 0
    for (const [id, bodyBytes, key, address, hopsBefore, isFirstParty, cookieToken, trace, evidence] of message.calls) {
      const body = message.bodies.subarray(at, at + bodyBytes)
      at += bodyBytes
      serve({ key, address, hopsBefore, isFirstParty, cookieToken, trace, evidence, body }).then(
        ({ status, body, headers, commonHeaders }) => giveBack([id, status, body, headers, commonHeaders]),
        (error) => giveBack([id, FAILED, error instanceof Error ? error.message : String(error), [], undefined]),
      )
    }
  })

  line.hear(ANSWERS, (message: readonly Returned[]) => {
    for (const [id, status, body, headers, commonHeaders] of message) {
      const one = waiting.take(id)
      if (status === FAILED) one?.reject(new Error(body))
      else
        one?.resolve(commonHeaders === undefined ? { status, headers, body } : { status, headers, body, commonHeaders })
    }
  })

  return {
    handOver({ key, address, hopsBefore, isFirstParty, cookieToken, trace, evidence, body }) {
      if (ended) return Promise.reject(gone())
      if (used + body.length > BODIES_BYTES_MAX) sendCalls()
      if (calls.length === 0) later(sendCalls)
      bodies.set(body, used)
      used += body.length
      ids += 1
      const id = ids
      calls.push([id, body.length, key, address, hopsBefore, isFirstParty, cookieToken, trace, evidence])
      return new Promise((resolve, reject) => {
        waiting.set(id, { resolve, reject })
      })
    },
    end() {
      ended = true
      for (const { reject } of waiting.takeAll()) reject(gone())
    },
  }
}
