// What an attempt does to its delivery and to the standing of its webhook: pure functions of time and outcome. Both schedules,
// the warning after half a day of failures and the end after a whole one are here and nowhere else.

import { hash32 } from '../domain/ids.ts'
import type { WebhookShape } from '../domain/webhook.ts'
import { HOUR_MS, SECOND_MS } from '../lib/durations.ts'
import { ATTEMPTS_KEPT, type Attempt, type Health, type StoredDelivery } from '../records/deliveries.ts'

export const DISABLE_AFTER_MS = 24 * HOUR_MS
const WARN_AFTER_MS = 12 * HOUR_MS
/** Failures are forgotten when nothing was attempted for this long: silence is no proof of a dead receiver. */
const FORGET_AFTER_MS = 48 * HOUR_MS

/** From the end of a failed attempt to the next one. */
export const GAPS_MS: Readonly<Record<WebhookShape, readonly number[]>> = {
  A: [300, 1_800, 3_600, 7_200, 14_400, 28_800, 28_800].map((seconds) => seconds * SECOND_MS),
  B: [300, 1_800].map((seconds) => seconds * SECOND_MS),
}

const JITTER_SHARE = 0.02
const JITTER_MS_MAX = 15 * SECOND_MS

/** Never negative: a retry may be a little late, never early. The same for whoever works it out. */
export function jitterMs(gapMs: number, deliveryId: string, tries: number): number {
  const share = hash32(`${deliveryId}/${tries}`) / 2 ** 32
  return Math.floor(share * Math.min(gapMs * JITTER_SHARE, JITTER_MS_MAX))
}

export const attemptEndOf = ({ startedAt, durationMs }: Attempt): number => startedAt + durationMs

/** Attempts of the schedule move it on; one by hand can only end it well. */
export function afterAttempt(
  deliveryId: string,
  delivery: StoredDelivery,
  shape: WebhookShape,
  attempt: Attempt,
): StoredDelivery {
  const attemptsMade = delivery.attemptsMade + 1
  const attempts = [...delivery.attempts, attempt].slice(-ATTEMPTS_KEPT)
  const made: StoredDelivery = { ...delivery, attemptsMade, attempts }
  if (attempt.error === null) {
    const tries = delivery.tries + Number(attempt.trigger === 'auto')
    return { ...made, tries, status: 'delivered', nextAttemptAt: null, reason: null }
  }
  if (attempt.trigger !== 'auto') return made
  const tries = delivery.tries + 1
  const gap = GAPS_MS[shape][tries - 1]
  if (gap === undefined) return { ...made, tries, status: 'failed', nextAttemptAt: null }
  return { ...made, tries, nextAttemptAt: attemptEndOf(attempt) + gap + jitterMs(gap, deliveryId, tries) }
}

/** A delivery that ends without another attempt. */
export const endedBy = (delivery: StoredDelivery, reason: string): StoredDelivery => ({
  ...delivery,
  status: 'failed',
  nextAttemptAt: null,
  reason,
})

export type HealthTurn = 'none' | 'warn' | 'disable'

/** `enabledAt`: when the webhook last became active; what failed before counts no more. Tests and attempts by hand never count. */
export function healthAfter(
  health: Health,
  attempt: Attempt,
  enabledAt: number,
): { readonly health: Health; readonly turn: HealthTurn } {
  const at = attemptEndOf(attempt)
  const lastDeliveryAt = attempt.error === null ? at : health.lastDeliveryAt
  if (attempt.trigger !== 'auto') return { health: { ...health, lastDeliveryAt }, turn: 'none' }
  if (attempt.error === null) {
    return { health: { failingSince: null, lastAttemptAt: at, lastDeliveryAt, warned: false }, turn: 'none' }
  }
  const { failingSince, lastAttemptAt } = health
  const isKnown =
    failingSince !== null && failingSince >= enabledAt && at - (lastAttemptAt ?? failingSince) < FORGET_AFTER_MS
  const since = isKnown ? failingSince : at
  const warned = isKnown && health.warned
  const isWarning = !warned && at - since >= WARN_AFTER_MS
  return {
    health: { failingSince: since, lastAttemptAt: at, lastDeliveryAt, warned: warned || isWarning },
    turn: at - since >= DISABLE_AFTER_MS ? 'disable' : isWarning ? 'warn' : 'none',
  }
}
