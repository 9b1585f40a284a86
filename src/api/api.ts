// Puts the rows of the route table on the server. The order of checks is the contract's: route and method (the server's
// part), key, rate limit, scope, media type and size, then parsing, validation and the handler.

import { ApiError } from '../domain/errors.ts'
import { readTraceparent, TRACEPARENT, type Trace } from '../domain/trace.ts'
import { parseJson } from '../http/json-body.ts'
import type { HttpRequest, HttpResponse } from '../http/message.ts'
import type { Http } from '../http/server.ts'
import { decodeUtf8 } from '../http/utf8.ts'
import type { Clock } from '../lib/clock.ts'
import { must } from '../lib/must.ts'
import { validator } from '../lib/validate.ts'
import { type Auth, bearer, type Caller, permit, permitRole } from '../records/auth.ts'
import { tenantScope } from '../records/scopes.ts'
import type { Operator } from './admin/operator.ts'
import { whileAllowed } from './allowed-stream.ts'
import { ACCEPT_ENCODING } from './coding.ts'
import { compressed } from './compressed.ts'
import { CONSOLE_ANSWER_HEADERS, callerOf, SESSION_HEADERS, type SessionGuard } from './console/guard.ts'
import type { Idempotency, KeyOwner } from './idempotency.ts'
import type { PacedSteps } from './paced-steps.ts'
import { presentReply, presentStream, presentText } from './present.ts'
import { queryParser } from './query.ts'
import { type Permission, rateClassOf, type TakeRate } from './rate-limits.ts'
import { type AddressOf, type ApiRoute, type KeyedCall, mayLackBody } from './routes.ts'

const BODY_BYTES_MAX = 262_144
/** Where no body is expected one is read and ignored, as long as it is small. */
const IGNORED_BODY_BYTES_MAX = 4_096
const JSON_TYPE = /^application\/json(?:\s*;\s*charset="?utf-8"?)?\s*$/i
const CSV_TYPE = /^text\/csv(?:\s*;\s*(?:charset="?utf-8"?|header=(?:present|absent)))*\s*$/i
const NOT_ENCODED = { message: 'A body is taken as it is: without Content-Encoding.' }
const IDEMPOTENCY_KEY = 'idempotency-key'
const HEADERS = [
  'authorization',
  'content-type',
  'content-encoding',
  'content-length',
  'transfer-encoding',
  ACCEPT_ENCODING,
]

export interface ApiNeeds {
  readonly auth: Auth
  /** null: rows with access 'operator' do not exist. */
  readonly operator: Operator | null
  /** How much a key may ask; null: anything. */
  readonly takeRate: TakeRate | null
  readonly idempotency: Idempotency
  readonly clock: Pick<Clock, 'monotonic' | 'sleep'>
  /** For what is long to write. */
  readonly turns: PacedSteps
  /** null: people cannot sign in here, and cookies are ignored. Rows with access 'session' do not exist then. */
  readonly guard?: SessionGuard | null
  /** Who the client is; the socket's peer by default. */
  readonly addressOf?: AddressOf
  /** Headers `addressOf` reads, lower case. */
  readonly addressHeaders?: readonly string[]
}

/** Adds the rows to the server, in the tick in which it was opened. */
export function registerRoutes(http: Pick<Http, 'route'>, routes: readonly ApiRoute[], needs: ApiNeeds): void {
  for (const route of routes) {
    if (route.access === 'operator' && needs.operator === null) continue
    if (route.access === 'session' && (needs.guard ?? null) === null) continue
    const { before, handler } = serve(route, needs)
    http.route(route.method, route.path, handler, {
      before,
      headers: [
        ...HEADERS,
        ...((needs.guard ?? null) === null ? [] : SESSION_HEADERS),
        ...(needs.addressHeaders ?? []),
        TRACEPARENT,
        ...(route.headers ?? []),
        ...(route.once === undefined ? [] : [IDEMPOTENCY_KEY]),
      ],
      bodyBytesMax: route.body === undefined ? IGNORED_BODY_BYTES_MAX : (route.bodyBytesMax ?? BODY_BYTES_MAX),
      ...(route.deadlineMs === undefined ? {} : { deadlineMs: route.deadlineMs }),
      ...(isOfConsole(route) ? { responseHeaders: CONSOLE_ANSWER_HEADERS } : {}),
    })
  }
}

/** What a failure is told with. */
interface CallContext {
  readonly caller: Caller
  readonly trace: Trace | null
}
const contextOf = (request: HttpRequest, caller: Caller): CallContext => ({
  caller,
  trace: readTraceparent(request.header('traceparent')),
})

const isOfConsole = ({ path }: ApiRoute): boolean => path.startsWith('/console/')
const peerAddress: AddressOf = (request) => request.remoteAddress()

function serve(route: ApiRoute, needs: ApiNeeds) {
  const { auth, operator, takeRate, idempotency, turns, clock, guard = null, addressOf = peerAddress } = needs
  const { access, handle, once } = route
  const rateClass = rateClassOf(route.path)
  const readQuery = queryParser(route.query)
  const readBody = bodyReader(route)
  const isCsv = (request: HttpRequest) => route.csv !== undefined && CSV_TYPE.test(request.header('content-type'))

  function before(request: HttpRequest): null | Promise<null> {
    if (access === 'operator') operator?.authorise(request.header('authorization'), addressOf(request))
    else if (access === 'session' || (access !== 'none' && guard?.has((name) => request.header(name)) === true)) {
      return bySession(request)
    } else if (access !== 'none') {
      const caller = auth.authenticate(bearer(request.header('authorization')), addressOf(request))
      request.context = contextOf(request, caller)
      const permission = rateClass === null ? null : (takeRate?.(caller, rateClass) ?? null)
      if (permission !== null) return withinRate(request, caller, permission)
      permitScope(caller)
    }
    return checkMediaType(request)
  }

  async function bySession(request: HttpRequest): Promise<null> {
    // Asked while the client is certainly there.
    request.remoteAddress()
    if (!isOfConsole(route)) request.answerHeaders = CONSOLE_ANSWER_HEADERS
    const header = (name: string) => request.header(name)
    const caller = callerOf(await must(guard, 'a guard').signedIn(header, route.csrf ?? true), header)
    request.context = contextOf(request, caller)
    const permission = rateClass === null ? null : (takeRate?.(caller, rateClass) ?? null)
    if (permission !== null) return withinRate(request, caller, permission)
    permitScope(caller)
    return checkMediaType(request)
  }

  async function withinRate(request: HttpRequest, caller: Caller, permission: Promise<Permission>): Promise<null> {
    const { headers, refusal } = await permission
    request.answerHeaders = [...request.answerHeaders, ...headers]
    if (refusal !== null) throw refusal
    permitScope(caller)
    return checkMediaType(request)
  }

  function permitScope(caller: Caller): void {
    if (access !== 'any-key' && access !== 'operator' && access !== 'session' && access !== 'none')
      permit(caller, access)
    if (route.leastRole !== undefined) permitRole(caller, route.leastRole)
  }

  /** Throws when the request would be refused by now. */
  function permitAgain(request: HttpRequest): () => Promise<void> {
    const values = new Map(['authorization', ...SESSION_HEADERS].map((name) => [name, request.header(name)]))
    const header = (name: string) => values.get(name) ?? ''
    const address = addressOf(request)
    return async () => {
      if (guard?.has(header) === true)
        permitScope(callerOf(await guard.stillSignedIn(header, route.csrf ?? true), header))
      else if (access !== 'none') permitScope(auth.authenticate(bearer(header('authorization')), address))
    }
  }

  function checkMediaType(request: HttpRequest): null {
    if (route.body !== undefined && request.hasHeader('content-encoding'))
      throw new ApiError('unsupported_media_type', NOT_ENCODED)
    const isJson = JSON_TYPE.test(request.header('content-type'))
    if (route.body !== undefined && hasBody(request) && !isJson && !isCsv(request)) {
      throw new ApiError('unsupported_media_type')
    }
    return null
  }

  function ownerOf(caller: Caller): KeyOwner {
    if (access === 'operator') return must(operator, 'an operator').keyOwner
    const { workspace, env } = caller
    return { scope: tenantScope(workspace.id, env), name: `${workspace.id}/${env}`, secret: workspace.tokenSecret }
  }

  async function handler(request: HttpRequest): Promise<HttpResponse> {
    const bytes = request.body
    const body = readBody(bytes, isCsv(request))
    const call: KeyedCall = {
      // Rows without a key never look at it; the types of `keyed` and its siblings see to that.
      caller: (request.context as CallContext | undefined)?.caller as Caller,
      seed: null,
      params: request.params,
      query: readQuery(request.query),
      body: body(),
      header: (name) => request.header(name),
      address: addressOf(request),
      aborted: () => request.aborted(),
      whenAborted: (listener) => request.whenAborted(listener),
    }
    const key = once !== undefined && request.hasHeader(IDEMPOTENCY_KEY) ? request.header(IDEMPOTENCY_KEY) : null
    const reply =
      once === undefined || key === null
        ? await handle(call)
        : await idempotency.once(
            { owner: ownerOf(call.caller), method: request.method, path: request.path, key, body: bytes },
            once.keep,
            (kept, seed) => once.show(kept, { ...call, seed }),
            async (seed) => handle({ ...call, seed }),
          )
    if (reply.stream !== undefined) return presentStream(whileAllowed(reply.stream, permitAgain(request), clock))
    const headers = reply.headers ?? []
    const answer =
      reply.text === undefined
        ? presentReply(reply.status ?? 200, reply.body, headers, turns)
        : presentText(reply.text, headers)
    return compressed(answer, request.header(ACCEPT_ENCODING))
  }

  return { before, handler }
}

const hasBody = (request: HttpRequest): boolean => {
  const length = request.header('content-length')
  return request.header('transfer-encoding') !== '' || (length !== '' && length !== '0')
}

/** Parsing comes before the validation of anything, so it is done at once and validation is returned for later. */
function bodyReader(route: ApiRoute): (bytes: Uint8Array, isCsv: boolean) => () => unknown {
  const { body: schema, csv } = route
  if (schema === undefined) return () => () => undefined
  const check: (data: unknown) => void = validator(schema)
  const parse = (bytes: Uint8Array, isCsv: boolean): unknown => {
    if (mayLackBody(route) && bytes.length === 0) return {}
    if (csv === undefined || !isCsv) return parseJson(bytes, 'refuse')
    const text = decodeUtf8(bytes)
    if (text === null) throw new ApiError('validation_error', { field: 'body', message: 'Must be UTF-8.' })
    return csv(text)
  }
  return (bytes, isCsv) => {
    const value = parse(bytes, isCsv)
    return () => {
      check(value)
      return value
    }
  }
}
