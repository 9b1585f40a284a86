// Who is calling: from the text of a key to its owner, and what that owner may do. Shared by every public entrance.

import { ApiError } from '../domain/errors.ts'
import type { Env } from '../domain/event.ts'
import { isWellFormed } from '../domain/keys.ts'
import { isAtLeast, type Role } from '../domain/person.ts'
import { type ApiKey, DEFAULT_SCOPES, type KeyScope, type Workspace } from '../domain/workspace.ts'
import type { Clock } from '../lib/clock.ts'
import { MINUTE_MS } from '../lib/durations.ts'
import type { KeyDirectory } from './key-directory.ts'
import { isLive, keyDigest } from './keys.ts'

const FAILURES_PER_MINUTE_MAX = 60
/** Addresses remembered within one minute; the oldest make room. */
const ADDRESSES_MAX = 10_000
const RETRY_AFTER_STALE_SECONDS = 5
/** Keys remembered by their text; beyond them all are looked up anew as they come. */
const CALLERS_MAX = 10_000

export interface Caller {
  /** Of a person the scopes of the role, under the person's id; it is stored nowhere. */
  readonly key: ApiKey
  /** Who acts through the console; absent: a key. */
  readonly person?: { readonly role: Role }
  readonly workspace: Workspace
  readonly env: Env
}

export interface Auth {
  /**
   * The owner of a key. `keyText` null: none was sent; `address` is the client's.
   * Throws invalid_api_key, rate_limited (failing callers only), or unavailable when keys cannot be confirmed.
   */
  authenticate(keyText: string | null, address: string): Caller
}

/** The token of `Authorization: Bearer <token>`, or null. */
export function bearer(header: string): string | null {
  const parts = /^bearer +([^\s]+) *$/i.exec(header)
  return parts?.[1] ?? null
}

/** Counts failed attempts by address and wall-clock minute, in bounded memory. */
export function openFailures(clock: Clock, perMinuteMax: number = FAILURES_PER_MINUTE_MAX) {
  let minute = -1
  const counts = new Map<string, number>()

  return {
    /** The error for one more failure from this address: `error`, or rate_limited above the maximum. */
    count(address: string, error: ApiError): ApiError {
      const now = clock.now()
      const current = Math.floor(now / MINUTE_MS)
      if (current !== minute) {
        minute = current
        counts.clear()
      }
      const failed = (counts.get(address) ?? 0) + 1
      counts.delete(address)
      counts.set(address, failed)
      const oldest = counts.keys().next().value
      if (counts.size > ADDRESSES_MAX && oldest !== undefined) counts.delete(oldest)
      if (failed <= perMinuteMax) return error
      return new ApiError('rate_limited', {
        message: 'Too many failed authentications from this address.',
        retryAfter: Math.max(1, Math.ceil(((current + 1) * MINUTE_MS - now) / 1_000)),
      })
    },
  }
}

/**
 * Owners of keys by the keys' text, as long as the directory holds what it held when they were found: to check form, checksum and
 * digest anew for each request costs five times as much. Only keys that exist are remembered.
 */
function openCallers(directory: KeyDirectory) {
  const callers = new Map<string, Caller>()
  let loads = -1

  return {
    /** Whether it is live is to be asked each time. */
    remembered(keyText: string): Caller | null {
      if (loads !== directory.loads()) {
        callers.clear()
        loads = directory.loads()
      }
      return callers.get(keyText) ?? null
    },
    find(keyText: string): Caller | null {
      const found = directory.find(keyDigest(keyText))
      if (found === null) return null
      const caller = { key: found.key, workspace: found.workspace, env: found.key.env }
      if (callers.size >= CALLERS_MAX) callers.clear()
      callers.set(keyText, caller)
      return caller
    },
  }
}

export function openAuth(directory: KeyDirectory, clock: Clock, failuresPerMinuteMax?: number): Auth {
  const failures = openFailures(clock, failuresPerMinuteMax)
  const callers = openCallers(directory)
  return {
    authenticate(keyText, address) {
      const known = keyText === null ? null : callers.remembered(keyText)
      // A malformed key is refused whatever the directory knows; a well-formed one only by fresh knowledge.
      if (keyText !== null && (known !== null || isWellFormed(keyText))) {
        if (!directory.isFresh()) throw new ApiError('unavailable', { retryAfter: RETRY_AFTER_STALE_SECONDS })
        const caller = known === null ? callers.find(keyText) : isLive(known.key, clock.now()) ? known : null
        if (caller !== null) return caller
      }
      throw failures.count(address, new ApiError('invalid_api_key'))
    },
  }
}

/** Whether a key has a scope. Public keys identify and do nothing else, whatever is stored. */
function hasScope(key: ApiKey, scope: KeyScope): boolean {
  if (key.kind === 'public') return scope === 'identify'
  return (key.scopes ?? DEFAULT_SCOPES).includes(scope)
}

/** Throws insufficient_permissions naming the missing scope. */
export function permit(caller: Caller, scope: KeyScope): void {
  if (hasScope(caller.key, scope)) return
  const isPublic = caller.key.kind === 'public'
  const who = isPublic ? 'A public key may only identify' : `This ${caller.person ? 'role' : 'key'} lacks a scope`
  throw new ApiError('insufficient_permissions', { message: `${who}; the missing scope is ${scope}.` })
}

/** Throws insufficient_permissions for a person whose role is less; keys have scopes instead. */
export function permitRole({ person }: Caller, least: Role, what = 'this'): void {
  if (person === undefined || isAtLeast(person.role, least)) return
  throw new ApiError('insufficient_permissions', { message: `The role ${least} is needed for ${what}.` })
}

/** Throws origin_not_allowed when the key has a list of origins and the request comes from another one. */
export function permitOrigin(caller: Caller, origin: string): void {
  const { origins } = caller.key
  if (origins === null || origin === '' || origins.includes(origin)) return
  throw new ApiError('origin_not_allowed')
}
