// The arithmetic of analytics: hours, days and weeks of a range in UTC, and whether a share has changed.

import { DAY_MS, HOUR_MS, WEEK_MS } from '../lib/durations.ts'
import type { FigureShare } from './backtest-figures.ts'

export type TimeUnit = 'hour' | 'day' | 'week'

/** The epoch was a Thursday, and weeks begin on Monday (ISO 8601). */
const FIRST_MONDAY_MS = 4 * DAY_MS

/** First millisecond of the hour, day or week around a moment. */
export function bucketOf(atMs: number, unit: TimeUnit): number {
  if (unit === 'week') return Math.floor((atMs - FIRST_MONDAY_MS) / WEEK_MS) * WEEK_MS + FIRST_MONDAY_MS
  const length = unit === 'hour' ? HOUR_MS : DAY_MS
  return Math.floor(atMs / length) * length
}

/** Of every hour, day or week that has some of the range in it, in order. `to` is exclusive and after `from`. */
export function bucketsIn({ from, to }: { readonly from: number; readonly to: number }, unit: TimeUnit): number[] {
  const length = { hour: HOUR_MS, day: DAY_MS, week: WEEK_MS }[unit]
  const buckets: number[] = []
  for (let at = bucketOf(from, unit); at < to; at += length) buckets.push(at)
  return buckets
}

/** Two-sided, 95 %. */
const Z_MIN = 1.96
const CHANGE_MIN = 0.1
/** What a change is measured against when there was nothing, or nearly. */
const RATE_MIN = 0.001
const EVENTS_MIN = 100

/** Two-proportion z-test with the pooled share; a change that is sure but small is none (src/docs/contract.md, Analytics and alerts). */
export function trendOf(now: FigureShare, then: FigureShare): 'up' | 'stable' | 'down' {
  if (now.whole < EVENTS_MIN || then.whole < EVENTS_MIN) return 'stable'
  const [rate, previous] = [now.part / now.whole, then.part / then.whole]
  const pooled = (now.part + then.part) / (now.whole + then.whole)
  const error = Math.sqrt(pooled * (1 - pooled) * (1 / now.whole + 1 / then.whole))
  if (error === 0 || Math.abs(rate - previous) / error < Z_MIN) return 'stable'
  if (Math.abs(rate - previous) / Math.max(previous, RATE_MIN) < CHANGE_MIN) return 'stable'
  return rate > previous ? 'up' : 'down'
}
