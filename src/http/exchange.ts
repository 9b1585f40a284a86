// One request from its headers to its single answer: guard, deadline, refusals, body, handler. Every route runs in here.

import type { Clock } from '../lib/clock.ts'
import { addCount, type SharedCounts } from '../lib/counts.ts'
import { openBody, openBodyCopier } from './body.ts'
import { openDeadlines, removeDeadline } from './deadlines.ts'
import { BodyTooLarge, DeadlineExceeded, TooManyInFlight } from './errors.ts'
import { openHeaderScanner } from './framing.ts'
import { type HostsConfig, openHosts } from './hosts.ts'
import type { BeforeBody, HttpHeader, HttpLog, HttpResponse, Observe } from './message.ts'
import { type AnswerParts, sendParts } from './parts.ts'
import type { RawRequest, RawResponse } from './port.ts'
import { type Exchange, newExchange, type Route } from './request.ts'
import { openStream } from './stream.ts'
import { type Presenter, sendResponse } from './write.ts'

export interface ExchangeConfig {
  readonly clock: Clock
  readonly log: HttpLog
  readonly presenter: Presenter
  readonly observe: Observe
  readonly headersBytesMax: number
  readonly inFlightMax: number
  /** Counts what all dispatches that share it have in flight. */
  readonly inFlightCounts: SharedCounts
  readonly perHost: HostsConfig
}

const SWEEP_MS = 100
/** A refusal decided before the body is in waits this long for the rest, so that the client reads it and not a reset. */
const REFUSAL_WAIT_MS = 1_000
/** A longer body is not read to its end for the sake of a refusal: the connection closes at once. */
const DISCARD_BYTES_MAX = 8_388_608
/** How long a client may take nothing of an answer that is made while it leaves. */
const STALL_MS = 30_000
const CLIENT_LEFT = 499

export function openExchanges(config: ExchangeConfig) {
  const { clock, log, presenter, observe, inFlightMax, inFlightCounts } = config
  const scanner = openHeaderScanner(config.headersBytesMax)
  const copyOf = openBodyCopier()
  const hosts = openHosts(config.perHost)
  const deadlines = openDeadlines(() => void sweepWhileAny())
  const refusals = deadlines.queue(REFUSAL_WAIT_MS)
  const stalls = deadlines.queue(STALL_MS)
  const closed = new AbortController()
  let inFlight = 0
  let draining = false
  let whenIdle: (() => void) | null = null

  async function sweepWhileAny(): Promise<void> {
    do await clock.sleep(SWEEP_MS, closed.signal)
    while (!closed.signal.aborted && deadlines.sweep(clock.monotonic()))
  }

  /** Serves one request, or refuses it for its fault, and never throws. `method` is upper case, one of the known ones or 'OTHER'. */
  function serve(
    raw: RawResponse,
    rawRequest: RawRequest,
    route: Route,
    method: string,
    path: string,
    params: Readonly<Record<string, string>>,
    fault: Error | null = null,
  ): void {
    const startedMs = clock.monotonic()
    const scanned = scanner.scan(rawRequest, route.wanted)
    const x = newExchange({ raw, rawRequest, route, scanned, method, path, params, startedMs, expire })
    inFlight++
    const inFlightOfAll = addCount(inFlightCounts, 0, 1) + 1
    raw.onAborted(() => leave(x))
    const unread = fault ?? scanned.fault
    if (unread !== null) refuseUnread(x, '(framing)', unread)
    else if (inFlightOfAll > inFlightMax)
      refuseUnread(x, '(overload)', new TooManyInFlight('too many requests at once'))
    else {
      x.host = hosts.enter(x.remoteAddress())
      if (x.host === null) refuseUnread(x, '(overload)', new TooManyInFlight('too many connections of this address'))
      else begin(x)
    }
    x.corked = false
  }

  function begin(x: Exchange): void {
    const { route, method, scanned } = x
    route.deadlines.add(x, x.startedMs)
    if (route.before !== null) runBefore(x, route.before)
    // The native server skips the two bytes behind each chunk unread: what it takes for the next request may be none.
    if (scanned.chunked) x.closing = true
    if (scanned.contentLength > 0 || scanned.chunked) {
      if (scanned.contentLength > route.bodyBytesMax) refuseLength(x)
      x.raw.onData((chunk, isLast) => onData(x, chunk, isLast))
    } else {
      x.bodyIn = true
      // A request without a length has no body (RFC 9112, 6.3). Whoever sends one all the same must not have it taken for a request.
      if (scanned.contentLength < 0 && (method === 'POST' || method === 'PUT' || method === 'PATCH')) x.closing = true
    }
    proceed(x)
  }

  function refuseUnread(x: Exchange, pattern: string, error: Error): void {
    x.label = pattern
    answer(x, error)
  }

  function refuseLength(x: Exchange): void {
    x.closing = true
    x.refusal ??= new BodyTooLarge(x.route.bodyBytesMax)
  }

  function runBefore(x: Exchange, before: BeforeBody): void {
    try {
      const verdict = before(x)
      if (verdict instanceof Promise) {
        x.gateOpen = false
        verdict.then(
          (said) => openGate(x, said),
          (error) => openGate(x, presenter.present(error, x.label, x.context)),
        )
      } else x.refusal = verdict
    } catch (error) {
      x.refusal = presenter.present(error, x.label, x.context)
    }
  }

  function openGate(x: Exchange, verdict: HttpResponse | null): void {
    x.gateOpen = true
    // What `before` says comes ahead of what was found out about the body meanwhile.
    if (verdict !== null) x.refusal = verdict
    proceed(x)
  }

  function onData(x: Exchange, chunk: ArrayBuffer, isLast: boolean): void {
    if (x.decided || x.over) return
    x.corked = true
    x.bodyIn = isLast
    try {
      takeChunk(x, chunk, isLast)
      if (isLast || x.refusal !== null) proceed(x)
    } catch (error) {
      fail(x, error)
    }
    x.corked = false
  }

  function takeChunk(x: Exchange, chunk: ArrayBuffer, isLast: boolean): void {
    const { borrowBody, bodyBytesMax } = x.route
    if (x.refusal !== null) x.discardedBytes += chunk.byteLength
    else if (isLast && x.reader === null && chunk.byteLength <= bodyBytesMax)
      x.body = borrowBody && x.gateOpen ? new Uint8Array(chunk) : copyOf(chunk)
    else {
      x.reader ??= openBody(bodyBytesMax)
      if (!x.reader.take(chunk, isLast)) refuseLength(x)
      else if (isLast) x.body = x.reader.bytes()
    }
  }

  function proceed(x: Exchange): void {
    const { refusal, bodyIn, scanned, discardedBytes } = x
    if (x.decided || x.over || !x.gateOpen) return
    if (refusal === null) {
      if (bodyIn) run(x)
    } else if (bodyIn || scanned.contentLength > DISCARD_BYTES_MAX || discardedBytes > DISCARD_BYTES_MAX)
      answer(x, refusal)
    else {
      const nowMs = clock.monotonic()
      if (x.dueMs > nowMs + REFUSAL_WAIT_MS) {
        removeDeadline(x)
        refusals.add(x, nowMs)
      }
    }
  }

  function run(x: Exchange): void {
    const answerIt = (outcome: HttpResponse | Error) => answer(x, outcome)
    try {
      const outcome = x.route.handler(x, answerIt)
      if (outcome instanceof Promise) outcome.then(answerIt, (error) => fail(x, error))
      else if (outcome !== undefined) answer(x, outcome)
    } catch (error) {
      fail(x, error)
    }
  }

  function fail(x: Exchange, error: unknown): void {
    if (x.decided || x.over) log.warn({ err: error, route: x.label }, 'a handler failed after its request was over')
    else answer(x, presenter.present(error, x.label, x.context))
  }

  function answer(x: Exchange, outcome: HttpResponse | Error): void {
    if (x.decided || x.over) {
      if (x.decided && !x.expired) log.warn({ route: x.label }, 'a second answer was ignored')
      if (!(outcome instanceof Error)) dropParts(outcome)
      return
    }
    x.decided = true
    const response = presenter.checked(outcome, x.label, x.context)
    x.closing ||= draining || !x.bodyIn
    // A closing answer given inside the server's callback would let it execute what follows in the same segment.
    if (x.closing && x.corked) setImmediate(send, x, response)
    else send(x, response)
  }

  /** What makes them has something open, perhaps. */
  const dropParts = ({ parts }: HttpResponse) => void parts?.return()

  function send(x: Exchange, response: HttpResponse): void {
    const { raw, method } = x
    if (x.over || method === 'HEAD') dropParts(response)
    if (x.over) return
    const hasParts = response.parts !== undefined && method !== 'HEAD'
    if (hasParts) removeDeadline(x)
    else finish(x, response.status)
    try {
      if (x.corked) write(x, response)
      else raw.cork(() => write(x, response))
      if (response.stream !== undefined && method !== 'HEAD') {
        x.stream = openStream(raw)
        response.stream(x.stream)
      }
      if (hasParts) x.parts = sendRest(x, response.status, response.parts)
    } catch (err) {
      log.error({ err, route: x.label }, 'a response could not be written')
      raw.close()
    }
  }

  /** Those of the answer replace those of the route. */
  function headersOf({ responseHeaders }: Route, answerHeaders: readonly HttpHeader[]): readonly HttpHeader[] {
    if (answerHeaders.length === 0) return responseHeaders
    return [...responseHeaders.filter(([name]) => answerHeaders.every(([other]) => other !== name)), ...answerHeaders]
  }

  function write({ raw, route, method, answerHeaders, closing }: Exchange, response: HttpResponse): void {
    sendResponse(raw, response, headersOf(route, answerHeaders), presenter, method === 'HEAD', closing)
  }

  function sendRest(x: Exchange, status: number, rest: AsyncGenerator<string | Uint8Array, void>): AnswerParts {
    const over = (error: unknown) => {
      if (error !== null) log.error({ err: error, route: x.label }, 'a response could not be made to its end')
      finish(x, status)
    }
    const closes = () => x.closing || draining
    return sendParts({ raw: x.raw, parts: rest, stalls, monotonic: clock.monotonic, over, closes })
  }

  function expire(this: Exchange): void {
    this.expired = true
    const { gateOpen, refusal, route } = this
    const late = () => new DeadlineExceeded(`no answer in ${route.deadlineMs} ms`)
    answer(this, gateOpen && refusal !== null ? refusal : late())
    this.onAborted?.()
  }

  function leave(x: Exchange): void {
    x.stream?.left()
    x.parts?.left()
    if (x.over) return
    finish(x, CLIENT_LEFT)
    x.onAborted?.()
  }

  function finish(x: Exchange, status: number): void {
    x.over = true
    x.reader = null
    removeDeadline(x)
    inFlight--
    addCount(inFlightCounts, 0, -1)
    if (x.host !== null) hosts.leave(x.host)
    if (inFlight === 0 && whenIdle !== null) whenIdle()
    try {
      observe(x.label, x.method, status, clock.monotonic() - x.startedMs)
    } catch (err) {
      log.error({ err }, 'the observer failed')
    }
  }

  return {
    serve,
    deadlines,
    inFlight: () => inFlight,
    /** No deadline is kept any more. */
    close: () => closed.abort(),
    /** From now on every answer closes its connection; resolves when none is being served. */
    drained(): Promise<void> {
      draining = true
      return new Promise((resolve) => {
        if (inFlight === 0) resolve()
        else whenIdle = resolve
      })
    },
  }
}
