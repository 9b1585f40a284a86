// How pages speak to the server: one function for every request, what it says when it refuses, and actions of several requests.

import { signal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { notify } from './notices.ts'
import type { Env, SignedIn } from './types.ts'

/** null: nobody is signed in; undefined: not known yet. */
export const session = signal<SignedIn | null | undefined>(undefined)

const ENVIRONMENT = 'fingerpost.environment'
const storedEnvironment = (): Env => (localStorage.getItem(ENVIRONMENT) === 'test' ? 'test' : 'live')
export const environment = signal<Env>(storedEnvironment())

export function chooseEnvironment(env: Env): void {
  localStorage.setItem(ENVIRONMENT, env)
  environment.value = env
}

/** What the server refused, or that it could not be reached (status 0). */
export class RefusedError extends Error {
  readonly status: number
  readonly code: string
  readonly field: string | null
  /** Seconds. */
  readonly retryAfter: number | null

  constructor(status: number, error: { code?: string; message?: string; field?: string; retryAfter?: number }) {
    super(error.message ?? 'The server gave no reason.')
    this.status = status
    this.code = error.code ?? 'unknown'
    this.field = error.field ?? null
    this.retryAfter = error.retryAfter ?? null
  }
}

export type Query = Readonly<Record<string, string | number | boolean | null | undefined>>

export interface RequestOptions {
  readonly method?: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  readonly query?: Query
  readonly body?: unknown
  /** A body that is sent as it is. */
  readonly csv?: string
  readonly signal?: AbortSignal
  /** Default: the one that is chosen. */
  readonly environment?: Env
}

/** What stands behind the path; '' where nothing is asked. Members without a value are left out. */
export function queryString(query: Query = {}): string {
  const given = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined && value !== null && value !== '') given.set(name, String(value))
  }
  const text = given.toString()
  return text === '' ? '' : `?${text}`
}

function headersOf(
  path: string,
  { body, csv, environment: env = environment.value }: RequestOptions,
): Record<string, string> {
  const signedIn = session.value
  return {
    ...(signedIn ? { 'X-Fingerpost-CSRF': signedIn.csrf } : {}),
    ...(path.startsWith('/v1/') ? { 'X-Fingerpost-Environment': env } : {}),
    ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
    ...(csv === undefined ? {} : { 'Content-Type': 'text/csv' }),
  }
}

type Headers = Readonly<Record<string, string>>

/** The answer itself, once its status says that there is one. Throws RefusedError. */
export async function request(path: string, ask: RequestOptions = {}, headers: Headers = {}): Promise<Response> {
  const kept = { ...ask, environment: ask.environment ?? environment.value }
  const csrf = session.value?.csrf
  try {
    return await send(path, kept, headers)
  } catch (error) {
    if (!(await isReplaced(csrf, error))) throw error
    return send(path, kept, headers)
  }
}

/** Whether a call was refused only because another tab has replaced the session, which is read again to tell. */
async function isReplaced(csrf: string | undefined, error: unknown): Promise<boolean> {
  const isForbidden = error instanceof RefusedError && error.code === 'insufficient_permissions'
  if (csrf === undefined || !isForbidden) return false
  if (session.value?.csrf === csrf) await readSession().catch(() => undefined)
  return session.value ? session.value.csrf !== csrf : false
}

async function send(path: string, ask: RequestOptions, headers: Headers): Promise<Response> {
  const { method = 'GET', query, body, csv, signal: aborted } = ask
  let answer: Response
  try {
    answer = await fetch(path + queryString(query), {
      method,
      headers: { ...headersOf(path, ask), ...headers },
      cache: 'no-store',
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      ...(csv === undefined ? {} : { body: csv }),
      ...(aborted === undefined ? {} : { signal: aborted }),
    })
  } catch (error) {
    if (aborted?.aborted) throw error
    throw new RefusedError(0, { code: 'unreachable', message: 'The server cannot be reached.' })
  }
  if (answer.ok) return answer
  const said = (await answer.json().catch(() => ({}))) as { error?: ConstructorParameters<typeof RefusedError>[1] }
  const refusal = new RefusedError(answer.status, said.error ?? {})
  // The session is over: whatever page is open makes way for the sign-in.
  if (refusal.code === 'invalid_session') session.value = null
  throw refusal
}

/** Throws RefusedError. */
export async function call<T>(path: string, ask: RequestOptions = {}): Promise<T> {
  return (await (await request(path, ask)).json()) as T
}

type Work<T> = (env: Env, hasGone: () => boolean) => Promise<T>

/**
 * For actions of several calls. `work` makes all of them in the environment it is given, the one in which the action begins: another may be
 * chosen before the last. What fails after the page of the action has gone is told on the page that is open then.
 */
export function useLongAct(): <T>(what: string, work: Work<T>) => Promise<T> {
  const hasGone = useRef(false)
  useEffect(
    () => () => {
      hasGone.current = true
    },
    [],
  )
  return async (what, work) => {
    try {
      return await work(environment.value, () => hasGone.current)
    } catch (error) {
      if (hasGone.current) notify(`${what}: ${(error as Error).message}`)
      throw error
    }
  }
}

/** The same request for a terminal; the key comes from the environment. */
export function curlOf(path: string, { method = 'GET', query, body }: RequestOptions = {}): string {
  const url = session.value?.serviceUrl ?? location.origin
  const key = environment.value === 'test' ? 'FINGERPOST_TEST_SECRET_KEY' : 'FINGERPOST_SECRET_KEY'
  const quoted = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`
  return [
    `curl ${method === 'GET' ? '' : `-X ${method} `}${quoted(url + path + queryString(query))}`,
    `-H "Authorization: Bearer $${key}"`,
    ...(body === undefined ? [] : [`-H 'Content-Type: application/json'`, `-d ${quoted(JSON.stringify(body))}`]),
  ].join(' \\\n  ')
}

export const can = (scope: string): boolean => session.value?.scopes.some((own) => own === scope) === true

/** Reads who is signed in; null when nobody is. */
export async function readSession(): Promise<void> {
  try {
    session.value = await call<SignedIn>('/console/api/session')
  } catch (error) {
    if (error instanceof RefusedError && error.status === 401) session.value = null
    else throw error
  }
}
