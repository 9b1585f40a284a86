// How many different things a key was seen with in the last day: exact up to a bound, which larger counts do not pass.

import { DAY_MS } from '../../lib/durations.ts'
import { packNumber, putArray } from '../../lib/packing.ts'
import { roomForNumbers } from '../../lib/room.ts'
import { readArray, readNumber } from '../../lib/unpacking.ts'
import { KEPT_MS } from './moments.ts'

/** Beyond it the ones seen longest ago are forgotten, so that a count says at least this many. */
export const DISTINCT_MAX = 256

/**
 * Hashes of things and when each was seen, seen longest ago first: one flat list, WIDTH numbers to a thing, since most keys see one
 * thing or two, and are unpacked and packed with each event. The numbers behind a hash are milliseconds. Between FIRST and LAST
 * no day passed without a sighting, so that the thing was seen in every day that ends between them, whatever the order in which
 * events came. EARLIER is the latest one more than a day before the first, for events that come a little late; 0: none.
 */
export type Distinct = number[]

export const WIDTH = 4
export const FIRST = 1
export const LAST = 2
const EARLIER = 3

const NONE: readonly number[] = []

export const distinctCount = (distinct: Distinct): number => distinct.length / WIDTH

/** Where a hash is; -1: nowhere. */
export function placeOfHash(distinct: Distinct, hash: number): number {
  // What comes again came lately.
  for (let place = distinct.length - WIDTH; place >= 0; place -= WIDTH) if (distinct[place] === hash) return place
  return -1
}

export function hashesIn(distinct: Distinct): number[] {
  const hashes: number[] = []
  for (let place = 0; place < distinct.length; place += WIDTH) hashes.push(distinct[place] as number)
  return hashes
}

/** Takes a hash out; whether it was there. Changes the given list. */
export function dropHash(distinct: Distinct, hash: number): boolean {
  const place = placeOfHash(distinct, hash)
  if (place >= 0) distinct.splice(place, WIDTH)
  return place >= 0
}

/** Where nothing was seen before: as long as it is, since most keys see one thing and a list that grows has room for sixteen more. */
export const firstDistinct = (hash: number, at: number): Distinct => [hash, at, at, 0]

/** Makes what is at a place the last. */
function moveToEnd(distinct: Distinct, place: number): void {
  const last = distinct.length - WIDTH
  for (let from = place; from < last; from += WIDTH) {
    for (let i = from; i < from + WIDTH; i++) {
      const moved = distinct[i] as number
      distinct[i] = distinct[i + WIDTH] as number
      distinct[i + WIDTH] = moved
    }
  }
}

/** Notes that `hash` was seen. Changes the given list; returns the hashes that left it. */
export function addDistinct(distinct: Distinct, hash: number, at: number): readonly number[] {
  const place = placeOfHash(distinct, hash)
  if (place < 0) distinct.push(hash, at, at, 0)
  else {
    const first = distinct[place + FIRST] as number
    const last = distinct[place + LAST] as number
    if (at < last) {
      if (first - at > DAY_MS) distinct[place + EARLIER] = Math.max(distinct[place + EARLIER] as number, at)
      else if (at < first) distinct[place + FIRST] = at
      return NONE
    }
    if (at - last > DAY_MS) {
      distinct[place + EARLIER] = last
      distinct[place + FIRST] = at
    }
    distinct[place + LAST] = at
    moveToEnd(distinct, place)
  }
  let gone = 0
  while (gone < distinct.length) {
    const isFull = distinct.length - gone > DISTINCT_MAX * WIDTH
    if (!isFull && (distinct[gone + LAST] as number) > at - KEPT_MS) break
    gone += WIDTH
  }
  return gone === 0 ? NONE : hashesIn(distinct.splice(0, gone))
}

/** Whether what is at a place was seen in the day that ends with `at`. */
export function isSeen(distinct: Distinct, place: number, at: number): boolean {
  const since = at - DAY_MS
  const earlier = distinct[place + EARLIER] as number
  return (
    ((distinct[place + FIRST] as number) <= at && (distinct[place + LAST] as number) > since) ||
    (earlier <= at && earlier > since)
  )
}

/** The hashes seen in the day that ends with `at`, added to `into`: those of several lists are counted once. */
export function collectDistinct(distinct: Distinct, at: number, into: Set<number>): void {
  for (let place = 0; place < distinct.length; place += WIDTH) {
    if (isSeen(distinct, place, at)) into.add(distinct[place] as number)
  }
}

/** How many there are. */
export function countDistinct(distinct: Distinct, at: number): number {
  let count = 0
  for (let place = 0; place < distinct.length; place += WIDTH) if (isSeen(distinct, place, at)) count++
  return count
}

/** Whether its earlier sighting may still count. */
const isTwice = (distinct: Distinct, place: number, newest: number): boolean =>
  (distinct[place + EARLIER] as number) > newest - KEPT_MS

/** Small when packed: times as steps back from `newest`, those of an earlier sighting in front. */
export function putDistinct(distinct: Distinct, newest: number): void {
  let sightings = distinctCount(distinct)
  for (let place = 0; place < distinct.length; place += WIDTH) if (isTwice(distinct, place, newest)) sightings++
  putArray(3 * sightings)
  for (let place = 0; place < distinct.length; place += WIDTH) {
    const hash = distinct[place] as number
    const last = distinct[place + LAST] as number
    if (isTwice(distinct, place, newest)) {
      packNumber(hash)
      packNumber(newest - (distinct[place + EARLIER] as number))
      packNumber(0)
    }
    packNumber(hash)
    packNumber(newest - last)
    packNumber(last - (distinct[place + FIRST] as number))
  }
}

/** Reads what putDistinct wrote. */
export function readDistinct(newest: number): Distinct {
  const sightings = Math.floor(readArray() / 3)
  const distinct = roomForNumbers(WIDTH * sightings)
  let end = 0
  for (let left = sightings; left > 0; left--) {
    const hash = readNumber()
    const last = newest - readNumber()
    const first = last - readNumber()
    const before = end - WIDTH
    if (before < 0 || distinct[before] !== hash) {
      distinct[end] = hash
      distinct[end + FIRST] = first
      distinct[end + LAST] = last
      distinct[end + EARLIER] = 0
      end += WIDTH
    } else {
      // Of two with the same hash, one behind the other, the first is the earlier one.
      distinct[before + EARLIER] = distinct[before + LAST] as number
      distinct[before + FIRST] = first
      distinct[before + LAST] = last
    }
  }
  distinct.length = end
  return distinct
}
