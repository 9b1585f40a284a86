// What a thread holds of the counters of one key: those of each partition, and what follows from all of them.

import type { Watched } from '../../lib/clock-eviction.ts'
import { roomFor } from '../../lib/room.ts'
import { type Counted, isDeparture } from './counted.ts'
import { addEvent, addPlace, type Counters, noCounters } from './counters.ts'
import { type Departure, removeVisitor } from './departure.ts'
import { addSeen, type SeenWith } from './seen.ts'

export interface Followed {
  /** null: nothing was counted, as in most partitions for most keys. */
  counters: Counters | null
  /** Of a partition decided elsewhere: the newest record in it. */
  seq: number
  /** The second in which it was taken to be stored; -1: not by this owner. */
  takenS: number
}

export interface Entry extends SeenWith, Watched {
  /** By partition; undefined: not loaded. */
  readonly of: (Followed | undefined)[]
  /** None is undefined. */
  isLoaded: boolean
  /** Those that counted something; null: to be listed anew. */
  counting: Counters[] | null
}

/** Of most partitions for most keys. */
export const UNCOUNTED: Followed = Object.freeze({ counters: null, seq: 0, takenS: -1 })

export const newEntry = (partitions: number): Entry => ({
  of: new Array(partitions).fill(undefined),
  isLoaded: false,
  unusedSinceS: null,
  counting: null,
  seen: null,
})

/** Of every partition that counted something. */
export function countingOf(entry: Entry): readonly Counters[] {
  if (entry.counting !== null) return entry.counting
  let count = 0
  for (const followed of entry.of) if (followed?.counters) count++
  const found = roomFor<Counters>(count)
  let end = 0
  for (const followed of entry.of) if (followed?.counters) found[end++] = followed.counters
  entry.counting = found
  return found
}

/** Behind a change of counters that is more than an event added. */
export function startAnew(entry: Entry): void {
  entry.counting = null
  entry.seen = null
}

/** What may be changed: most are one and the same object until then. undefined: not loaded. */
export function countable(entry: Entry | undefined, partition: number): Followed | undefined {
  const followed = entry?.of[partition]
  if (entry === undefined || followed !== UNCOUNTED) return followed
  const own = { ...UNCOUNTED }
  entry.of[partition] = own
  return own
}

/** `entry`: null while it is being loaded. */
export function addTo(entry: Entry | null, followed: Followed, key: number, counted: Counted | Departure): void {
  if (isDeparture(counted)) {
    if (followed.counters !== null) removeVisitor(followed.counters, key, counted)
    if (entry !== null) startAnew(entry)
    return
  }
  const { at, linkedKey, visitor, ip, lat, lng } = counted
  if (followed.counters === null) {
    followed.counters = noCounters()
    if (entry !== null) startAnew(entry)
  }
  const { counters } = followed
  const isAccount = key === linkedKey
  const things = isAccount ? [visitor, ip] : [visitor]
  if (entry === null) addEvent(counters, at, things)
  else addSeen(entry, countingOf(entry), counters, at, things)
  if (isAccount && lat !== null && lng !== null) addPlace(counters, { at, lat, lng })
}
