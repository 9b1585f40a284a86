// What a thread holds of the counters of each key: as objects where the key comes again and again, else packed, outside of the heap. A
// hundred thousand addresses as objects were nine tenths of what V8's collector had to mark in a shard (D236).

import { openClock } from '../../lib/clock-eviction.ts'
import { SECOND_MS } from '../../lib/durations.ts'
import { NO_ENTRY } from '../../lib/hash-index.ts'
import { assert, must } from '../../lib/must.ts'
import { copyPacked } from '../../lib/packing.ts'
import { copyInto, createGeneration, type Generation, hashOf } from '../byte-generation.ts'
import { unusedMsMaxOf } from '../table.ts'
import { packCounters } from './counters.ts'
import type { Entry } from './entry.ts'
import {
  copyEntry,
  countersEnd,
  countersStart,
  packEntry,
  partAt,
  setTakenS,
  takenSOf,
  unpackEntry,
  usedSOf,
} from './packed-entry.ts'
import type { TakenCounters } from './taken-counters.ts'

/** A key that comes again within so many seconds is not packed when its turn is over: it would be unpacked with the next. */
const OFTEN_S = 5
/** An entry that is unused for so long is packed, at the latest when it is twice as long and a half. */
const UNUSED_OBJECT_MS = 2 * OFTEN_S * SECOND_MS

export interface Entries {
  /** The entry until the next rest; undefined: not held. */
  get(key: number): Entry | undefined
  /** Holds an entry that was not held, or not loaded. */
  add(key: number, entry: Entry): void
  /** Between turns: packs what was looked at and does not come often. */
  rest(): void
  /** Lets go of all but the given ones, and returns those: they are objects until somebody adds them anew. */
  keepOnly(keys: Iterable<number>): Iterable<Entry>
  /** Copies what is to be stored of a key's counters in one partition, and notes when: `nowS`. */
  take(key: number, partition: number, nowS: number, into: TakenCounters): void
  /** Packs and lets go of what nobody used for a while, but none of the keys in `kept`. `nowMs`: monotonic. */
  makeRoom(nowMs: number, kept: readonly ReadonlySet<number>[]): void
}

/** ASCII, as ids of a generation are: 53 bits in eight characters of seven. */
function idOf(key: number): string {
  const low = key >>> 0
  const high = Math.floor(key / 2 ** 32)
  return String.fromCharCode(
    low & 0x7f,
    (low >>> 7) & 0x7f,
    (low >>> 14) & 0x7f,
    (low >>> 21) & 0x7f,
    (low >>> 28) | ((high & 0x7) << 4),
    (high >>> 3) & 0x7f,
    (high >>> 10) & 0x7f,
    high >>> 17,
  )
}

/** Where it is packed; `NO_ENTRY` where it is not. */
function held(generation: Generation, hash: number, id: string): number {
  const place = generation.find(hash, id)
  return place === NO_ENTRY || generation.isAbsent(place) ? NO_ENTRY : place
}

/** Holds `keysMax` keys as objects and half as many again packed when room was made, and those of which something is not stored yet. */
export function createEntries(partitions: number, keysMax: number): Entries {
  const objects = new Map<number, Entry>()
  const packWhatRests = openClock(objects, { entriesMax: keysMax, unusedMsMax: UNUSED_OBJECT_MS })
  const unusedMsMax = unusedMsMaxOf(keysMax)
  /** Those to be packed with the next rest, which makes it anew: what leaves a map of long life may be taken for alive (D209). */
  let looked = new Map<number, Entry>()
  // A key is in one of the four: an object in one of these maps, or packed in one of these generations.
  let young = createGeneration()
  let old = createGeneration()
  /** The one in which the last one was found. */
  let generation = young
  let youngSinceMs: number | null = null
  /** When room was made last. */
  let nowS = 0
  /** One event asks for an entry several times. */
  let lastKey = Number.NaN
  let lastEntry: Entry | undefined

  /** Where a key is packed, or `NO_ENTRY`: `generation` has it then. */
  function find(key: number): number {
    const id = idOf(key)
    const hash = hashOf(id)
    generation = young
    const place = held(young, hash, id)
    if (place !== NO_ENTRY) return place
    generation = old
    return held(old, hash, id)
  }

  function unpack(key: number): Entry | undefined {
    const place = find(key)
    if (place === NO_ENTRY) return undefined
    const start = generation.recordAt(place)
    const bytes = generation.bytes()
    const entry = unpackEntry(bytes, start, start + generation.lengthOf(place), partitions)
    const to = nowS - usedSOf(bytes, start) > OFTEN_S ? looked : objects
    to.set(key, entry)
    generation.setAbsent(place)
    return entry
  }

  function pack(key: number, entry: Entry): void {
    const length = packEntry(entry, entry.unusedSinceS ?? nowS)
    const id = idOf(key)
    const place = young.put(hashOf(id), id, length)
    copyEntry(young.bytes(), young.recordAt(place))
  }

  /** Whether an object has to stay one: those that are not loaded cannot be packed, and are of no use. */
  function staysObject(key: number, isKept: (key: number) => boolean): boolean {
    const entry = objects.get(key) as Entry
    if (!entry.isLoaded) return isKept(key)
    pack(key, entry)
    return false
  }

  function keepIn(next: Generation, from: Generation, keys: Iterable<number>): void {
    for (const key of keys) {
      const id = idOf(key)
      const hash = hashOf(id)
      const place = held(from, hash, id)
      if (place !== NO_ENTRY) copyInto(next, hash, id, place, from)
    }
  }

  function beginGeneration(kept: readonly ReadonlySet<number>[]): void {
    const before = young.size() > keysMax ? createGeneration() : young
    for (const keys of kept) {
      if (before !== young) keepIn(before, young, keys)
      keepIn(before, old, keys)
    }
    // What is forgotten leaves its memory to the next generation (D239).
    const forgotten = before === young ? old : young
    old = before
    young = forgotten
    young.clear()
  }

  const objectOf = (key: number): Entry | undefined => objects.get(key) ?? looked.get(key)

  function get(key: number): Entry | undefined {
    if (key !== lastKey) {
      lastEntry = objectOf(key) ?? unpack(key)
      lastKey = key
    }
    return lastEntry
  }

  function rest(): void {
    if (looked.size === 0) return
    for (const [key, entry] of looked) {
      if (entry.isLoaded) pack(key, entry)
      else objects.set(key, entry)
    }
    looked = new Map()
    lastKey = Number.NaN
  }

  return {
    get,
    add(key, entry) {
      objects.delete(key)
      looked.set(key, entry)
      lastKey = Number.NaN
    },
    rest,
    keepOnly(keys) {
      const kept = new Map<number, Entry>()
      for (const key of keys) kept.set(key, must(get(key), 'counters that are held'))
      objects.clear()
      for (const [key, entry] of kept) objects.set(key, entry)
      looked = new Map()
      young = createGeneration()
      old = createGeneration()
      lastKey = Number.NaN
      return kept.values()
    },
    take(key, partition, nowS, into) {
      const followed = objectOf(key)?.of[partition]
      if (followed !== undefined) {
        const length = packCounters(must(followed.counters, 'something counted'))
        const place = into.place(key, followed.takenS, length)
        copyPacked(into.bytes(), place)
        followed.takenS = nowS
        return
      }
      const entry = find(key)
      assert(entry !== NO_ENTRY, 'expected counters that are held')
      const bytes = generation.bytes()
      const start = generation.recordAt(entry)
      const part = partAt(bytes, start, start + generation.lengthOf(entry), partition)
      assert(part >= 0, 'expected something counted')
      const [from, end] = [countersStart(part), countersEnd(bytes, part)]
      const place = into.place(key, takenSOf(bytes, part), end - from)
      bytes.copy(into.bytes(), place, from, end)
      setTakenS(bytes, part, nowS)
    },
    makeRoom(nowMs, kept) {
      rest()
      nowS = Math.floor(nowMs / SECOND_MS)
      lastKey = Number.NaN
      const isKept = (key: number) => kept.some((keys) => keys.has(key))
      packWhatRests(nowMs, (key) => staysObject(key, isKept))
      youngSinceMs ??= nowMs
      if (young.size() <= keysMax / 2 && nowMs - youngSinceMs < unusedMsMax) return
      beginGeneration(kept)
      youngSinceMs = nowMs
    },
  }
}
