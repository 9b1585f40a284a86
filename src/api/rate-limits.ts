// Rate limits per key: which class an endpoint is in, what a plan allows, and the headers that say so.

import { ApiError } from '../domain/errors.ts'
import { type RateLimits, rateLimitsOf } from '../domain/workspace.ts'
import type { HttpHeader } from '../http/message.ts'
import { MINUTE_MS, SECOND_MS } from '../lib/durations.ts'
import type { Limits, RateRule, Taken } from '../limits/limits.ts'
import type { Caller } from '../records/auth.ts'

export type RateClass = 'server' | 'mgmt'

const SERVER = /^\/v1\/(?:events|visitors|analytics|erasures)(?:\/|$)/
const MGMT = /^\/v1\/(?:rules|lists|webhooks|alerts|audit|keys)(?:\/|$)/

/** null: this endpoint is in neither class. */
export const rateClassOf = (path: string): RateClass | null =>
  SERVER.test(path) ? 'server' : MGMT.test(path) ? 'mgmt' : null

export interface Permission {
  /** Of the class, for every answer to this request. */
  readonly headers: readonly HttpHeader[]
  readonly refusal: ApiError | null
}

/** null at once where the workspace has no limits: nothing is counted and no header is sent. */
export type TakeRate = (caller: Caller, rateClass: RateClass) => Promise<Permission> | null

export function openRates(limits: Pick<Limits, 'take'>): TakeRate {
  return (caller, rateClass) => {
    const rules = rulesOf(rateLimitsOf(caller.workspace), rateClass)
    if (rules.length === 0) return null
    return limits.take(caller.key.id, rules).then((taken) => permissionOf(taken, rules))
  }
}

function rulesOf({ serverPerMinute, mgmtPerMinute, burstPerSecond }: RateLimits, rateClass: RateClass): RateRule[] {
  const perMinute = rateClass === 'server' ? serverPerMinute : mgmtPerMinute
  return [
    ...(perMinute === null
      ? []
      : [{ name: rateClass, kind: 'fixed', limit: perMinute, windowMs: MINUTE_MS } satisfies RateRule]),
    ...(burstPerSecond === null
      ? []
      : [{ name: 'burst', kind: 'sliding', limit: burstPerSecond, windowMs: SECOND_MS } satisfies RateRule]),
  ]
}

function permissionOf({ allowed, retryAfterMs, windows }: Taken, rules: readonly RateRule[]): Permission {
  const at = rules.findIndex(({ kind }) => kind === 'fixed')
  const window = windows[at]
  const headers: HttpHeader[] =
    window === undefined
      ? []
      : [
          ['X-RateLimit-Limit', String(window.limit)],
          ['X-RateLimit-Remaining', String(window.remaining)],
          ['X-RateLimit-Reset', String(Math.ceil(window.resetAt / SECOND_MS))],
        ]
  return { headers, refusal: allowed ? null : rateLimited(retryAfterMs) }
}

/** `retryAfterMs`: until it is worth trying again. */
export function rateLimited(retryAfterMs: number): ApiError {
  const retryAfter = Math.max(1, Math.ceil(retryAfterMs / SECOND_MS))
  return new ApiError('rate_limited', { message: `Too many requests. Retry in ${retryAfter} s.`, retryAfter })
}
