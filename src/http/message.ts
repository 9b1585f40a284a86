// The shapes a handler sees: one request, one response, and the options of a route.

import type { HttpStream } from './stream.ts'

export type HttpHeader = readonly [name: string, value: string]

export interface HttpRequest {
  /** Upper case. */
  readonly method: string
  /** As sent: neither decoded nor normalised. */
  readonly path: string
  /** What follows `?`, as sent; '' when there is none. */
  readonly query: string
  /** By the names in the pattern, as sent; a final `*` is under '*'. */
  readonly params: Readonly<Record<string, string>>
  /** The whole body, ours to keep, but its `buffer` is shared with others: never transfer it. Empty in `before`. */
  readonly body: Uint8Array
  /** What `before` wants the handler to know, such as who is calling. */
  context: unknown
  /**
   * What `before` wants on the answer, whatever that turns out to be, in place of the route's headers of the same names. Checked by
   * nobody: only texts of our own, or that were compared with one.
   */
  answerHeaders: readonly HttpHeader[]
  /** The value of a header the route lists (lower case); repeated ones are joined as HTTP says; '' when absent. */
  header(this: HttpRequest, name: string): string
  /** Whether a listed header was sent at all: one that is no text arrives as ''. */
  hasHeader(this: HttpRequest, name: string): boolean
  /** All headers in order of arrival, for routes with `headers: 'all'`; else those captured. */
  headers(this: HttpRequest): readonly HttpHeader[]
  /**
   * IPv4 plain, IPv6 canonical (RFC 5952), IPv4-mapped unwrapped. Ask before the first await: when the client is gone
   * and nobody asked earlier, it is ''.
   */
  remoteAddress(this: HttpRequest): string
  /** True once nobody waits for the answer: the client left or the deadline passed. */
  aborted(this: HttpRequest): boolean
  /** Calls `listener` when that comes true before the answer is given; at once when it is already. One listener, the last. */
  whenAborted(this: HttpRequest, listener: () => void): void
}

export interface HttpResponse {
  readonly status: number
  readonly headers?: readonly HttpHeader[]
  readonly body?: string | Uint8Array
  /** Default `application/json` when there is a body. */
  readonly contentType?: string
  /** Goes on behind `body` for as long as both sides like. A stream is not in flight: nobody waits for its end. */
  readonly stream?: (stream: HttpStream) => void
  /** In place of `HttpConfig.responseHeaders`, where what those say has been told elsewhere already. */
  readonly commonHeaders?: readonly HttpHeader[]
  /** Follows `body`, made while it leaves; the request is in flight until its end. */
  readonly parts?: AsyncGenerator<string | Uint8Array, void>
}

/** Gives the one answer; an Error goes through the presenter. Later calls, and calls after the client left, do nothing. */
export type Answer = (outcome: HttpResponse | Error) => void

/** Returns the response, promises it, or returns nothing and calls `answer` later. */
export type Handler = (request: HttpRequest, answer: Answer) => HttpResponse | Promise<HttpResponse> | undefined

/** Runs on the headers, before anything is said about the body; a response refuses the request. */
export type BeforeBody = (request: HttpRequest) => HttpResponse | null | Promise<HttpResponse | null>

export interface RouteOptions {
  /** Header names to keep (lower case), or all of them. Default none. */
  readonly headers?: readonly string[] | 'all'
  /** Default 65,536. */
  readonly bodyBytesMax?: number
  /**
   * Saves the copy of a body that arrives in one piece when nothing else is waited for: `request.body` is then empty as soon as the
   * handler returns. Only for handlers that use it at once. Default false.
   */
  readonly borrowBody?: boolean
  /** From the headers' arrival to the answer, body included. Default 10,000. Kept to about 100 ms. */
  readonly deadlineMs?: number
  readonly before?: BeforeBody
  /** On every answer of this route, refusals of a request unread or of other methods included. Default none. */
  readonly responseHeaders?: readonly HttpHeader[]
}

/** Which request failed: the pattern of its route, and what `before` wanted the handler to know. */
export interface Failed {
  readonly route: string
  readonly context: unknown
}

/** Turns any failure into a response: those of errors.ts, and whatever handlers throw. */
export type Present = (error: unknown, failed: Failed) => HttpResponse

/**
 * Called once per request. `pattern` is the route's, or '(unknown)', '(framing)', '(overload)';
 * `method` is one of the known ones or 'OTHER'; `status` is 499 when the client left first.
 */
export type Observe = (pattern: string, method: string, status: number, durationMs: number) => void

export interface HttpLog {
  warn(fields: object, message: string): void
  error(fields: object, message: string): void
}
