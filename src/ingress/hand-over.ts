// Identifications that another shard of the process decides: told by their token, or else by their hardware (hardware-in-body.ts), before
// anything is parsed, handed over as they came, and answered there.

import { EVIDENCE_HEADERS } from '../domain/identify.ts'
import { homePartition } from '../domain/ids.ts'
import type { HttpHeader } from '../http/message.ts'
import { TOKEN_CHARS, visitorNamedBy } from '../identity/token.ts'
import { promised } from '../lib/promised.ts'

/** A call of identify that was admitted. Its body is there until whoever gets the call returns. */
export interface HandedOver {
  /** As the caller sent it: who that is, is looked up where it is answered. */
  readonly key: string
  /** Canonical. */
  readonly address: string
  readonly hopsBefore: number
  readonly isFirstParty: boolean
  readonly cookieToken: string | null
  /** Packed; null: the caller traces nothing. */
  readonly trace: string | null
  /** The values of EVIDENCE_HEADERS, in their order; '' where one was not sent. */
  readonly evidence: readonly string[]
  readonly body: Uint8Array
  /** What `bodyHashOf` makes of it, which takes as long as handing it over: whoever decides has no time to spare. */
  readonly bodyHash: number
}

/** The answer, made there and written where the call arrived. */
export interface HandedBack {
  readonly status: number
  readonly headers: readonly HttpHeader[]
  readonly body: string
  /** As in `HttpResponse`. */
  readonly commonHeaders?: readonly HttpHeader[]
}

/** Tells `answer` once how the call was answered, or Unavailable where the shard is lost before it was. */
export type HandOver = (call: HandedOver, answer: (outcome: HandedBack | Error) => void) => void

/** Other shards of the process. */
export interface OtherShards {
  /**
   * The way to the one that decides a call; null where that is this shard, or cannot be told or reached. `partitionOf` says whose the call
   * is, as far as anybody can: it is asked only where not all partitions are decided by one shard.
   */
  wayFor(partitionOf: () => number | null): HandOver | null
  /** `serve` answers what others hand over; what came before waits for it. */
  answer(serve: HandOver): void
}

/** What comes before this shard can answer waits until it can. */
export function openAnswering(): Pick<OtherShards, 'answer'> & { readonly serve: HandOver } {
  const begun = promised<HandOver>()
  let answerIt: HandOver = (call, answer) => void begun.promise.then((serve) => serve(call, answer))
  return {
    answer(serve) {
      answerIt = serve
      begun.resolve(serve)
    },
    serve: (call, answer) => answerIt(call, answer),
  }
}

/** How the SDK writes it. Whoever writes it otherwise is understood where the call arrived. */
const TOKEN_MEMBER = Buffer.from('"storageToken":"')

function tokenIn(body: Uint8Array): string | null {
  const at = Buffer.prototype.indexOf.call(body, TOKEN_MEMBER)
  if (at < 0) return null
  const from = at + TOKEN_MEMBER.length
  return Buffer.prototype.latin1Slice.call(body, from, Math.min(from + TOKEN_CHARS, body.length))
}

/**
 * The partition of the visitor that the body's token names, or else the cookie's; null when neither does. Nothing is verified: where
 * the call is answered it is read as any other, and passed on again if it belongs elsewhere.
 */
export function partitionNamedBy(body: Uint8Array, cookieToken: string | null, partitions: number): number | null {
  const token = tokenIn(body) ?? cookieToken
  const visitorId = token === null ? null : visitorNamedBy(token)
  return visitorId === null ? null : homePartition(visitorId, partitions)
}

const SLOTS = new Map(EVIDENCE_HEADERS.map((name, slot) => [name, slot]))

/** Reads a header of a call that was handed over, as `HttpRequest.header` does. */
export const evidenceOf =
  ({ evidence }: HandedOver) =>
  (name: string): string =>
    evidence[SLOTS.get(name) ?? -1] ?? ''
