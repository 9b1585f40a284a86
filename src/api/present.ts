// Every failure as the contract's error body, and what all answers have in common.

import { ApiError, errorBody } from '../domain/errors.ts'
import { makeCallId, type RandomBytes } from '../domain/ids.ts'
import type { Trace } from '../domain/trace.ts'
import {
  BadFraming,
  BodyTooLarge,
  DeadlineExceeded,
  HeadersTooLarge,
  MethodNotAllowed,
  RouteUnknown,
  TooManyInFlight,
} from '../http/errors.ts'
import type { HttpHeader, HttpResponse, Present } from '../http/message.ts'
import type { HttpStream } from '../http/stream.ts'
import type { Clock } from '../lib/clock.ts'
import { Unavailable } from '../lib/failures.ts'
import type { Caller } from '../records/auth.ts'
import type { PacedSteps } from './paced-steps.ts'
import type { RouteText } from './routes.ts'
import { inSlices } from './slices.ts'

const CALL_ID = 'X-Request-Id'
const NO_STORE: HttpHeader = ['Cache-Control', 'no-store']
const RETRY_AFTER_SECONDS = 2

/** What is logged of a failure, so that whoever quotes the call can be helped. */
export interface FailedCall {
  /** The X-Request-Id of its answer. */
  readonly callId: string
  readonly route: string
  /** null: before the key was read, or without one. */
  readonly workspace: string | null
  /** Of the caller's `traceparent`; null where none came, or it was not read yet. */
  readonly traceId: string | null
}

/** For `HttpConfig.present`: turns whatever was thrown into an answer. `report` gets what nobody foresaw. */
export function openPresent(report: (error: unknown, call: FailedCall) => void, nextCallId: () => string): Present {
  return (error, { route, context }) => {
    const known = asApiError(error)
    if (known !== null) return presentError(known)
    const callId = nextCallId()
    report(error, { callId, route, workspace: workspaceOf(context), traceId: traceIdOf(context) })
    return { ...presentError(new ApiError('internal_error')), commonHeaders: [[CALL_ID, callId]] }
  }
}

const traceIdOf = (context: unknown): string | null =>
  ((context ?? {}) as { readonly trace?: Trace | null }).trace?.id ?? null

/** What `before` leaves for a handler is a caller, or has one. */
function workspaceOf(context: unknown): string | null {
  const { caller, workspace } = (context ?? {}) as Partial<Caller> & { readonly caller?: Caller }
  return (workspace ?? caller?.workspace)?.id ?? null
}

/** For `HttpConfig.responseHeaders`: a call id on every answer, refusals included. */
export function callHeaders(clock: Clock, random: RandomBytes): () => readonly HttpHeader[] {
  return () => [[CALL_ID, makeCallId(clock.now(), random)]]
}

export function presentError(error: ApiError): HttpResponse {
  const headers: HttpHeader[] = [NO_STORE]
  if (error.status === 401) headers.push(['WWW-Authenticate', 'Bearer'])
  if (error.detail.retryAfter !== undefined) headers.push(['Retry-After', String(error.detail.retryAfter)])
  return { status: error.status, headers, body: errorBody(error) }
}

export function presentReply(
  status: number,
  body: unknown,
  headers: readonly HttpHeader[],
  turns: PacedSteps,
): HttpResponse {
  return { status, headers: [NO_STORE, ...headers], ...inSlices(body, turns) }
}

/** A text of another type than JSON. */
export function presentText({ contentType, head, rest }: RouteText, headers: readonly HttpHeader[]): HttpResponse {
  return { status: 200, headers: [NO_STORE, ...headers], contentType, body: head, parts: rest }
}

/** Server-sent events. */
export function presentStream(stream: (stream: HttpStream) => void): HttpResponse {
  return { status: 200, headers: [NO_STORE], contentType: 'text/event-stream', body: ':\n\n', stream }
}

/** null: a failure nobody foresaw. */
function asApiError(error: unknown): ApiError | null {
  if (error instanceof ApiError) return error
  if (error instanceof RouteUnknown) return new ApiError('route_not_found')
  if (error instanceof MethodNotAllowed) return new ApiError('method_not_allowed')
  if (error instanceof BodyTooLarge) {
    return new ApiError('payload_too_large', { message: `The body may have at most ${error.bodyBytesMax} bytes.` })
  }
  if (error instanceof DeadlineExceeded || error instanceof TooManyInFlight) {
    return new ApiError('unavailable', { retryAfter: error.retryAfterSeconds })
  }
  if (error instanceof HeadersTooLarge) return new ApiError('headers_too_large')
  if (error instanceof BadFraming) {
    return new ApiError('validation_error', { field: 'headers', message: 'The headers of this request are refused.' })
  }
  if (error instanceof Unavailable) return new ApiError('unavailable', { retryAfter: RETRY_AFTER_SECONDS })
  return null
}
