// The counters of one key: when its events were and what it was seen with. Events whose time lies more than a day back, as a
// sandbox makes them, have a stretch of time of their own, so that neither history disturbs the other.

import { beginPacking, packedLength, packNumber, putArray, putNull } from '../../lib/packing.ts'
import { roomFor } from '../../lib/room.ts'
import { beginReading, endReading, readArray, readNumber, readNumbers, skipNull } from '../../lib/unpacking.ts'
import {
  addDistinct,
  collectDistinct,
  countDistinct,
  type Distinct,
  firstDistinct,
  putDistinct,
  readDistinct,
} from './distinct.ts'
import { addMoment, countMoments, KEPT_MS, type Moments, noMoments, putMoments, readMoments } from './moments.ts'
import { type CounterTraces, putTraces } from './traces.ts'

/** About a day of events. */
export interface Stretch {
  newest: number
  moments: Moments
  readonly sets: Distinct[]
}

/** Where somebody was. */
export interface GeoPlace {
  readonly at: number
  readonly lat: number
  readonly lng: number
}

export interface Counters {
  latest: Stretch | null
  /** Of a time before that, only one: a third one takes its place. */
  earlier: Stretch | null
  /** The latest one that could be trusted. */
  place: GeoPlace | null
  /** Of a visitor: where else its events are counted. null of an address or account. */
  traces: CounterTraces | null
}

export const noCounters = (): Counters => ({ latest: null, earlier: null, place: null, traces: null })

function newStretch(at: number, count: number): Stretch {
  const sets = roomFor<Distinct>(count)
  for (let set = 0; set < count; set++) sets[set] = []
  return { newest: at, moments: noMoments(), sets }
}

const holds = (stretch: Stretch | null, at: number): stretch is Stretch =>
  stretch !== null && at > stretch.newest - KEPT_MS

function stretchFor(counters: Counters, at: number, sets: number): Stretch {
  const { latest, earlier } = counters
  if (latest !== null && at >= latest.newest + KEPT_MS) {
    // Nothing of it is in any window of this event, but events of its time may still come.
    counters.earlier = latest
    counters.latest = newStretch(at, sets)
    return counters.latest
  }
  if (holds(latest, at)) return latest
  if (latest === null) {
    counters.latest = newStretch(at, sets)
    return counters.latest
  }
  if (holds(earlier, at)) return earlier
  counters.earlier = newStretch(at, sets)
  return counters.earlier
}

/** What left a set to make room, or because its day is over. */
export interface Forgotten {
  readonly set: number
  readonly hash: number
}

/** Adds an event that was seen with one thing of each set (null: with none). Changes the given counters, and notes what left them. */
export function addEvent(
  counters: Counters,
  at: number,
  seen: readonly (number | null)[],
  forgotten: Forgotten[] | null = null,
): Stretch {
  const stretch = stretchFor(counters, at, seen.length)
  stretch.newest = Math.max(stretch.newest, at)
  addMoment(stretch.moments, at)
  for (let set = 0; set < seen.length; set++) {
    const hash = seen[set]
    if (hash === null || hash === undefined) continue
    const distinct = stretch.sets[set] as Distinct
    if (distinct.length === 0) {
      stretch.sets[set] = firstDistinct(hash, at)
      continue
    }
    const gone = addDistinct(distinct, hash, at)
    if (forgotten !== null) for (let i = 0; i < gone.length; i++) forgotten.push({ set, hash: gone[i] as number })
  }
  return stretch
}

/** A place counts as the latest by its own time. */
export function addPlace(counters: Counters, place: GeoPlace): void {
  if (counters.place === null || place.at >= counters.place.at) counters.place = place
}

/** Events after `at - windowMs` and not after `at`. */
export function countEvents({ latest, earlier }: Counters, at: number, windowMs: number): number {
  const before = earlier === null ? 0 : countMoments(earlier.moments, at, windowMs)
  return before + (latest === null ? 0 : countMoments(latest.moments, at, windowMs))
}

/** How many different things of a set all of them have seen in the day that ends with `at`. */
export function countSeenWith(all: readonly Counters[], set: number, at: number): number {
  const [only] = all
  if (all.length === 1 && only !== undefined && only.earlier === null) {
    const distinct = only.latest?.sets[set]
    return distinct === undefined ? 0 : countDistinct(distinct, at)
  }
  const found = new Set<number>()
  for (const one of all) collectSeen(one, set, at, found)
  return found.size
}

/** What was seen in the day that ends with `at`, added to `into`. */
export function collectSeen({ latest, earlier }: Counters, set: number, at: number, into: Set<number>): void {
  for (const stretch of [latest, earlier]) {
    const distinct = stretch?.sets[set]
    if (distinct !== undefined) collectDistinct(distinct, at, into)
  }
}

function putStretch(stretch: Stretch | null): void {
  if (stretch === null) {
    putNull()
    return
  }
  const { newest, moments, sets } = stretch
  putArray(2 + sets.length)
  packNumber(newest)
  putMoments(moments)
  for (const set of sets) putDistinct(set, newest)
}

function readStretch(): Stretch | null {
  if (skipNull()) return null
  const count = readArray() - 2
  const newest = readNumber()
  const moments = readMoments()
  const sets = roomFor<Distinct>(count)
  for (let i = 0; i < count; i++) sets[i] = readDistinct(newest)
  return { newest, moments, sets }
}

export function putCounters({ latest, earlier, place, traces }: Counters): void {
  putArray(traces === null ? 3 : 4)
  putStretch(latest)
  putStretch(earlier)
  if (place === null) putNull()
  else {
    putArray(3)
    packNumber(place.at)
    packNumber(place.lat)
    packNumber(place.lng)
  }
  if (traces !== null) putTraces(traces)
}

/** Packs them where `copyPacked` takes them from; returns how many bytes they are. */
export function packCounters(counters: Counters): number {
  beginPacking()
  putCounters(counters)
  return packedLength()
}

/** Of bytes of which they are a part, `first` is where they begin and `behind` where they end. */
export function unpackCounters(bytes: Uint8Array, first = 0, behind = bytes.length): Counters {
  beginReading(bytes, first, behind)
  const parts = readArray()
  const counters: Counters = {
    latest: readStretch(),
    earlier: readStretch(),
    place: readPlace(),
    traces: parts > 3 ? readNumbers() : null,
  }
  endReading()
  return counters
}

function readPlace(): GeoPlace | null {
  if (skipNull()) return null
  readArray()
  return { at: readNumber(), lat: readNumber(), lng: readNumber() }
}
