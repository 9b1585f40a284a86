// How long a device was away, as what is learned counts it: by ages of the earlier visit, and by spans in hours.

import { DAY_MS, HOUR_MS } from '../lib/durations.ts'

/** Ages of the earlier visit: younger than a day, a week, thirty days, older. */
const AGE_BOUNDS_MS = [DAY_MS, 7 * DAY_MS, 30 * DAY_MS] as const
export const AGES = AGE_BOUNDS_MS.length + 1
/** Absences by which returns are counted: within an hour, a day, a week, thirty days, longer. */
export const SPAN_BOUNDS_HOURS = [1, 24, 7 * 24, 30 * 24] as const
export const SPANS = SPAN_BOUNDS_HOURS.length + 1
/** Longer absences count as this. */
export const HOURS_MAX = 400 * 24

/** Whole hours between two visits, as lessons carry them. */
export const hoursOf = (elapsedMs: number): number => Math.min(HOURS_MAX, Math.floor(Math.abs(elapsedMs) / HOUR_MS))

export function spanOf(hours: number): number {
  let span = 0
  while (span < SPAN_BOUNDS_HOURS.length && hours >= (SPAN_BOUNDS_HOURS[span] as number)) span++
  return span
}

export function seenAgeOf(elapsedMs: number): number {
  const elapsed = Math.abs(elapsedMs)
  let age = 0
  while (age < AGE_BOUNDS_MS.length && elapsed >= (AGE_BOUNDS_MS[age] as number)) age++
  return age
}
