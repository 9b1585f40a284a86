// From an outcome to bytes on the wire. All is checked before the first byte leaves, so an unsafe response can be replaced.

import { STATUS_CODES } from 'node:http'
import { DeadlineExceeded, MethodNotAllowed, TooManyInFlight } from './errors.ts'
import type { HttpHeader, HttpLog, HttpResponse, Present } from './message.ts'
import type { RawResponse } from './port.ts'

const statusLines = new Map(Object.entries(STATUS_CODES).map(([code, text]) => [Number(code), `${code} ${text}`]))
const LINE_BREAK = '\r\n'
const NO_HEADERS: readonly HttpHeader[] = []
const JSON_TYPE = 'application/json'
const BARE_ERROR: HttpResponse = { status: 500 }
const NAME = /^[A-Za-z0-9-]{1,64}$/
const VALUE = /^[\t\x20-\x7e]*$/
// The server writes these itself; a second copy would make our own answers ambiguous.
const RESERVED = /^(?:content-length|content-type|transfer-encoding|connection)$/i

export interface Presenter {
  /** Never throws; adds Allow and Retry-After where the failure calls for one. */
  present(error: unknown, route: string, context?: unknown): HttpResponse
  /** A response that is safe to write: this one, or the presented failure of this one. */
  checked(outcome: HttpResponse | Error, route: string, context?: unknown): HttpResponse
  /** What every response carries. */
  commonHeaders(): readonly HttpHeader[]
}

export function openPresenter(
  presentError: Present,
  responseHeaders: (() => readonly HttpHeader[]) | null,
  log: HttpLog,
): Presenter {
  function present(error: unknown, route: string, context?: unknown): HttpResponse {
    try {
      const response = presentError(error, { route, context })
      if (error instanceof MethodNotAllowed) return withHeader(response, 'Allow', error.allow)
      if (error instanceof DeadlineExceeded || error instanceof TooManyInFlight)
        return withHeader(response, 'Retry-After', String(error.retryAfterSeconds))
      return response
    } catch (err) {
      log.error({ err }, 'the error presenter failed')
      return BARE_ERROR
    }
  }

  return {
    present,

    checked(outcome, route, context) {
      const response = outcome instanceof Error ? present(outcome, route, context) : outcome
      const fault = responseFault(response)
      if (fault === null) return response
      log.error({ route, fault }, 'a response was replaced because it is unsafe')
      const instead = present(new Error(`unsafe response: ${fault}`), route, context)
      return responseFault(instead) === null ? instead : BARE_ERROR
    },

    commonHeaders() {
      if (responseHeaders === null) return []
      try {
        const headers = responseHeaders()
        const fault = headersFault(headers)
        if (fault === null) return headers
        log.error({ fault }, 'the common response headers are unsafe')
      } catch (err) {
        log.error({ err }, 'the common response headers failed')
      }
      return []
    },
  }
}

function withHeader(response: HttpResponse, name: string, value: string): HttpResponse {
  const headers = response.headers ?? []
  if (headers.some(([present]) => present.toLowerCase() === name.toLowerCase())) return response
  return { ...response, headers: [...headers, [name, value]] }
}

/** What keeps the response from being sent, or null. A line break in a value would begin a header of someone else's. */
function responseFault(response: HttpResponse | null | undefined): string | null {
  if (response === null || response === undefined) return 'there is none'
  if (response.status < 200 || !statusLines.has(response.status)) return `status ${response.status}`
  const { contentType, headers } = response
  if (contentType !== undefined && !VALUE.test(contentType)) return 'the value of Content-Type'
  return headers === undefined ? null : headersFault(headers)
}

/** Names that can be sent, as they come; beyond them each is looked at anew. */
const NAMES_KNOWN_MAX = 256
const namesKnown = new Set<string>()

function isNameSafe(name: string): boolean {
  if (namesKnown.has(name)) return true
  if (!NAME.test(name) || RESERVED.test(name)) return false
  if (namesKnown.size < NAMES_KNOWN_MAX) namesKnown.add(name)
  return true
}

/** What keeps these from being sent, or null. */
export function headersFault(headers: readonly HttpHeader[]): string | null {
  for (const [name, value] of headers) {
    if (!isNameSafe(name)) return `a header named ${JSON.stringify(name)}`
    if (!VALUE.test(value)) return `the value of ${name}`
  }
  return null
}

/** Writes the response in one go; the socket is corked. Throws when the body is not something the server can send. */
export function sendResponse(
  raw: RawResponse,
  response: HttpResponse,
  routeHeaders: readonly HttpHeader[],
  presenter: Presenter,
  headOnly: boolean,
  close: boolean,
): void {
  const { status, headers, body } = response
  if (status !== 200) raw.writeStatus(statusLines.get(status) as string)
  const common = response.commonHeaders ?? presenter.commonHeaders()
  // Nothing in them breaks a line: they were checked.
  const further = fieldsOfAnswer(headers ?? NO_HEADERS) + fieldsOfRoute(routeHeaders) + fieldsOf(common)
  if (body !== undefined) raw.writeHeader('Content-Type', (response.contentType ?? JSON_TYPE) + further)
  else if (further !== '') {
    const at = further.indexOf(': ')
    raw.writeHeader(further.slice(LINE_BREAK.length, at), further.slice(at + 2))
  }
  // What flushes the head; the end is for the stream to say.
  if ((response.stream !== undefined || response.parts !== undefined) && !headOnly) {
    raw.write(body ?? '\n')
    return
  }
  const bodiless = status === 204 || status === 304
  if (!bodiless && !headOnly) raw.end(body ?? '', close)
  // The server takes a reported length for bytes still to come and waits for them, so it may only be told 0.
  else if (close) raw.endWithoutBody(0, true)
  else {
    if (!bodiless && response.parts === undefined) raw.writeHeader('Content-Length', String(byteLength(body)))
    raw.endWithoutBody()
  }
}

/** What `fieldsOf` made of the list before, and makes of it again: most answers have the lists of the answer before. */
function rememberFields(): (headers: readonly HttpHeader[]) => string {
  let latest: { readonly headers: readonly HttpHeader[]; readonly fields: string } = { headers: NO_HEADERS, fields: '' }
  return (headers) => {
    if (latest.headers !== headers) latest = { headers, fields: fieldsOf(headers) }
    return latest.fields
  }
}

const fieldsOfRoute = rememberFields()
const fieldsOfAnswer = rememberFields()

function fieldsOf(headers: readonly HttpHeader[]): string {
  let fields = ''
  for (const [name, value] of headers) fields += `${LINE_BREAK}${name}: ${value}`
  return fields
}

function byteLength(body: string | Uint8Array | undefined): number {
  if (body === undefined) return 0
  return typeof body === 'string' ? Buffer.byteLength(body) : body.byteLength
}
