// POST /v1/identify on the wire (src/docs/contract.md, Identification): who calls, in which form, and every answer it can get.

import { ApiError, invalid } from '../domain/errors.ts'
import { EVIDENCE_HEADERS, IDENTIFY_BODY_BYTES_MAX } from '../domain/identify.ts'
import type { Cidr } from '../domain/ip.ts'
import type { Answer, HttpHeader, HttpRequest, HttpResponse, Present } from '../http/message.ts'
import type { Http } from '../http/server.ts'
import type { Clock } from '../lib/clock.ts'
import { type Auth, bearer, type Caller, permit, permitOrigin } from '../records/auth.ts'
import { readIdentify } from './body.ts'
import { findClient, type RequestClient } from './client-address.ts'
import type { TakeIngress } from './rates.ts'
import type { AcceptOutcome, Answering } from './repeats.ts'

export interface IdentifyNeeds {
  readonly http: Pick<Http, 'route'>
  readonly auth: Auth
  readonly accept: Answering
  readonly takeIngress: TakeIngress
  readonly clock: Clock
  /** Told how long reading, checking and stamping took. */
  readonly accepted: (ms: number) => void
  readonly trustedProxies: readonly Cidr[]
  readonly retentionDays: (workspace: string) => number
  /** Time for the body to arrive, milliseconds, besides the time a decision may take. */
  readonly deadlineMs: number
  readonly present: Present
}

const PATH = '/v1/identify'
// Only here: no other endpoint is for browsers.
const CORS: readonly HttpHeader[] = [
  ['Access-Control-Allow-Origin', '*'],
  ['Access-Control-Expose-Headers', 'Retry-After, Idempotent-Replayed, X-Request-Id'],
]
const PREFLIGHT: readonly HttpHeader[] = [
  ['Access-Control-Allow-Methods', 'POST, OPTIONS'],
  ['Access-Control-Allow-Headers', 'Authorization, Content-Type'],
  ['Access-Control-Max-Age', '86400'],
]
const NONCE_INSTEAD = 'Idempotency-Key does not count here: send a nonce in the body, the same one in every repetition.'
const NO_STORE: HttpHeader = ['Cache-Control', 'no-store']
const REPLAYED: HttpHeader = ['Idempotent-Replayed', 'true']
const IDEMPOTENCY_KEY = 'idempotency-key'
const OWN_HEADERS = ['authorization', 'content-encoding', 'content-type', 'origin', 'x-forwarded-for']
const HEADERS = [...EVIDENCE_HEADERS, ...OWN_HEADERS, IDEMPOTENCY_KEY]

interface Context {
  readonly caller: Caller
  readonly client: RequestClient
}

/** The key of the query string; null when there is none. Anything else in the query is refused later, in its turn. */
function queryKey(query: string): string | null {
  return query.startsWith('key=') && !query.includes('&')
    ? decodeQueryValue(query.slice(4))
    : new URLSearchParams(query).get('key')
}

function decodeQueryValue(text: string): string {
  return /[%+]/.test(text) ? (new URLSearchParams(`key=${text}`).get('key') ?? '') : text
}

function checkQuery(query: string): void {
  if (query === '' || (query.startsWith('key=') && !query.includes('&'))) return
  for (const name of new URLSearchParams(query).keys()) {
    if (name !== 'key') throw invalid(name.slice(0, 64), 'Unknown query parameter.')
  }
}

/** A key in the query is for browsers: only a public one counts there, and only there text/plain does. */
function checkMediaType(contentType: string, fromQuery: boolean): void {
  const type = contentType.split(';', 1)[0]?.trim().toLowerCase()
  if (type === 'application/json' || (type === 'text/plain' && fromQuery)) return
  throw new ApiError('unsupported_media_type')
}

export function serveIdentify(needs: IdentifyNeeds): void {
  const { http, auth, accept, clock } = needs
  const present = (error: unknown, context: unknown) => needs.present(error, { route: PATH, context })

  const clientOf = (request: HttpRequest) =>
    findClient(request.remoteAddress(), request.header('x-forwarded-for'), needs.trustedProxies)

  function before(request: HttpRequest): HttpResponse | null | Promise<null> {
    try {
      const header = request.header('authorization')
      const fromQuery = header === ''
      const key = fromQuery ? queryKey(request.query) : bearer(header)
      const client = clientOf(request)
      const caller = auth.authenticate(fromQuery && key?.startsWith('pk_') !== true ? null : key, client.address)
      request.context = { caller, client } satisfies Context
      const taken = needs.takeIngress(caller, client.address)
      if (taken !== null) return taken.then(() => admit(request, caller, fromQuery))
      return admit(request, caller, fromQuery)
    } catch (error) {
      return present(error, request.context)
    }
  }

  function admit(request: HttpRequest, caller: Caller, fromQuery: boolean): null {
    permit(caller, 'identify')
    if (caller.key.kind === 'public') permitOrigin(caller, request.header('origin'))
    if (request.hasHeader('content-encoding')) throw new ApiError('unsupported_media_type')
    checkMediaType(request.header('content-type'), fromQuery)
    return null
  }

  function respondDecided(caller: Caller, answer: Answer, outcome: AcceptOutcome, replayed: boolean): void {
    if ('failure' in outcome) answer(present(outcome.failure, { caller }))
    else answer({ status: 200, body: outcome.body, headers: replayed ? [NO_STORE, REPLAYED] : [NO_STORE] })
  }

  function handle(request: HttpRequest, answer: Answer): undefined {
    const { caller, client } = request.context as Context
    const from = clock.monotonic()
    const refused = (error: unknown) => answer(present(error, { caller }))
    try {
      const { body, atMs, ip, mockIp } = readIdentify(
        request.body,
        caller,
        clock.now(),
        needs.retentionDays(caller.workspace.id),
      )
      checkQuery(request.query)
      if (request.hasHeader(IDEMPOTENCY_KEY)) throw invalid('nonce', NONCE_INSTEAD)
      accept(
        {
          caller,
          body,
          bytes: request.body,
          atMs,
          ip: mockIp ?? ip ?? client.address,
          hopsBefore: client.hopsBefore,
          header: (name) => request.header(name),
        },
        (outcome, replayed) => respondDecided(caller, answer, outcome, replayed),
        (requestId) =>
          answer({
            status: 202,
            body: JSON.stringify({ requestId, status: 'pending' }),
            headers: [NO_STORE, ['Retry-After', '1']],
          }),
      ).catch(refused)
      needs.accepted(clock.monotonic() - from)
    } catch (error) {
      refused(error)
    }
  }

  http.route('OPTIONS', PATH, () => ({ status: 204, headers: PREFLIGHT }), { responseHeaders: CORS })
  http.route('POST', PATH, handle, {
    headers: HEADERS,
    bodyBytesMax: IDENTIFY_BODY_BYTES_MAX,
    deadlineMs: needs.deadlineMs,
    before,
    responseHeaders: CORS,
  })
}
