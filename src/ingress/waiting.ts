// Clients that wait for a decision, and identifications that are accepted but not decided yet: by requestId, and by nonce
// so that a repeat joins the first instead of being accepted again.

import type { ApiError } from '../domain/errors.ts'
import { hash32 } from '../domain/ids.ts'
import type { KeyKind } from '../domain/workspace.ts'
import { addCount, type SharedCounts } from '../lib/counts.ts'
import { openInFlight } from '../lib/in-flight.ts'
import type { Original } from '../records/event-locator.ts'

export interface Waiting {
  /**
   * Registers a request that is about to be stored. `expired` is called once if it is stored and no decision comes in time;
   * the request stays pending. null: its caller waits for the decision however long that takes.
   */
  open(requestId: string, nonce: string | null, first: First, decided: OnDecided, expired: Expired): void
  /** The append succeeded: from now on the request may be called pending. */
  stored(requestId: string): void
  /** The append failed: nothing will be decided. Tells those who joined; the first's own caller knows. */
  cancel(requestId: string, failure: ApiError): void
  /** The pending request with this nonce. */
  byNonce(nonce: string): (First & { readonly requestId: string }) | null
  /** Waits along with the first of its nonce. */
  join(requestId: string, decided: OnDecided, expired: Expired): void
  /** Hands the outcome to everybody who waits for it. */
  settle(requestId: string, outcome: Settled): void
  /** Accepted here from this workspace and environment, and not decided yet. */
  isPending(scope: string, requestId: string): boolean
  /** The event a client was told to wait for under another id: its request turned out to repeat an earlier nonce. */
  originalOf(scope: string, requestId: string): Original | null
  /** Stored longer ago than `ageMs` and not asked about for as long, oldest first: their decisions may have been lost. */
  overdue(ageMs: number, max: number): Overdue[]
  size(): number
  /** How long the oldest of them has waited, milliseconds; 0 when there is none. */
  oldestMs(): number
  /** Calls `expired` of those whose time is over. */
  sweep(): void
}

/** `replayed`: the answer to a repeat, not to the first request. */
export type OnDecided = (outcome: Settled, replayed: boolean) => void
export type Expired = (() => void) | null
export type Settled =
  | { readonly body: string }
  /** The nonce was decided before: the event is that of another request, or the body differed. */
  | { readonly original: string; readonly conflict: boolean }
  /** The first was not accepted after all. */
  | { readonly failure: ApiError }

/** What a repeat is compared with, and in whose form the decision comes. */
export interface First {
  readonly bodyHash: number
  readonly keyKind: KeyKind
  /** `<workspace>/<env>` */
  readonly scope: string
}

export interface Overdue extends Pick<First, 'scope' | 'keyKind'> {
  readonly requestId: string
}

interface Waiter {
  readonly decided: OnDecided
  readonly expired: Expired
  readonly replayed: boolean
  readonly deadline: number
}

interface Pending {
  readonly nonce: string | null
  readonly first: First
  readonly openedAt: number
  stored: boolean
  /** Monotonic time of the append or of the last question about it. */
  askedAt: number
  /** A client was given the requestId to come back with. */
  givenOut: boolean
  waiters: Waiter[]
}

/** The one cell of these counts. */
export const PENDING_CELL = 0
const ORIGINALS_MAX = 10_000

/** `counts`: where all threads count what is pending. `onFirst` is called when a request is pending here and none was before. */
export function createWaiting(
  waitMs: number,
  monotonic: () => number,
  counts: SharedCounts,
  onFirst: () => void = () => undefined,
): Waiting {
  // In order of arrival, hence of their first waiter's deadline.
  const pending = openInFlight<string, Pending>(hash32)
  const nonces = openInFlight<string, string>(hash32)
  const originals = new Map<string, string>()

  function waiter(decided: OnDecided, expired: Expired, replayed: boolean, now: number): Waiter {
    const deadline = expired === null ? Number.POSITIVE_INFINITY : now + waitMs
    return { decided, expired, replayed, deadline }
  }

  function remove(requestId: string): Pending | undefined {
    const entry = pending.take(requestId)
    if (entry === undefined) return undefined
    addCount(counts, PENDING_CELL, -1)
    if (entry.nonce !== null) nonces.take(entry.nonce)
    return entry
  }

  function expire(entry: Pending, now: number): void {
    // Most of what has been here for long: their clients know that they have to come back.
    if (entry.waiters.length === 0) return
    const late = entry.waiters.filter((w) => w.deadline <= now)
    if (late.length === 0) return
    entry.waiters = entry.waiters.filter((w) => w.deadline > now)
    entry.givenOut = true
    for (const { expired } of late) expired?.()
  }

  return {
    open(requestId, nonce, first, decided, expired) {
      const openedAt = monotonic()
      const waiters = [waiter(decided, expired, false, openedAt)]
      pending.set(requestId, { nonce, first, openedAt, stored: false, askedAt: 0, givenOut: false, waiters })
      addCount(counts, PENDING_CELL, 1)
      if (nonce !== null) nonces.set(nonce, requestId)
      if (pending.size() === 1) onFirst()
    },
    stored(requestId) {
      const entry = pending.get(requestId)
      if (entry === undefined) return
      entry.stored = true
      entry.askedAt = monotonic()
      expire(entry, entry.askedAt)
    },
    cancel(requestId, failure) {
      for (const { decided, replayed } of remove(requestId)?.waiters ?? []) if (replayed) decided({ failure }, true)
    },
    byNonce(nonce) {
      const requestId = nonces.get(nonce)
      const entry = requestId === undefined ? undefined : pending.get(requestId)
      return requestId === undefined || entry === undefined ? null : { requestId, ...entry.first }
    },
    join(requestId, decided, expired) {
      pending.get(requestId)?.waiters.push(waiter(decided, expired, true, monotonic()))
    },
    settle(requestId, outcome) {
      const entry = remove(requestId)
      if (entry === undefined) return
      if (entry.givenOut && 'original' in outcome && !outcome.conflict) {
        originals.set(`${entry.first.scope} ${requestId}`, outcome.original)
        if (originals.size > ORIGINALS_MAX) originals.delete(originals.keys().next().value as string)
      }
      for (const { decided, replayed } of entry.waiters) decided(outcome, replayed)
    },
    isPending: (scope, requestId) => pending.get(requestId)?.first.scope === scope,
    originalOf(scope, requestId) {
      const original = originals.get(`${scope} ${requestId}`)
      return original === undefined ? null : { requestId: original, conflict: false }
    },
    overdue(ageMs, max) {
      const now = monotonic()
      const found: Overdue[] = []
      for (const [requestId, entry] of pending.entries()) {
        if (found.length === max) break
        if (!entry.stored || now - entry.askedAt < ageMs) continue
        entry.askedAt = now
        found.push({ requestId, scope: entry.first.scope, keyKind: entry.first.keyKind })
      }
      return found
    },
    size: pending.size,
    oldestMs() {
      for (const [, { openedAt }] of pending.entries()) return monotonic() - openedAt
      return 0
    },
    sweep() {
      const now = monotonic()
      for (const [, entry] of pending.entries()) {
        if (entry.openedAt + waitMs > now) break
        if (entry.stored) expire(entry, now)
      }
    },
  }
}
