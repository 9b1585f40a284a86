// POST /v1/identify on the wire (src/docs/contract.md, Identification): who calls, in which form, and every answer it can get.

import { ApiError, invalid } from '../domain/errors.ts'
import { EVIDENCE_HEADERS, IDENTIFY_BODY_BYTES_MAX } from '../domain/identify.ts'
import type { Cidr } from '../domain/ip.ts'
import { packTrace, readTrace, readTraceparent, TRACEPARENT, type Trace } from '../domain/trace.ts'
import type { Answer, HttpHeader, HttpRequest, HttpResponse, Present } from '../http/message.ts'
import type { Http } from '../http/server.ts'
import type { Parsers } from '../identity/parsers.ts'
import type { Clock } from '../lib/clock.ts'
import { type Auth, bearer, type Caller, permit, permitOrigin } from '../records/auth.ts'
import { bodyHashOf, factsOf } from '../records/identification.ts'
import { readIdentify } from './body.ts'
import { findClient, type RequestClient } from './client-address.ts'
import { cookieOf, credentialHeaders, endedCookie, firstPartyOrigin, tokenInCookies } from './cookie.ts'
import { evidenceOf, type HandedBack, type HandedOver, type OtherShards, partitionNamedBy } from './hand-over.ts'
import { partitionSeemingIn } from './hardware-in-body.ts'
import type { ProxyWatch } from './proxy-watch.ts'
import type { TakeIngress } from './rates.ts'
import type { AcceptOutcome, Answering } from './repeats.ts'

export interface IdentifyNeeds {
  readonly http: Pick<Http, 'route'>
  readonly auth: Auth
  readonly accept: Answering
  readonly takeIngress: TakeIngress
  readonly clock: Clock
  /** Told how long reading, checking and stamping took. */
  readonly accepted: (ms: number, trace: string | null) => void
  readonly trustedProxies: readonly Cidr[]
  readonly proxyWatch: Pick<ProxyWatch, 'saw'>
  /** The domain of the first-party cookie; '' is the host that answers, and no other. */
  readonly cookieDomain: string
  readonly retentionDays: (workspace: string) => number
  /** Time for the body to arrive, milliseconds, besides the time a decision may take. */
  readonly deadlineMs: number
  readonly present: Present
  readonly partitions: number
  readonly parsers: Parsers
  readonly otherShards: OtherShards
}

const PATH = '/v1/identify'
const FORGET_PATH = `${PATH}/forget`
// Only here: no other endpoint is for browsers.
const CORS: readonly HttpHeader[] = [
  ['Access-Control-Allow-Origin', '*'],
  ['Access-Control-Expose-Headers', 'Retry-After, Idempotent-Replayed, X-Request-Id'],
]
const PREFLIGHT: readonly HttpHeader[] = [
  ['Access-Control-Allow-Methods', 'POST, OPTIONS'],
  ['Access-Control-Allow-Headers', 'Authorization, Content-Type, Traceparent'],
  ['Access-Control-Max-Age', '86400'],
]
const NONCE_INSTEAD = 'Idempotency-Key does not count here: send a nonce in the body, the same one in every repetition.'
const NO_STORE: HttpHeader = ['Cache-Control', 'no-store']
const REPLAYED: HttpHeader = ['Idempotent-Replayed', 'true']
const OF_ANSWERS: readonly HttpHeader[] = [NO_STORE]
const OF_REPEATS: readonly HttpHeader[] = [NO_STORE, REPLAYED]
/** What a body says that was not sent. */
const NO_MEMBERS = Buffer.from('{}')
const IDEMPOTENCY_KEY = 'idempotency-key'
const OWN_HEADERS = [
  'authorization',
  'content-encoding',
  'content-type',
  'cookie',
  'host',
  'origin',
  TRACEPARENT,
  'x-forwarded-for',
]
const HEADERS = [...EVIDENCE_HEADERS, ...OWN_HEADERS, IDEMPOTENCY_KEY]

interface Context {
  /** As it was sent. */
  readonly key: string
  readonly caller: Caller
  readonly client: RequestClient
  /** The page may have the first-party cookie. */
  isFirstParty: boolean
  readonly trace: Trace | null
}

/** A call as it is served, wherever it arrived. */
interface Call {
  readonly context: Context
  /** There until the call returns. */
  readonly bytes: Uint8Array
  /** What `bodyHashOf` makes of them; null: nobody has asked. */
  readonly bodyHash: number | null
  readonly cookieToken: string | null
  readonly header: (name: string) => string
  readonly check: (() => void) | null
}

/** Nothing but a key, or nothing at all. */
const isPlain = (query: string): boolean => query === '' || (query.startsWith('key=') && !query.includes('&'))

/** The key of the query string; null when there is none. Anything else in the query is refused later, in its turn. */
function queryKey(query: string): string | null {
  if (query === '') return null
  return isPlain(query) ? decodeQueryValue(query.slice(4)) : new URLSearchParams(query).get('key')
}

function decodeQueryValue(text: string): string {
  return /[%+]/.test(text) ? (new URLSearchParams(`key=${text}`).get('key') ?? '') : text
}

function checkQuery(query: string): void {
  if (isPlain(query)) return
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

  function admit(request: HttpRequest): HttpResponse | null | Promise<null> {
    try {
      const header = request.header('authorization')
      const fromQuery = header === ''
      const key = fromQuery ? queryKey(request.query) : bearer(header)
      const client = clientOf(request)
      const caller = auth.authenticate(fromQuery && key?.startsWith('pk_') !== true ? null : key, client.address)
      const trace = readTraceparent(request.header('traceparent'))
      request.context = { key: key ?? '', caller, client, isFirstParty: false, trace } satisfies Context
      const taken = needs.takeIngress(caller, client.address)
      if (taken !== null) return taken.then(() => admitCaller(request, caller, fromQuery))
      return admitCaller(request, caller, fromQuery)
    } catch (error) {
      return present(error, request.context)
    }
  }

  function admitCaller(request: HttpRequest, caller: Caller, fromQuery: boolean): null {
    permit(caller, 'identify')
    const origin = request.header('origin')
    if (caller.key.kind === 'public' && origin !== '') {
      permitOrigin(caller, origin)
      const ours = firstPartyOrigin(caller, origin, request.header('host'))
      if (ours !== null) {
        const context = request.context as Context
        context.isFirstParty = true
        request.answerHeaders = credentialHeaders(ours)
      }
    }
    const contentType = request.header('content-type')
    // A call without a body has no type. Whether it has one is known when it has been read.
    if (contentType === '') return null
    if (request.hasHeader('content-encoding')) throw new ApiError('unsupported_media_type')
    checkMediaType(contentType, fromQuery)
    return null
  }

  function decidedAnswer(context: Context, outcome: AcceptOutcome, replayed: boolean): HttpResponse {
    const { caller, isFirstParty } = context
    if ('failure' in outcome) return present(outcome.failure, context)
    const headers = replayed ? OF_REPEATS : OF_ANSWERS
    const cookie = isFirstParty ? cookieOf(outcome.body, caller.env, needs.cookieDomain) : null
    return { status: 200, body: outcome.body, headers: cookie === null ? headers : [...headers, cookie] }
  }

  /** `check`: what else may be wrong with the call, behind what may be wrong with its body. Answers once, unless it throws. */
  function serveCall({ context, bytes, bodyHash, cookieToken, header, check }: Call, answer: Answer): void {
    const { caller, client, trace } = context
    const packed = trace === null ? null : packTrace(trace)
    const from = clock.monotonic()
    const days = needs.retentionDays(caller.workspace.id)
    const { body, atMs, ip, mockIp } = readIdentify(bytes, caller, clock.now(), days)
    check?.()
    // Who names the address of its own client is no visitor.
    if (caller.key.kind === 'public' && (mockIp ?? ip) === null) needs.proxyWatch.saw(client, header('user-agent'))
    accept(
      {
        caller,
        body,
        bytes,
        facts: factsOf(bytes, body, bodyHash),
        atMs,
        ip: mockIp ?? ip ?? client.address,
        hopsBefore: client.hopsBefore,
        cookieToken,
        trace: packed,
        header,
      },
      (outcome, replayed) => answer(decidedAnswer(context, outcome, replayed)),
      (requestId) =>
        answer({
          status: 202,
          body: JSON.stringify({ requestId, status: 'pending' }),
          headers: [NO_STORE, ['Retry-After', '1']],
        }),
    ).catch((error) => answer(present(error, context)))
    needs.accepted(clock.monotonic() - from, packed)
  }

  /** As far as its bytes say it. A server may speak for other hardware than its headers show. */
  function partitionSaidBy(request: HttpRequest, caller: Caller, cookieToken: string | null): number | null {
    const { partitions, parsers } = needs
    const named = partitionNamedBy(request.body, cookieToken, partitions)
    if (named !== null || caller.key.kind === 'secret') return named
    return partitionSeemingIn(request.body, caller, (name) => request.header(name), parsers, partitions)
  }

  /** Throws where something was sent without saying what. */
  function bodyOf(request: HttpRequest): Uint8Array {
    if (request.body.length === 0) return NO_MEMBERS
    if (request.header('content-type') === '') throw new ApiError('unsupported_media_type')
    return request.body
  }

  /** Gives the call to the shard that decides it; false where it is served here. */
  function isHandedOver(request: HttpRequest, bytes: Uint8Array, cookieToken: string | null, answer: Answer): boolean {
    // What is wrong with the call besides its body is refused behind it, here.
    if (!isPlain(request.query) || request.hasHeader(IDEMPOTENCY_KEY)) return false
    const context = request.context as Context
    const handOver = needs.otherShards.wayFor(() => partitionSaidBy(request, context.caller, cookieToken))
    if (handOver === null) return false
    const { key, client, isFirstParty, trace } = context
    const { address, hopsBefore } = client
    const call: HandedOver = {
      key,
      address,
      hopsBefore,
      isFirstParty,
      cookieToken,
      trace: trace === null ? null : packTrace(trace),
      evidence: EVIDENCE_HEADERS.map((name) => request.header(name)),
      body: bytes,
      bodyHash: bodyHashOf(bytes),
    }
    handOver(call, (outcome) => answer(outcome instanceof Error ? present(outcome, context) : outcome))
    return true
  }

  function handle(request: HttpRequest, answer: Answer): HttpResponse | undefined {
    const context = request.context as Context
    const { caller, isFirstParty } = context
    const cookieToken = isFirstParty ? tokenInCookies(request.header('cookie'), caller.env) : null
    function check(): void {
      checkQuery(request.query)
      if (request.hasHeader(IDEMPOTENCY_KEY)) throw invalid('nonce', NONCE_INSTEAD)
    }
    const header = (name: string) => request.header(name)
    try {
      const bytes = bodyOf(request)
      if (isHandedOver(request, bytes, cookieToken, answer)) return undefined
      serveCall({ context, bytes, bodyHash: null, cookieToken, header, check }, answer)
    } catch (error) {
      return present(error, context)
    }
    return undefined
  }

  /** Another shard has admitted it; its key may have been revoked on the way. */
  function serveHandedOver(call: HandedOver, giveBack: (outcome: HandedBack) => void): void {
    const { key, address, hopsBefore, isFirstParty, cookieToken, body, bodyHash } = call
    // Whatever answers a call here is a text.
    const answer = (outcome: HttpResponse | Error) => giveBack(outcome as HandedBack)
    let context: Context | undefined
    try {
      const caller = auth.authenticate(key, address)
      const trace = call.trace === null ? null : readTrace(call.trace)
      context = { key, caller, client: { address, hopsBefore }, isFirstParty, trace }
      serveCall({ context, bytes: body, bodyHash, cookieToken, header: evidenceOf(call), check: null }, answer)
    } catch (error) {
      answer(present(error, context))
    }
  }
  needs.otherShards.answer(serveHandedOver)

  /** Ends the cookie, which no script of the page can; the visitor itself stays known. */
  function forget(request: HttpRequest): HttpResponse {
    const { caller, isFirstParty } = request.context as Context
    try {
      checkQuery(request.query)
    } catch (error) {
      return present(error, { caller })
    }
    const headers = isFirstParty ? [NO_STORE, endedCookie(caller.env, needs.cookieDomain)] : OF_ANSWERS
    return { status: 204, headers }
  }

  http.route('OPTIONS', FORGET_PATH, () => ({ status: 204, headers: PREFLIGHT }), { responseHeaders: CORS })
  http.route('POST', FORGET_PATH, forget, { headers: HEADERS, bodyBytesMax: 64, before: admit, responseHeaders: CORS })
  http.route('OPTIONS', PATH, () => ({ status: 204, headers: PREFLIGHT }), { responseHeaders: CORS })
  http.route('POST', PATH, handle, {
    headers: HEADERS,
    bodyBytesMax: IDENTIFY_BODY_BYTES_MAX,
    borrowBody: true,
    deadlineMs: needs.deadlineMs,
    before: admit,
    responseHeaders: CORS,
  })
}
