// What a partition's owner holds of its visitors in memory: packed states and the match index. A bounded cache over the kv
// checkpoint plus what has changed since. Hundreds of thousands of both are held outside of the heap.

import {
  addObservation,
  type MatchStatistics,
  newMatchStatistics,
  type PackedObservation,
  packMatchStatistics,
  unpackMatchStatistics,
  unpackObservation,
} from '../identity/match-statistics.ts'
import type { Life, VisitorState } from '../identity/visitor.ts'
import { readLife, unpackVisitor } from '../identity/visitor-record.ts'
import { ERASED, type Tombstone } from '../records/erasures.ts'
import type { VELOCITY } from '../records/partitions.ts'
import {
  type HeldVisitor,
  mayHaveManyKeys,
  mayHaveSurvivor,
  readState,
  unpackHeldVisitor,
} from '../records/visitors.ts'
import { createByteTable, type Place } from './byte-table.ts'
import { type HeldIndex, INDEX_IDS_MAX, type IndexEntry, packIndex, readIndex, TEXT_IDS_MAX } from './index-entry.ts'
import type { MERGED_RECORDS } from './merged-records.ts'
import { createTable } from './table.ts'

export type Loadable = 'visitor' | 'index' | 'learned' | typeof ERASED
export interface WantedEntry {
  /**
   * A ruleset (`<workspace>/<env>`) is not an entry of the state: it comes with the next step, if there is one. Counters are
   * those of every partition: see velocity/board.ts. Merged records lie in the environment and in other partitions: see merged-records.ts.
   */
  readonly kind: Loadable | 'ruleset' | typeof VELOCITY | typeof MERGED_RECORDS
  readonly id: string
}
/** null: the kv has no such entry. */
export interface LoadedEntry {
  readonly kind: Loadable | typeof VELOCITY | typeof MERGED_RECORDS
  readonly id: string
  readonly value: unknown
}
export interface Dirty {
  readonly kind: Loadable | typeof VELOCITY
  readonly id: string
  readonly value: unknown
  /** As `Put` has it. */
  readonly isRenewal?: boolean
}
/** What a checkpoint is to write. */
export interface DirtyEntries {
  /** Each is made when it is asked for, as often as it is: thousands that wait to be written would grow old in the heap. */
  readonly dirty: Iterable<Dirty>
  /** Entries that go. */
  readonly gone: readonly (readonly [kind: Loadable, id: string])[]
}

export interface PartitionState {
  /** Whoever knows which keys it may have spares their texts. */
  visitor(id: string, likelyKeys?: readonly string[]): HeldVisitor | null | undefined
  /** What visits are compared with: a fresh copy. */
  known(id: string): VisitorState | null | undefined
  /** The same to read only, and only until the next call that names the visitor. */
  peek(id: string): VisitorState | null | undefined
  /** When it was here. */
  life(id: string): Life | null | undefined
  /** `HeldVisitor.survivor`. */
  survivor(id: string): string | null | undefined
  /** `mayHaveManyKeys` of its record. */
  mayHaveManyKeys(id: string): boolean
  putVisitor(id: string, packed: Uint8Array): void
  /** An equal one as long as the entry does not change, until the next rest; see `readIndex`. */
  index(id: string): HeldIndex | null | undefined
  /** Another number when any entry of the index may have changed. */
  indexChanges(): number
  /** Makes `visitorId` the newest of an index entry. */
  addToIndex(id: string, visitorId: string): void
  /** Takes a visitor out of an index entry that is loaded. */
  dropFromIndex(id: string, visitorId: string): void
  /** What was learned of a system and browser; undefined or null: nothing yet. */
  learned(id: string): MatchStatistics | null | undefined
  teach(id: string, lesson: PackedObservation): void
  /** What is left of an erased visitor, by `erasedId`. */
  tombstone(id: string): Tombstone | null | undefined
  /** Drops a visitor and its places in the index; what is left is the tombstone. */
  erase(id: string, indexIds: readonly string[], tombstoneId: string, tombstone: Tombstone): void
  /** The same without one: nobody asked for it. */
  expire(id: string, indexIds: readonly string[]): void
  missing(kind: Loadable, id: string): boolean
  load(entries: readonly LoadedEntry[]): void
  /** How many entries the next checkpoint would write. */
  dirtyCount(): number
  /** Everything changed since the last call; afterwards the cache shrinks to its bound. `nowMs`: monotonic. */
  takeDirty(nowMs: number): DirtyEntries
  /** Lets go of what was unpacked to be looked at. */
  rest(): void
}

const EMPTY: IndexEntry = { ids: [], total: 0 }

/** Holds the records that a batch looks at, of which most are small. */
const ARENA_BYTES = 65_536

/** `visitorsMax` bounds the clean entries kept of visitors, as `createByteTable` says; index entries are bounded at four times as many. */
export function createState(visitorsMax: number): PartitionState {
  const visitors = createByteTable(visitorsMax)
  const indexes = createByteTable(visitorsMax * 4)
  const tombstones = createTable<Tombstone>(visitorsMax)
  const learned = createTable<MatchStatistics>(visitorsMax)
  const tables = { learned, visitor: visitors, index: indexes, [ERASED]: tombstones }
  // All three are made anew with each rest (D209): cleared, a map that lives keeps what was in it from the scavenger.
  /** Unpacked since the last rest: within a batch the same visitors are asked for again and again. */
  let unpacked = new Map<string, HeldVisitor>()
  /** Peeked at and not handed out yet. */
  let peeked = new Map<string, VisitorState>()
  /** Entries with many ids, taken apart. */
  let wide = new Map<string, IndexEntry>()
  let indexChanges = 0
  /** What is unpacked from it is good until the next rest. */
  let arena = Buffer.allocUnsafeSlow(ARENA_BYTES)
  let arenaEnd = 0

  /** The one asked for last, of those unpacked: one visit asks for its visitor many times. */
  let lastId = ''
  let last: HeldVisitor | null = null

  function visitor(id: string, likelyKeys?: readonly string[]): HeldVisitor | null | undefined {
    if (last !== null && id === lastId) return last
    let held = unpacked.get(id)
    if (held === undefined) {
      const place = visitors.find(id)
      if (place === undefined || place === null) return place
      held = unpackAt(place, likelyKeys)
      unpacked.set(id, held)
    }
    lastId = id
    last = held
    return held
  }

  /** Of a copy: what is unpacked is partly views, and the table writes over what it holds. */
  function unpackAt({ start, end }: Place, likelyKeys?: readonly string[]): HeldVisitor {
    const length = end - start
    if (arenaEnd + length > arena.length) {
      arena = Buffer.allocUnsafeSlow(Math.max(ARENA_BYTES, length))
      arenaEnd = 0
    }
    const first = arenaEnd
    arenaEnd += visitors.bytes().copy(arena, first, start, end)
    return unpackHeldVisitor(arena, first, arenaEnd, likelyKeys)
  }

  function setVisitor(id: string, record: Uint8Array | null): void {
    visitors.set(id, record)
    unpacked.delete(id)
    peeked.delete(id)
    last = null
  }

  function open(id: string): VisitorState | null | undefined {
    const held = unpacked.get(id)
    if (held !== undefined) return unpackVisitor(held.state)
    const place = visitors.find(id)
    if (place === undefined || place === null) return place
    return readState(visitors.bytes(), unpackVisitor, place.start, place.end)
  }

  function index(id: string): HeldIndex | null | undefined {
    const place = indexes.find(id)
    if (place === undefined || place === null) return place
    const bytes = indexes.bytes()
    if ((bytes[place.start] as number) <= TEXT_IDS_MAX) return bytes.toString('latin1', place.start + 1, place.end)
    let entry = wide.get(id)
    if (entry === undefined) {
      entry = readIndex(bytes.toString('latin1', place.start + 1, place.end))
      wide.set(id, entry)
    }
    return entry
  }

  function setIndex(id: string, entry: IndexEntry | null): void {
    indexChanges++
    indexes.set(id, entry && packIndex(entry))
    wide.delete(id)
  }

  function addToIndex(id: string, visitorId: string): void {
    const held = index(id)
    const { ids: all, total } = held ? readIndex(held) : EMPTY
    const ids = all.filter((other) => other !== visitorId)
    const isNew = ids.length === all.length
    ids.push(visitorId)
    if (ids.length > INDEX_IDS_MAX) ids.shift()
    setIndex(id, { ids, total: total + (isNew ? 1 : 0) })
  }

  function dropFromIndex(id: string, visitorId: string): void {
    const held = index(id)
    if (!held) return
    const { ids: all, total } = readIndex(held)
    const ids = all.filter((other) => other !== visitorId)
    if (ids.length === all.length) return
    setIndex(id, ids.length === 0 ? null : { ids, total: Math.max(ids.length, total - 1) })
  }

  function expire(id: string, indexIds: readonly string[]): void {
    const visitorId = id.slice(id.lastIndexOf('/') + 1)
    setVisitor(id, null)
    for (const indexId of indexIds) dropFromIndex(indexId, visitorId)
  }

  return {
    visitor,
    known(id) {
      const ready = peeked.get(id)
      if (ready === undefined) return open(id)
      peeked.delete(id)
      return ready
    },
    peek(id) {
      const visitor = peeked.get(id) ?? open(id)
      if (visitor) peeked.set(id, visitor)
      return visitor
    },
    life(id) {
      const ready = peeked.get(id)
      if (ready !== undefined) return ready
      const place = visitors.find(id)
      if (place === undefined || place === null) return place
      return readState(visitors.bytes(), readLife, place.start, place.end)
    },
    survivor(id) {
      if (last !== null && id === lastId) return last.survivor
      const place = visitors.find(id)
      if (place === undefined || place === null) return place
      return mayHaveSurvivor(visitors.bytes()[place.start] as number) ? visitor(id)?.survivor : null
    },
    mayHaveManyKeys(id) {
      const place = visitors.find(id)
      return place ? mayHaveManyKeys(visitors.bytes(), place.start, place.end) : false
    },
    putVisitor: setVisitor,
    index,
    indexChanges: () => indexChanges,
    addToIndex,
    dropFromIndex,
    learned: learned.get,
    teach(id, lesson) {
      const known = learned.get(id) ?? newMatchStatistics()
      addObservation(known, unpackObservation(lesson))
      learned.set(id, known)
    },
    tombstone: tombstones.get,
    erase(id, indexIds, tombstoneId, tombstone) {
      expire(id, indexIds)
      // The first erasure is the one that was answered.
      if (!tombstones.get(tombstoneId)) tombstones.set(tombstoneId, tombstone)
    },
    expire,
    missing: (kind, id) => !tables[kind].has(id),
    load(entries) {
      for (const { kind, id, value } of entries) {
        if (kind === 'visitor') visitors.load(id, value as Uint8Array | null)
        else if (kind === 'index') {
          const [total, ...ids] = (value ?? [0]) as [number, ...string[]]
          indexChanges++
          indexes.load(id, value === null ? null : packIndex({ total, ids }))
        } else if (kind === 'learned')
          learned.load(id, value === null ? null : unpackMatchStatistics(value as number[]))
        else if (kind === ERASED) tombstones.load(id, value as Tombstone | null)
      }
    },
    dirtyCount: () => visitors.dirtyCount() + indexes.dirtyCount() + learned.dirtyCount() + tombstones.dirtyCount(),
    takeDirty(nowMs) {
      const seen = visitors.takeDirty(nowMs)
      const listed = indexes.takeDirty(nowMs)
      indexChanges++
      const few: Dirty[] = []
      for (const [id, value] of tombstones.takeDirty(nowMs)) few.push({ kind: ERASED, id, value })
      for (const [id, l] of learned.takeDirty(nowMs)) few.push({ kind: 'learned', id, value: packMatchStatistics(l) })
      const gone = [
        ...seen.gone.map((id) => ['visitor', id] as const),
        ...listed.gone.map((id) => ['index', id] as const),
      ]
      function* dirty(): Generator<Dirty> {
        for (const [id, value] of seen.entries()) yield { kind: 'visitor', id, value }
        for (const [id, packed] of listed.entries()) {
          const { total, ids } = readIndex(packed.toString('latin1', 1))
          yield { kind: 'index', id, value: [total, ...ids] }
        }
        yield* few
      }
      return { dirty: { [Symbol.iterator]: dirty }, gone }
    },
    rest() {
      if (unpacked.size > 0) unpacked = new Map()
      if (peeked.size > 0) peeked = new Map()
      if (wide.size > 0) wide = new Map()
      last = null
      arenaEnd = 0
    },
  }
}
