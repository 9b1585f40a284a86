// Alerts: a figure of the last while is compared with a threshold, and whoever subscribes is told when it is passed.

import type { SignalName, Verdict } from './event.ts'

export const ALERT_METRICS = [
  'events',
  'block_rate',
  'match_rate',
  'signal_rate',
  'webhook_failure_rate',
  'ingest_lag_ms',
] as const
export type AlertMetric = (typeof ALERT_METRICS)[number]
/** Whether stored events are counted for it. */
export const isOfEvents = (metric: AlertMetric): boolean =>
  metric !== 'webhook_failure_rate' && metric !== 'ingest_lag_ms'
export const ALERT_OPERATORS = ['gt', 'gte', 'lt', 'lte'] as const
export type AlertOperator = (typeof ALERT_OPERATORS)[number]
export const ALERT_STATUSES = ['active', 'paused'] as const

export const ALERT_NAME_CHARS_MAX = 200
export const ALERT_WINDOW_SECONDS = { min: 60, max: 86_400 } as const
export const ALERT_COOLDOWN_SECONDS = { min: 60, max: 604_800 } as const

export interface AlertFilters {
  readonly verdict?: Verdict
  readonly ruleId?: string
  readonly signal?: SignalName
  readonly platform?: string
}

export interface Alert {
  readonly id: string
  readonly name: string
  readonly metric: AlertMetric
  readonly filters: AlertFilters
  readonly operator: AlertOperator
  readonly threshold: number
  readonly windowSeconds: number
  /** Of fewer events in the window nothing is said. */
  readonly minEvents: number
  readonly cooldownSeconds: number
  readonly status: (typeof ALERT_STATUSES)[number]
  /** Milliseconds. */
  readonly createdAt: number
  readonly updatedAt: number
}

export type AlertFields = Omit<Alert, 'id' | 'createdAt' | 'updatedAt'>

/** How often a threshold was passed: one of these per cooldown. Times in milliseconds. */
export interface Incident {
  readonly id: string
  readonly alertId: string
  readonly value: number
  readonly windowStart: number
  readonly windowEnd: number
  readonly triggeredAt: number
}

export function passes(value: number, { operator, threshold }: Pick<Alert, 'operator' | 'threshold'>): boolean {
  if (operator === 'gt') return value > threshold
  if (operator === 'gte') return value >= threshold
  if (operator === 'lt') return value < threshold
  return value <= threshold
}
