// The shape of the REST surface: one row per endpoint. A resource is a file that returns its rows; `registerRoutes` in
// api.ts gives each row the checks all endpoints share, in the order the contract promises.
//
// To add an endpoint, add a row with `keyed` (API keys), `operated` (operator token), `signedIn` (console) or `open` (no key):
//   keyed({
//     method: 'GET',
//     doc: THING_DOCS.one,               // what it answers, see describe.ts; without it a test fails, not the compiler
//     path: '/v1/things/:thingId',       // params arrive as sent; what names nothing is not_found
//     access: 'rules:read',              // the scope a key needs; 'any-key' for none in particular
//     query: Type.Object({ limit: … }),  // flat object of string, integer, number, boolean; unknown names are refused
//     body: Type.Object({ … }),          // only where there is one; must be strict (additionalProperties: false)
//     once: KEEP_ALL,                    // where it creates something: an Idempotency-Key counts
//     handle: async (call) => ({ body: { … } }),
//   })
// `handle` throws ApiError for refusals. It returns plain data; status 200 and JSON are the default.

import type { Role } from '../domain/person.ts'
import type { Static, TSchema } from '../domain/schema.ts'
import type { KeyScope } from '../domain/workspace.ts'
import type { HttpHeader, HttpRequest } from '../http/message.ts'
import type { HttpStream } from '../http/stream.ts'
import type { Caller } from '../records/auth.ts'
import type { SignedInCaller } from './console/guard.ts'
import type { RouteDoc } from './describe.ts'

export type RouteMethod = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
export type Access = KeyScope | 'any-key' | 'operator' | 'session' | 'none'

export interface RouteReply {
  /** Default 200. */
  readonly status?: number
  readonly headers?: readonly HttpHeader[]
  readonly body: unknown
  /** Instead of a body: server-sent events, for as long as both sides like. */
  readonly stream?: (stream: HttpStream) => void
  /** Instead of a body: a text that is made while it leaves. */
  readonly text?: RouteText
}

export interface RouteText {
  readonly contentType: string
  readonly head: string
  readonly rest: AsyncGenerator<string, void>
}

export interface RouteCall<Body = unknown, Query = unknown> {
  readonly params: Readonly<Record<string, string>>
  readonly query: Query
  readonly body: Body
  /** Of the names the row lists in `headers`; '' when absent. */
  header(name: string): string
  /** Of the client. */
  readonly address: string
  /** True once nobody waits for the answer. */
  aborted(): boolean
  /** Calls `listener` when that comes true before the answer is given. */
  whenAborted(listener: () => void): void
  /** Of a request with an Idempotency-Key what ids are derived from, the same in every repetition; else null. */
  readonly seed: string | null
}
export interface KeyedCall<Body = unknown, Query = unknown> extends RouteCall<Body, Query> {
  readonly caller: Caller
}

export interface SignedInCall<Body = unknown, Query = unknown> extends RouteCall<Body, Query> {
  readonly caller: SignedInCaller
}

/** What is kept of an answer's body and how it is made of that again; secrets are not kept. */
export interface Keeping {
  readonly keep: (body: unknown) => unknown
  /** Throws ApiError where what was made is not to be shown any more. */
  readonly show: (kept: unknown, call: KeyedCall) => Promise<unknown> | unknown
}

interface RowOf<BodySchema extends TSchema, QuerySchema extends TSchema, A extends Access, C> {
  readonly method: RouteMethod
  /** What the OpenAPI document and the reference say of it. */
  readonly doc?: RouteDoc
  readonly path: string
  readonly access: A
  readonly query?: QuerySchema
  readonly body?: BodySchema
  /** Of other methods than POST, whose body of no bytes always counts as `{}`. Default false: it is no JSON. */
  readonly bodyMayBeEmpty?: boolean
  /** Turns a body of type text/csv into what the schema describes. Default: only JSON is accepted. */
  readonly csv?: (text: string) => unknown
  /** Default 262,144. */
  readonly bodyBytesMax?: number
  /** Further request headers `handle` reads, lower case. */
  readonly headers?: readonly string[]
  readonly deadlineMs?: number
  /** Of a person, besides the scope. Default: any. */
  readonly leastRole?: Role
  /** false: a session's cookie is enough. Default true. */
  readonly csrf?: boolean
  /**
   * The request may carry an Idempotency-Key: `handle` makes its ids with `newId`, so that it can be repeated. What is kept of
   * the answer must hold no secret. Default: the header is ignored.
   */
  readonly once?: Keeping
  readonly handle: (call: C) => RouteReply | Promise<RouteReply>
}

/** Whether a body of no bytes counts as `{}`. */
export const mayLackBody = ({ method, bodyMayBeEmpty = false }: Pick<ApiRoute, 'method' | 'bodyMayBeEmpty'>): boolean =>
  method === 'POST' || bodyMayBeEmpty

export type ApiRoute = RowOf<TSchema, TSchema, Access, KeyedCall>

export function keyed<B extends TSchema, Q extends TSchema>(
  row: RowOf<B, Q, KeyScope | 'any-key', KeyedCall<Static<B>, Static<Q>>>,
): ApiRoute {
  return row as unknown as ApiRoute
}

export function operated<B extends TSchema, Q extends TSchema>(
  row: Omit<RowOf<B, Q, 'operator', RouteCall<Static<B>, Static<Q>>>, 'access'>,
): ApiRoute {
  return { ...row, access: 'operator' } as unknown as ApiRoute
}

/** For people who are signed in, not for keys. */
export function signedIn<B extends TSchema, Q extends TSchema>(
  row: Omit<RowOf<B, Q, 'session', SignedInCall<Static<B>, Static<Q>>>, 'access'>,
): ApiRoute {
  return { ...row, access: 'session' } as unknown as ApiRoute
}

export function open<B extends TSchema, Q extends TSchema>(
  row: Omit<RowOf<B, Q, 'none', RouteCall<Static<B>, Static<Q>>>, 'access'>,
): ApiRoute {
  return { ...row, access: 'none' } as unknown as ApiRoute
}

/** Which part of a request identifies the client; the socket's peer unless proxies are trusted. */
export type AddressOf = (request: HttpRequest) => string
