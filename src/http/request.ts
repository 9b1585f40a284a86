// A request while it is served: what handlers see of it, and beside that what the exchange keeps. One record whose functions all
// requests share; a closure for each of them per request would cost more than everything they do.

import type { HttpRequest as RawRequest, HttpResponse as RawResponse } from 'uWebSockets.js'
import { addressOfBytes } from './address.ts'
import type { BodyReader } from './body.ts'
import type { DeadlineQueue, RequestDeadline } from './deadlines.ts'
import type { Headers, WantedHeaders } from './framing.ts'
import type { Host } from './hosts.ts'
import type { BeforeBody, Handler, HttpHeader, HttpRequest, HttpResponse } from './message.ts'
import type { AnswerParts } from './parts.ts'
import type { OpenStream } from './stream.ts'

export interface Route {
  readonly pattern: string
  readonly handler: Handler
  readonly before: BeforeBody | null
  readonly wanted: WantedHeaders
  readonly bodyBytesMax: number
  readonly borrowBody: boolean
  readonly deadlineMs: number
  readonly deadlines: DeadlineQueue
  readonly responseHeaders: readonly HttpHeader[]
}

/** Waits in a queue of deadlines itself. */
export interface Exchange extends HttpRequest, RequestDeadline {
  readonly raw: RawResponse
  readonly route: Route
  readonly scanned: Headers
  /** Monotonic milliseconds. */
  readonly startedMs: number
  body: Uint8Array
  /** What it is counted as: the route's pattern, or why it never got there. */
  label: string
  // undecided → decided (there is an answer, it may wait for a later tick) → over (written, or the client left)
  decided: boolean
  over: boolean
  expired: boolean
  /** While the server runs one of this socket's callbacks the socket is corked already. */
  corked: boolean
  closing: boolean
  gateOpen: boolean
  bodyIn: boolean
  reader: BodyReader | null
  refusal: HttpResponse | Error | null
  discardedBytes: number
  address: string | null
  onAborted: (() => void) | null
  stream: OpenStream | null
  parts: AnswerParts | null
  /** null: not counted among those of its host. */
  host: Host | null
}

export interface Arrival {
  readonly raw: RawResponse
  readonly rawRequest: RawRequest
  readonly route: Route
  readonly scanned: Headers
  readonly method: string
  readonly path: string
  readonly params: Readonly<Record<string, string>>
  readonly startedMs: number
  readonly expire: (this: Exchange) => void
}

const NO_BODY: Uint8Array = new Uint8Array(0)
const NO_HEADERS: readonly HttpHeader[] = []

export function newExchange(arrival: Arrival): Exchange {
  const { raw, rawRequest, route, scanned, method, path, params, startedMs, expire } = arrival
  const exchange = {
    method,
    path,
    // The native server gives undefined where there is no question mark.
    query: rawRequest.getQuery() ?? '',
    params,
    body: NO_BODY,
    context: undefined as unknown,
    answerHeaders: NO_HEADERS,
    header,
    hasHeader,
    headers,
    remoteAddress,
    aborted,
    whenAborted,
    raw,
    route,
    scanned,
    startedMs,
    label: route.pattern,
    decided: false,
    over: false,
    expired: false,
    corked: true,
    closing: false,
    gateOpen: true,
    bodyIn: false,
    reader: null,
    refusal: null,
    discardedBytes: 0,
    address: null,
    onAborted: null,
    stream: null,
    parts: null,
    host: null,
    dueMs: Number.POSITIVE_INFINITY,
    before: undefined as unknown as RequestDeadline,
    after: undefined as unknown as RequestDeadline,
    expire,
  } satisfies Exchange as Exchange
  exchange.before = exchange
  exchange.after = exchange
  return exchange
}

const sentValue = ({ scanned, route }: Exchange, name: string): string | undefined =>
  scanned.values[route.wanted.slots.get(name) ?? -1]

function header(this: Exchange, name: string): string {
  return sentValue(this, name) ?? ''
}

function hasHeader(this: Exchange, name: string): boolean {
  return sentValue(this, name) !== undefined
}

function headers(this: Exchange): readonly HttpHeader[] {
  return this.scanned.pairs
}

function remoteAddress(this: Exchange): string {
  this.address ??= this.over ? '' : addressOfBytes(new Uint8Array(this.raw.getRemoteAddress()))
  return this.address
}

function aborted(this: Exchange): boolean {
  return this.decided || this.over
}

function whenAborted(this: Exchange, listener: () => void): void {
  if (this.decided || this.over) listener()
  else this.onAborted = listener
}
