// Who is signed in, from a request's cookie: the session, the person as it is now, and the caller it acts as on every route. A request
// that a page of another origin made is refused before anything is done.

import { ApiError } from '../../domain/errors.ts'
import type { Env } from '../../domain/event.ts'
import { scopesOfRole } from '../../domain/person.ts'
import type { Workspace } from '../../domain/workspace.ts'
import type { HttpHeader } from '../../http/message.ts'
import type { Kv } from '../../kv/kv.ts'
import { sameText } from '../../lib/same-text.ts'
import type { Caller } from '../../records/auth.ts'
import type { KeyDirectory } from '../../records/key-directory.ts'
import { readPerson, type StoredPerson } from '../../records/people.ts'
import type { Cookies } from './cookies.ts'
import { csrfOf, type Session, type Sessions } from './sessions.ts'

const CSRF_HEADER = 'x-fingerpost-csrf'
const ENVIRONMENT_HEADER = 'x-fingerpost-environment'
const ORIGIN_HEADERS = ['host', 'origin', 'sec-fetch-site'] as const
/** Of a request that may have a session. */
export const SESSION_HEADERS: readonly string[] = ['cookie', ...ORIGIN_HEADERS, CSRF_HEADER, ENVIRONMENT_HEADER]
const RETRY_AFTER_SECONDS = 5
/** No page of another origin may frame, read or keep what the console is told. */
export const CONSOLE_ANSWER_HEADERS: readonly HttpHeader[] = [
  ['X-Frame-Options', 'DENY'],
  ['Content-Security-Policy', "default-src 'none'; frame-ancestors 'none'"],
  ['X-Content-Type-Options', 'nosniff'],
  ['Referrer-Policy', 'no-referrer'],
  ['Cross-Origin-Resource-Policy', 'same-origin'],
]

export type HeaderOf = (name: string) => string

export interface SignedIn {
  readonly token: string
  readonly session: Session
  readonly person: StoredPerson
  readonly workspace: Workspace
}

export interface SessionGuard {
  /** Whether the request comes with a session and without a key. */
  has(header: HeaderOf): boolean
  /** Throws invalid_session, origin_not_allowed, insufficient_permissions, or unavailable when nobody can tell. */
  signedIn(header: HeaderOf, needsCsrf: boolean): Promise<SignedIn>
  /** The same while a request is being answered, for hours perhaps: nobody need be there, so it keeps no session alive. */
  stillSignedIn(header: HeaderOf, needsCsrf: boolean): Promise<SignedIn>
  /** Throws origin_not_allowed for what a page of another origin asked. */
  refuseForeign(header: HeaderOf): void
}

export interface GuardNeeds {
  readonly kv: Pick<Kv, 'get'>
  readonly sessions: Pick<Sessions, 'find' | 'use'>
  readonly directory: Pick<KeyDirectory, 'workspace' | 'isFresh' | 'isWiped'>
  readonly cookies: Cookies
  /** Where the console is, besides the host that a request names. */
  readonly origin: () => string
}

export interface SignedInCaller extends Caller {
  readonly signedIn: SignedIn
}

/** Acts with the scopes of the role, under the person's id. */
export function callerOf(signedIn: SignedIn, header: HeaderOf): SignedInCaller {
  const { person, workspace } = signedIn
  const asked = header(ENVIRONMENT_HEADER)
  if (asked !== '' && asked !== 'live' && asked !== 'test') {
    throw new ApiError('validation_error', { field: ENVIRONMENT_HEADER, message: 'Must be live or test.' })
  }
  const env: Env = asked === 'test' ? 'test' : 'live'
  const key: Caller['key'] = {
    ...{ id: person.id, workspace: workspace.id, env, kind: 'secret', digest: '', last4: '', label: person.name },
    ...{ scopes: scopesOfRole(person.role), origins: null, expiresAt: null, revokedAt: null },
    createdAt: person.createdAt,
  }
  return { key, person: { role: person.role }, workspace, env, signedIn }
}

export function openGuard({ kv, sessions, directory, cookies, origin }: GuardNeeds): SessionGuard {
  function refuseForeign(header: HeaderOf): void {
    const [host, from, site] = ORIGIN_HEADERS.map(header) as [string, string, string]
    const isOwn = from === '' || from === origin() || (URL.canParse(from) && new URL(from).host === host)
    if (isOwn && (site === '' || site === 'same-origin' || site === 'none')) return
    throw new ApiError('origin_not_allowed', { message: 'Only the pages of the console may ask this.' })
  }

  async function whoIs(header: HeaderOf, needsCsrf: boolean, sessionOf: Sessions['find']): Promise<SignedIn> {
    refuseForeign(header)
    const token = cookies.session(header('cookie'))
    if (token === '') throw new ApiError('invalid_session')
    if (needsCsrf && !sameText(header(CSRF_HEADER), csrfOf(token))) {
      throw new ApiError('insufficient_permissions', { message: 'X-Fingerpost-CSRF is missing or wrong.' })
    }
    const session = await sessionOf(token)
    const person = session === null ? null : await readPerson(kv, session.personId)
    if (directory.isWiped() || !directory.isFresh()) {
      throw new ApiError('unavailable', { retryAfter: RETRY_AFTER_SECONDS })
    }
    const workspace = person === null ? null : directory.workspace(person.workspace)
    const isOver = session === null || person === null || session.passwordAt !== person.passwordAt
    if (isOver || workspace === null) throw new ApiError('invalid_session')
    return { token, session, person, workspace }
  }

  return {
    has: (header) => header('authorization') === '' && cookies.session(header('cookie')) !== '',
    refuseForeign,
    signedIn: (header, needsCsrf) => whoIs(header, needsCsrf, sessions.use),
    stillSignedIn: (header, needsCsrf) => whoIs(header, needsCsrf, sessions.find),
  }
}
