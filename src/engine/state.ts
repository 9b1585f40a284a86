// What a partition's owner holds of its visitors in memory: packed states and the match index. A bounded cache over the kv
// checkpoint plus what has changed since. Hundreds of thousands of both are held as texts, a byte to a character: one object for
// the garbage collector to mark, which leads to no other.

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
import type { MERGED_RECORDS } from './merged-records.ts'
import { createTable } from './table.ts'

/** Ids that share a match key, newest last, and how many there ever were. */
export interface IndexEntry {
  readonly ids: readonly string[]
  readonly total: number
}
export const INDEX_IDS_MAX = 32

/** Of most entries a text: they have one id or few. The others are looked at so often that it would be taken apart all the time. */
export type HeldIndex = string | IndexEntry
const TEXT_IDS_MAX = 4

export type Loadable = 'visitor' | 'index' | 'learned' | typeof ERASED
export interface WantedEntry {
  /**
   * A ruleset (`<workspace>/<env>`) is not an entry of the state: it comes with the next step, if there is one. Counters are
   * those of every partition: see velocity/board.ts. Kin lies in the environment and in other partitions: see kin.ts.
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
  /** null: the entry goes. */
  readonly value: unknown
  /** As `Put` has it. */
  readonly isRenewal?: boolean
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
  /** The same one as long as the entry does not change; see `readIndex`. */
  index(id: string): HeldIndex | null | undefined
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
  takeDirty(nowMs: number): Dirty[]
  /** Lets go of what was unpacked to be looked at. */
  rest(): void
}

/** Ids are letters, digits and underscores. */
const holdIndex = (entry: IndexEntry): HeldIndex =>
  entry.ids.length > TEXT_IDS_MAX ? entry : `${entry.total} ${entry.ids.join(' ')}`

const ZERO = 48

export function readIndex(held: HeldIndex): IndexEntry {
  if (typeof held !== 'string') return held
  const idsAt = held.indexOf(' ') + 1
  let total = 0
  for (let i = 0; i < idsAt - 1; i++) total = total * 10 + held.charCodeAt(i) - ZERO
  return { total, ids: held.slice(idsAt).split(' ') }
}

const EMPTY: IndexEntry = { ids: [], total: 0 }

/** Holds the records that a batch looks at, of which most are small. */
const ARENA_BYTES = 65_536

/** A packed record: a text, but between a decision and the checkpoint that stores it, which takes bytes. */
type HeldRecord = string | Uint8Array

const textOf = (bytes: Uint8Array): string => Buffer.prototype.latin1Slice.call(bytes, 0, bytes.length)

const textOfHeld = (record: HeldRecord): HeldRecord => (typeof record === 'string' ? record : textOf(record))

/** Of its own memory, which goes to another thread alone: bytes read from a record of the log are a part of that. */
const owned = (bytes: Uint8Array): Uint8Array =>
  bytes.byteLength === bytes.buffer.byteLength ? bytes : new Uint8Array(bytes)

/** `visitorsMax` bounds the clean entries kept of visitors, as `createTable` says; index entries are bounded at four times as many. */
export function createState(visitorsMax: number): PartitionState {
  const visitors = createTable<HeldRecord>(visitorsMax, textOfHeld)
  const indexes = createTable<HeldIndex>(visitorsMax * 4)
  const tombstones = createTable<Tombstone>(visitorsMax)
  const learned = createTable<MatchStatistics>(visitorsMax)
  const tables = { learned, visitor: visitors, index: indexes, [ERASED]: tombstones }
  // Both are made anew with each rest (D209): cleared, a map that lives keeps what was in it from the scavenger.
  /** Unpacked since the last rest: within a batch the same visitors are asked for again and again. */
  let unpacked = new Map<string, HeldVisitor>()
  /** Peeked at and not handed out yet. */
  let peeked = new Map<string, VisitorState>()
  let scratch = Buffer.alloc(4_096)
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
      const record = visitors.get(id)
      if (record === undefined || record === null) return record
      held = typeof record === 'string' ? unpackText(record, likelyKeys) : unpackHeldVisitor(record)
      unpacked.set(id, held)
    }
    lastId = id
    last = held
    return held
  }

  function unpackText(text: string, likelyKeys?: readonly string[]): HeldVisitor {
    if (arenaEnd + text.length > arena.length) {
      arena = Buffer.allocUnsafeSlow(Math.max(ARENA_BYTES, text.length))
      arenaEnd = 0
    }
    const start = arenaEnd
    arenaEnd += arena.write(text, start, 'latin1')
    return unpackHeldVisitor(arena, start, arenaEnd, likelyKeys)
  }

  /**
   * At the beginning of memory that the next call writes over: nothing unpacked from it may be a view, nor may what is behind the text
   * be read.
   */
  function lent(text: string): Uint8Array {
    if (text.length > scratch.length) scratch = Buffer.alloc(2 * text.length)
    scratch.write(text, 'latin1')
    return scratch
  }

  /** To be read before the next call. */
  const bytesOf = (record: HeldRecord): Uint8Array => (typeof record === 'string' ? lent(record) : record)

  function setVisitor(id: string, record: HeldRecord | null): void {
    visitors.set(id, record)
    unpacked.delete(id)
    peeked.delete(id)
    last = null
  }

  function open(id: string): VisitorState | null | undefined {
    const held = unpacked.get(id)
    if (held !== undefined) return unpackVisitor(held.state)
    const record = visitors.get(id)
    if (record === undefined || record === null) return record
    return readState(bytesOf(record), unpackVisitor)
  }

  function addToIndex(id: string, visitorId: string): void {
    const held = indexes.get(id)
    const { ids: all, total } = held ? readIndex(held) : EMPTY
    const ids = all.filter((other) => other !== visitorId)
    const isNew = ids.length === all.length
    ids.push(visitorId)
    if (ids.length > INDEX_IDS_MAX) ids.shift()
    indexes.set(id, holdIndex({ ids, total: total + (isNew ? 1 : 0) }))
  }

  function dropFromIndex(id: string, visitorId: string): void {
    const held = indexes.get(id)
    if (!held) return
    const { ids: all, total } = readIndex(held)
    const ids = all.filter((other) => other !== visitorId)
    if (ids.length === all.length) return
    indexes.set(id, ids.length === 0 ? null : holdIndex({ ids, total: Math.max(ids.length, total - 1) }))
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
      const record = visitors.get(id)
      if (record === undefined || record === null) return record
      return readState(bytesOf(record), readLife)
    },
    survivor(id) {
      if (last !== null && id === lastId) return last.survivor
      const record = visitors.get(id)
      if (record === undefined || record === null) return record
      const first = typeof record === 'string' ? record.charCodeAt(0) : (record[0] as number)
      return mayHaveSurvivor(first) ? visitor(id)?.survivor : null
    },
    mayHaveManyKeys(id) {
      const record = visitors.get(id)
      if (record === undefined || record === null) return false
      return mayHaveManyKeys(record)
    },
    putVisitor: (id, packed) => setVisitor(id, owned(packed)),
    index: indexes.get,
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
        if (kind === 'visitor') visitors.load(id, value === null ? null : textOf(value as Uint8Array))
        else if (kind === 'index') {
          const [total, ...ids] = (value ?? [0]) as [number, ...string[]]
          indexes.load(id, value === null ? null : holdIndex({ total, ids }))
        } else if (kind === 'learned')
          learned.load(id, value === null ? null : unpackMatchStatistics(value as number[]))
        else if (kind === ERASED) tombstones.load(id, value as Tombstone | null)
      }
    },
    dirtyCount: () => visitors.dirtyCount + indexes.dirtyCount + learned.dirtyCount + tombstones.dirtyCount,
    takeDirty(nowMs) {
      const dirty: Dirty[] = []
      for (const [id, value] of visitors.takeDirty(nowMs)) dirty.push({ kind: 'visitor', id, value })
      for (const [id, held] of indexes.takeDirty(nowMs)) {
        const entry = held === null ? null : readIndex(held)
        dirty.push({ kind: 'index', id, value: entry && [entry.total, ...entry.ids] })
      }
      for (const [id, t] of tombstones.takeDirty(nowMs)) dirty.push({ kind: ERASED, id, value: t })
      for (const [id, l] of learned.takeDirty(nowMs)) {
        dirty.push({ kind: 'learned', id, value: l && packMatchStatistics(l) })
      }
      return dirty
    },
    rest() {
      unpacked = new Map()
      peeked = new Map()
      last = null
      arenaEnd = 0
    },
  }
}
