// One request from its headers to its single answer: guard, deadline, refusals, body, handler. Every route runs in here.
import type { HttpRequest as RawRequest, HttpResponse as RawResponse } from 'uWebSockets.js'
import type { Clock } from '../lib/clock.ts'
import { addressText } from './address.ts'
import { type BodyReader, openBody, openBodyCopier } from './body.ts'
import { type DeadlineQueue, emptyDeadline, openDeadlines, removeDeadline } from './deadlines.ts'
import { BodyTooLarge, DeadlineExceeded, TooManyInFlight } from './errors.ts'
import { openHeaderScanner, type Wanted } from './framing.ts'
import { type HostsConfig, openHosts } from './hosts.ts'
import type { Before, Handler, Header, HttpLog, HttpRequest, HttpResponse, Observe } from './message.ts'
import { type Parts, sendParts } from './parts.ts'
import { type OpenStream, openStream } from './stream.ts'
import { type Presenter, sendResponse } from './write.ts'

export interface Route {
  readonly pattern: string
  readonly handler: Handler
  readonly before: Before | null
  readonly wanted: Wanted
  readonly bodyBytesMax: number
  readonly borrowBody: boolean
  readonly deadlineMs: number
  readonly deadlines: DeadlineQueue
  readonly responseHeaders: readonly Header[]
}

export interface ExchangeConfig {
  readonly clock: Clock
  readonly log: HttpLog
  readonly presenter: Presenter
  readonly observe: Observe
  readonly headersBytesMax: number
  readonly inFlightMax: number
  readonly perHost: HostsConfig
}

/** A refusal decided before the body is in waits this long for the rest, so that the client reads it and not a reset. */
const REFUSAL_WAIT_MS = 1_000
/** A longer body is not read to its end for the sake of a refusal: the connection closes at once. */
const DISCARD_BYTES_MAX = 1_048_576
/** How long a client may take nothing of an answer that is made while it leaves. */
const STALL_MS = 30_000
const NO_BODY = new Uint8Array(0)
const CLIENT_LEFT = 499

export function openExchanges(config: ExchangeConfig) {
  const { clock, log, presenter, observe, inFlightMax } = config
  const scanner = openHeaderScanner(config.headersBytesMax)
  const copyOf = openBodyCopier()
  const hosts = openHosts(config.perHost)
  const deadlines = openDeadlines()
  const refusals = deadlines.queue(REFUSAL_WAIT_MS)
  const stalls = deadlines.queue(STALL_MS)
  let inFlight = 0
  let draining = false
  let whenIdle: (() => void) | null = null

  /** Serves one request and never throws. `method` is upper case, one of the known ones or 'OTHER'. */
  function serve(
    raw: RawResponse,
    rawRequest: RawRequest,
    route: Route,
    method: string,
    path: string,
    params: Readonly<Record<string, string>>,
  ): void {
    const startedMs = clock.monotonic()
    const deadline = emptyDeadline(expire)
    let label = route.pattern
    // undecided → decided (there is an answer, it may wait for a later tick) → over (written, or the client left)
    let decided = false
    let over = false
    let expired = false
    // While the server runs one of this socket's callbacks the socket is corked already.
    let corked = true
    let closing = false
    let gateOpen = true
    let bodyIn = false
    let reader: BodyReader | null = null
    let refusal: HttpResponse | Error | null = null
    let discardedBytes = 0
    let address: string | null = null
    let onAborted: (() => void) | null = null
    let stream: OpenStream | null = null
    let parts: Parts | null = null
    let host: string | null = ''

    inFlight++
    raw.onAborted(leave)
    const headers = scanner.scan(rawRequest, route.wanted)
    const { contentLength, values } = headers
    const request = {
      method,
      path,
      // The native server gives undefined where there is no question mark.
      query: rawRequest.getQuery() ?? '',
      params,
      remoteAddress: () => {
        address ??= over ? '' : addressText(new Uint8Array(raw.getRemoteAddress()))
        return address
      },
      body: NO_BODY as Uint8Array,
      context: undefined as unknown,
      answerHeaders: [] as readonly Header[],
      header: (name: string) => values[route.wanted.slots.get(name) ?? -1] ?? '',
      hasHeader: (name: string) => values[route.wanted.slots.get(name) ?? -1] !== undefined,
      headers: () => headers.pairs,
      aborted: () => decided || over,
      whenAborted: (listener: () => void) => {
        if (decided || over) listener()
        else onAborted = listener
      },
    } satisfies HttpRequest

    if (headers.fault !== null) refuseUnread('(framing)', headers.fault)
    else if (inFlight > inFlightMax) refuseUnread('(overload)', new TooManyInFlight('too many requests at once'))
    else {
      host = hosts.enter(request.remoteAddress())
      if (host === null) refuseUnread('(overload)', new TooManyInFlight('too many connections of this address'))
      else begin()
    }
    corked = false

    function begin(): void {
      route.deadlines.add(deadline, startedMs)
      if (route.before !== null) runBefore(route.before)
      // The native server skips the two bytes behind each chunk unread: what it takes for the next request may be none.
      if (headers.chunked) closing = true
      if (contentLength > 0 || headers.chunked) {
        if (contentLength > route.bodyBytesMax) refuseLength()
        raw.onData(onData)
      } else {
        bodyIn = true
        // A request without a length has no body (RFC 9112, 6.3). Whoever sends one all the same must not have it taken for a request.
        if (contentLength < 0 && (method === 'POST' || method === 'PUT' || method === 'PATCH')) closing = true
      }
      proceed()
    }

    function refuseUnread(pattern: string, error: Error): void {
      label = pattern
      answer(error)
    }

    function refuseLength(): void {
      closing = true
      refusal ??= new BodyTooLarge(route.bodyBytesMax)
    }

    function runBefore(before: Before): void {
      try {
        const verdict = before(request)
        if (verdict instanceof Promise) {
          gateOpen = false
          verdict.then(openGate, (error) => openGate(presenter.present(error, label, request.context)))
        } else refusal = verdict
      } catch (error) {
        refusal = presenter.present(error, label, request.context)
      }
    }

    function openGate(verdict: HttpResponse | null): void {
      gateOpen = true
      // What `before` says comes ahead of what was found out about the body meanwhile.
      if (verdict !== null) refusal = verdict
      proceed()
    }

    function onData(chunk: ArrayBuffer, isLast: boolean): void {
      if (decided || over) return
      corked = true
      bodyIn = isLast
      try {
        if (refusal !== null) discardedBytes += chunk.byteLength
        else if (isLast && reader === null && chunk.byteLength <= route.bodyBytesMax)
          request.body = route.borrowBody ? new Uint8Array(chunk) : copyOf(chunk)
        else {
          reader ??= openBody(route.bodyBytesMax)
          if (!reader.take(chunk, isLast)) refuseLength()
          else if (isLast) request.body = reader.bytes()
        }
        if (isLast || refusal !== null) proceed()
      } catch (error) {
        fail(error)
      }
      corked = false
    }

    function proceed(): void {
      if (decided || over || !gateOpen) return
      if (refusal === null) {
        if (bodyIn) run()
      } else if (bodyIn || contentLength > DISCARD_BYTES_MAX || discardedBytes > DISCARD_BYTES_MAX) answer(refusal)
      else {
        const nowMs = clock.monotonic()
        if (deadline.dueMs > nowMs + REFUSAL_WAIT_MS) {
          removeDeadline(deadline)
          refusals.add(deadline, nowMs)
        }
      }
    }

    function run(): void {
      try {
        const outcome = route.handler(request, answer)
        if (outcome instanceof Promise) outcome.then(answer, fail)
        else if (outcome !== undefined) answer(outcome)
      } catch (error) {
        fail(error)
      }
    }

    function fail(error: unknown): void {
      if (decided || over) log.warn({ err: error, route: label }, 'a handler failed after its request was over')
      else answer(presenter.present(error, label, request.context))
    }

    function answer(outcome: HttpResponse | Error): void {
      if (decided || over) {
        if (decided && !expired) log.warn({ route: label }, 'a second answer was ignored')
        return
      }
      decided = true
      const response = presenter.checked(outcome, label, request.context)
      closing ||= draining || !bodyIn
      // A closing answer given inside the server's callback would let it execute what follows in the same segment.
      if (closing && corked) setImmediate(send, response)
      else send(response)
    }

    function send(response: HttpResponse): void {
      if (over) return
      const hasParts = response.parts !== undefined && method !== 'HEAD'
      if (hasParts) removeDeadline(deadline)
      else finish(response.status)
      try {
        const { answerHeaders } = request
        const responseHeaders =
          answerHeaders.length === 0 ? route.responseHeaders : [...route.responseHeaders, ...answerHeaders]
        if (corked) sendResponse(raw, response, responseHeaders, presenter, method === 'HEAD', closing)
        else raw.cork(() => sendResponse(raw, response, responseHeaders, presenter, method === 'HEAD', closing))
        if (response.stream !== undefined && method !== 'HEAD') {
          stream = openStream(raw)
          response.stream(stream)
        }
        if (hasParts) parts = sendRest(response.status, response.parts)
      } catch (err) {
        log.error({ err, route: label }, 'a response could not be written')
        raw.close()
      }
    }

    function sendRest(status: number, rest: AsyncGenerator<string, void>): Parts {
      const over = (error: unknown) => {
        if (error !== null) log.error({ err: error, route: label }, 'a response could not be made to its end')
        finish(status)
      }
      const closes = () => closing || draining
      return sendParts({ raw, parts: rest, stalls, monotonic: clock.monotonic, over, closes })
    }

    function expire(): void {
      expired = true
      answer(gateOpen && refusal !== null ? refusal : new DeadlineExceeded(`no answer in ${route.deadlineMs} ms`))
      onAborted?.()
    }

    function leave(): void {
      stream?.left()
      parts?.left()
      if (over) return
      finish(CLIENT_LEFT)
      onAborted?.()
    }

    function finish(status: number): void {
      over = true
      reader = null
      removeDeadline(deadline)
      inFlight--
      hosts.leave(host ?? '')
      if (inFlight === 0 && whenIdle !== null) whenIdle()
      try {
        observe(label, method, status, clock.monotonic() - startedMs)
      } catch (err) {
        log.error({ err }, 'the observer failed')
      }
    }
  }

  return {
    serve,
    deadlines,
    inFlight: () => inFlight,
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
