// The counters of addresses and accounts in one thread. Events of one address are spread over partitions, each of which counts
// its own; what rules see is all of them together. Those of partitions decided elsewhere follow what is told of them, and a
// counter that is loaded late is brought up to date with what was told since it was stored.

import { SECOND_MS } from '../../lib/durations.ts'
import { must } from '../../lib/must.ts'
import { allCounterKeysOf, type Counted, unflatten } from './counted.ts'
import { type Counters, unpackCounters } from './counters.ts'
import { type Departure, departureOf } from './departure.ts'
import { createEntries } from './entries.ts'
import { addTo, countable, countingOf, type Followed, newEntry, startAnew, UNCOUNTED } from './entry.ts'
import { countSeen } from './seen.ts'
import { createTakenCounters, type DirtyCounter } from './taken-counters.ts'

/** One record of decisions of a partition, wherever it was decided. */
export interface CounterDelta {
  readonly partition: number
  readonly seq: number
  readonly counted: Float64Array
}

/** What a thread has not been told yet. */
export interface CounterNews {
  /** In the order of each partition's records. */
  readonly deltas: readonly CounterDelta[]
  /** By partition: whatever is loaded from now on holds everything up to here. */
  readonly storedTo: readonly number[]
  /** Something in between cannot be told any more: counters of elsewhere are to be loaded anew. */
  readonly reset: boolean
}

/** A counter of one partition as the kv has it. */
export interface StoredCounter {
  readonly partition: number
  /** Events of the partition up to this record are in it. */
  readonly seq: number
  /** null: there was none. */
  readonly packed: Uint8Array | null
}

export interface Board {
  open(partition: number): void
  /** Drops what the partition counted; it may be decided elsewhere now. */
  forget(partition: number): void
  take(news: CounterNews): void
  /** Whether counters of the key must be loaded before it can be asked for, or added to. */
  missing(key: number): boolean
  /** How many partitions were opened so far: whoever asks for counters says with them when that was. */
  openings(): number
  /** Partitions that are not named have stored none. Of one that was opened since they were asked for they may be older than what it has. */
  load(key: number, stored: readonly StoredCounter[], askedAt?: number): void
  /** Of every partition that counted the key. */
  of(key: number): readonly Counters[]
  /** How many things of a set the key was seen with in the day that ends with `at`, `also` among them. */
  seen(key: number, set: number, at: number, also: number): number
  /** Adds an event of a partition that is open here. */
  add(partition: number, counted: Counted): void
  /** What a visitor of an open partition takes with it, by its own counters, where those it is counted by are loaded. */
  leaving(partition: number, visitor: number, own: Counters): Departure | null
  /** Takes it out of them. */
  remove(partition: number, departure: Departure): void
  dirtyCount(partition: number): number
  /** Most of the counters taken last had been taken the time before as well. */
  isRepeating(partition: number): boolean
  /** Counters of the partition that changed since the last call, to be in the kv before the next one. `nowMs`: monotonic. */
  takeDirty(partition: number, nowMs: number): Iterable<DirtyCounter>
  /** Behind a turn: what `of` returned is good until then. */
  rest(): void
}

/** An event that may not be in the kv yet. */
interface Pending {
  readonly seq: number
  readonly counted: Counted | Departure
}

const NOTHING: readonly Counters[] = []

/** `keysMax` bounds the keys kept that have nothing to be stored. */
export function createBoard(partitions: number, keysMax: number): Board {
  const entries = createEntries(partitions, keysMax)
  const pending: Map<number, Pending[]>[] = Array.from({ length: partitions }, () => new Map())
  const storedTo: number[] = Array.from({ length: partitions }, () => 0)
  /** Of each open partition the keys changed since its last checkpoint, and those that this checkpoint stores. */
  const dirty = new Map<number, Set<number>>()
  const storing = new Map<number, Set<number>>()
  /** Partitions, as `isRepeating` says. */
  const repeating = new Set<number>()
  let openings = 0
  const openedAt = new Map<number, number>()

  /** Keys of which something is not in the kv yet. */
  const kept = (): ReadonlySet<number>[] => [...dirty.values(), ...storing.values()]

  function follow({ partition, seq, counted }: CounterDelta): void {
    const waiting = pending[partition] as Map<number, Pending[]>
    const isStored = seq <= (storedTo[partition] as number)
    const isOpen = dirty.has(partition)
    const touched: Followed[] = []
    for (const one of unflatten(counted)) {
      for (const key of allCounterKeysOf(one)) {
        if (!isStored) {
          const list = waiting.get(key)
          if (list === undefined) waiting.set(key, [{ seq, counted: one }])
          else list.push({ seq, counted: one })
        }
        const entry = isOpen ? undefined : entries.get(key)
        const followed = countable(entry, partition)
        if (entry === undefined || followed === undefined || followed.seq >= seq) continue
        addTo(entry, followed, key, one)
        touched.push(followed)
      }
    }
    // Last: one record may add to a counter several times.
    for (const followed of touched) followed.seq = seq
  }

  /** A counter of the kv holds these events from now on, whenever it is read. */
  function settle(partition: number, seq: number): void {
    if (seq <= (storedTo[partition] as number)) return
    storedTo[partition] = seq
    const waiting = pending[partition] as Map<number, Pending[]>
    for (const [key, list] of waiting) {
      const left = list.findIndex((one) => one.seq > seq)
      if (left < 0) waiting.delete(key)
      else if (left > 0) list.splice(0, left)
    }
  }

  function drop(partition: number): void {
    for (const entry of entries.keepOnly(kept().flatMap((keys) => [...keys]))) {
      entry.of[partition] = undefined
      entry.isLoaded = false
      startAnew(entry)
    }
  }

  function open(counter: StoredCounter, key: number): Followed {
    const { partition, packed } = counter
    const isPending = !dirty.has(partition) && pending[partition]?.has(key) === true
    if (packed === null && counter.seq === 0 && !isPending) return UNCOUNTED
    const counters = packed === null ? null : unpackCounters(packed)
    const followed: Followed = { counters, seq: counter.seq, takenS: -1 }
    // What an open partition has not stored is dirty and therefore loaded: the kv has all that is not.
    if (!isPending) return followed
    for (const one of pending[partition]?.get(key) ?? []) {
      if (one.seq <= counter.seq) continue
      addTo(null, followed, key, one.counted)
      followed.seq = one.seq
    }
    return followed
  }

  function addAt(key: number, partition: number, counted: Counted): void {
    const entry = must(entries.get(key), 'counters that are loaded')
    addTo(entry, must(countable(entry, partition), 'counters that are loaded'), key, counted)
    must(dirty.get(partition), 'an open partition').add(key)
  }

  return {
    open(partition) {
      drop(partition)
      dirty.set(partition, new Set())
      openedAt.set(partition, ++openings)
    },
    forget(partition) {
      dirty.delete(partition)
      storing.delete(partition)
      repeating.delete(partition)
      drop(partition)
    },
    take(news) {
      if (news.reset) {
        for (let partition = 0; partition < partitions; partition++) if (!dirty.has(partition)) drop(partition)
        for (const waiting of pending) waiting.clear()
      }
      for (const one of news.deltas) follow(one)
      news.storedTo.forEach((seq, partition) => void settle(partition, seq))
    },
    missing: (key) => entries.get(key)?.isLoaded !== true,
    openings: () => openings,
    load(key, stored, askedAt = openings) {
      const entry = entries.get(key) ?? newEntry(partitions)
      // Whoever asked for it is about to use it.
      entry.unusedSinceS = null
      startAnew(entry)
      // The owner before may have stored more since; whoever needs the counters asks again.
      const isOld = (partition: number) => dirty.has(partition) && (openedAt.get(partition) as number) > askedAt
      for (const counter of stored) {
        if (!isOld(counter.partition)) entry.of[counter.partition] ??= open(counter, key)
      }
      for (let partition = 0; partition < partitions; partition++) {
        if (!isOld(partition)) entry.of[partition] ??= open({ partition, seq: 0, packed: null }, key)
      }
      entry.isLoaded = entry.of.every((followed) => followed !== undefined)
      entries.add(key, entry)
    },
    of(key) {
      const entry = entries.get(key)
      if (entry?.isLoaded !== true) return NOTHING
      entry.unusedSinceS = null
      return countingOf(entry)
    },
    seen(key, set, at, also) {
      const entry = entries.get(key)
      return entry?.isLoaded !== true ? 1 : countSeen(entry, countingOf(entry), set, at, also)
    },
    add(partition, counted) {
      addAt(counted.ipKey, partition, counted)
      if (counted.linkedKey !== 0) addAt(counted.linkedKey, partition, counted)
    },
    leaving: (partition, visitor, own) =>
      departureOf(visitor, own, (key) => entries.get(key)?.of[partition]?.counters ?? null),
    remove(partition, departure) {
      for (const { key } of departure.keys) {
        const entry = must(entries.get(key), 'counters that are loaded')
        const followed = must(countable(entry, partition), 'counters that are loaded')
        // It was counted so long ago that nothing is left of it.
        if (followed.counters === null) continue
        addTo(entry, followed, key, departure)
        must(dirty.get(partition), 'an open partition').add(key)
      }
    },
    dirtyCount: (partition) => dirty.get(partition)?.size ?? 0,
    isRepeating: (partition) => repeating.has(partition),
    takeDirty(partition, nowMs) {
      const keys = must(dirty.get(partition), 'an open partition')
      if (areMostIn(keys, storing.get(partition))) repeating.add(partition)
      else repeating.delete(partition)
      // The last checkpoint is committed when the next one is taken; before that the kv cannot be asked for what it stores.
      storing.set(partition, keys)
      dirty.set(partition, new Set())
      entries.makeRoom(nowMs, kept())
      const nowS = Math.floor(nowMs / SECOND_MS)
      const taken = createTakenCounters(nowS, keys.size)
      for (const key of keys) entries.take(key, partition, nowS, taken)
      return taken
    },
    rest: entries.rest,
  }
}

function areMostIn(keys: ReadonlySet<number>, others: ReadonlySet<number> | undefined): boolean {
  if (others === undefined) return false
  let common = 0
  for (const key of keys) if (others.has(key)) common++
  return 2 * common > keys.size
}
