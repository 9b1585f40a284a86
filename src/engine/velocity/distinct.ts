// How many different things a key was seen with in the last day: exact up to a bound, which larger counts do not pass.

import { DAY_MS } from '../../lib/durations.ts'
import { packNumber, putArray } from '../../lib/packing.ts'
import { KEPT_MS } from './moments.ts'

/** Beyond it the ones seen longest ago are forgotten, so that a count says at least this many. */
export const DISTINCT_MAX = 256

/**
 * Milliseconds. Between the two no day passed without a sighting, so that the thing was seen in every day that ends between
 * them, whatever the order in which events came.
 */
interface Sightings {
  first: number
  last: number
  /** The latest one more than a day before `first`, for events that come a little late; 0: none. */
  earlier: number
}

/** Hash → when it was seen; seen longest ago first. */
export type Distinct = Map<number, Sightings>

const NONE: readonly number[] = []

/** Notes that `hash` was seen. Changes the given map; returns the hashes that left it. */
export function addDistinct(distinct: Distinct, hash: number, at: number): readonly number[] {
  const seen = distinct.get(hash)
  if (seen !== undefined && at < seen.last) {
    if (seen.first - at > DAY_MS) seen.earlier = Math.max(seen.earlier, at)
    else if (at < seen.first) seen.first = at
    return NONE
  }
  if (seen === undefined) distinct.set(hash, { first: at, last: at, earlier: 0 })
  else {
    if (at - seen.last > DAY_MS) {
      seen.earlier = seen.last
      seen.first = at
    }
    seen.last = at
    if (distinct.size > 1) {
      distinct.delete(hash)
      distinct.set(hash, seen)
    }
  }
  let forgotten = NONE
  for (const [oldest, { last }] of distinct) {
    if (distinct.size <= DISTINCT_MAX && last > at - KEPT_MS) break
    distinct.delete(oldest)
    forgotten = [...forgotten, oldest]
  }
  return forgotten
}

const isSeen = ({ first, last, earlier }: Sightings, at: number): boolean => {
  const since = at - DAY_MS
  return (first <= at && last > since) || (earlier <= at && earlier > since)
}

/** The hashes seen in the day that ends with `at`, added to `into`: those of several maps are counted once. */
export function collectDistinct(distinct: Distinct, at: number, into: Set<number>): void {
  for (const [hash, seen] of distinct) if (isSeen(seen, at)) into.add(hash)
}

/** How many there are. */
export function countDistinct(distinct: Distinct, at: number): number {
  let count = 0
  for (const seen of distinct.values()) if (isSeen(seen, at)) count++
  return count
}

/** Small when packed: times as steps back from `newest`, those of an earlier sighting in front. */
export function putDistinct(distinct: Distinct, newest: number): void {
  const isTwice = ({ earlier }: Sightings) => earlier > newest - KEPT_MS
  let sightings = distinct.size
  for (const seen of distinct.values()) if (isTwice(seen)) sightings++
  putArray(3 * sightings)
  for (const [hash, seen] of distinct) {
    const { first, last, earlier } = seen
    if (isTwice(seen)) {
      packNumber(hash)
      packNumber(newest - earlier)
      packNumber(0)
    }
    packNumber(hash)
    packNumber(newest - last)
    packNumber(last - first)
  }
}

export function unpackDistinct(flat: readonly number[], newest: number): Distinct {
  const distinct: Distinct = new Map()
  for (let i = 0; i + 2 < flat.length; i += 3) {
    const hash = flat[i] as number
    const last = newest - (flat[i + 1] as number)
    // Of two with the same hash the first is the earlier one.
    distinct.set(hash, { first: last - (flat[i + 2] as number), last, earlier: distinct.get(hash)?.last ?? 0 })
  }
  return distinct
}
