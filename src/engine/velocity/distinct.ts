// How many different things a key was seen with in the last day: exact up to a bound, which larger counts do not pass.

import { KEPT_MS } from './moments.ts'

/** Beyond it the ones seen longest ago are forgotten, so that a count says at least this many. */
export const DISTINCT_MAX = 256
/** Events of several processes do not come in the order of their times. */
const AHEAD_MS_MAX = 60_000

/** 53-bit hash → when it was seen last, milliseconds; seen longest ago first. */
export type Distinct = Map<number, number>

/** Notes that `hash` was seen. Changes the given map. */
export function addDistinct(distinct: Distinct, hash: number, at: number): void {
  const seen = distinct.get(hash)
  if (seen !== undefined && seen >= at) return
  distinct.delete(hash)
  distinct.set(hash, at)
  for (const [oldest, lastAt] of distinct) {
    if (distinct.size <= DISTINCT_MAX && lastAt > at - KEPT_MS) return
    distinct.delete(oldest)
  }
}

/** The hashes seen in the day before `at`, added to `into`: those of several maps are counted once. */
export function collectDistinct(distinct: Distinct, at: number, into: Set<number>): void {
  for (const [hash, lastAt] of distinct) {
    if (lastAt > at - KEPT_MS && lastAt <= at + AHEAD_MS_MAX) into.add(hash)
  }
}

export const packDistinct = (distinct: Distinct): readonly number[] => [...distinct].flat()

export function unpackDistinct(flat: readonly number[]): Distinct {
  const distinct: Distinct = new Map()
  for (let i = 0; i + 1 < flat.length; i += 2) distinct.set(flat[i] as number, flat[i + 1] as number)
  return distinct
}
