// What a partition's owner holds of its visitors in memory: packed states and the match index. A bounded cache over the kv
// checkpoint plus what has changed since.

import {
  type Learned,
  learn,
  newLearned,
  type PackedLesson,
  packLearned,
  unpackLearned,
  unpackLesson,
} from '../identity/learned.ts'
import { must } from '../lib/must.ts'
import { evictUnused } from '../lib/second-chance.ts'
import { ERASED, type Tombstone } from '../records/erasures.ts'
import type { VELOCITY } from '../records/partitions.ts'
import { type HeldVisitor, unpackHeldVisitor } from '../records/visitors.ts'
import type { KIN } from './kin.ts'

/** Ids that share a match key, newest last, and how many there ever were. */
export interface IndexEntry {
  readonly ids: readonly string[]
  readonly total: number
}
export const INDEX_IDS_MAX = 32

export type Loadable = 'visitor' | 'index' | 'learned' | typeof ERASED
export interface Wanted {
  /**
   * A ruleset (`<workspace>/<env>`) is not an entry of the state: it comes with the next step, if there is one. Counters are
   * those of every partition: see velocity/board.ts. Kin lies in the environment and in other partitions: see kin.ts.
   */
  readonly kind: Loadable | 'ruleset' | typeof VELOCITY | typeof KIN
  readonly id: string
}
/** null: the kv has no such entry. */
export interface Loaded {
  readonly kind: Loadable | typeof VELOCITY | typeof KIN
  readonly id: string
  readonly value: unknown
}
export interface Dirty {
  readonly kind: Loadable | typeof VELOCITY
  readonly id: string
  /** null: the entry goes. */
  readonly value: unknown
}

interface Table<T> {
  get(id: string): T | null | undefined
  has(id: string): boolean
  set(id: string, value: T | null): void
  load(id: string, value: T | null): void
  takeDirty(): [string, T | null][]
  evict(): void
  readonly dirtyCount: number
}

interface Kept<T> {
  value: T | null
  /** Since it was last a candidate for eviction. */
  used: boolean
}

/**
 * undefined: not loaded. null: known to be absent. Dirty entries are never evicted; of the others, those not used since the
 * last look.
 */
function createTable<T>(entriesMax: number): Table<T> {
  const entries = new Map<string, Kept<T>>()
  const dirty = new Set<string>()
  return {
    get(id) {
      const kept = entries.get(id)
      if (kept === undefined) return undefined
      kept.used = true
      return kept.value
    },
    has: (id) => entries.has(id),
    set(id, value) {
      const kept = entries.get(id)
      if (kept === undefined) entries.set(id, { value, used: true })
      else {
        kept.value = value
        kept.used = true
      }
      dirty.add(id)
    },
    load(id, value) {
      if (!entries.has(id)) entries.set(id, { value, used: false })
    },
    takeDirty() {
      const taken: [string, T | null][] = []
      for (const id of dirty) taken.push([id, must(entries.get(id), 'a changed entry').value])
      dirty.clear()
      return taken
    },
    evict() {
      evictUnused(entries, entriesMax, (id) => dirty.has(id))
    },
    get dirtyCount() {
      return dirty.size
    },
  }
}

export interface PartitionState {
  visitor(id: string): HeldVisitor | null | undefined
  putVisitor(id: string, visitor: HeldVisitor): void
  index(id: string): IndexEntry | null | undefined
  /** Makes `visitorId` the newest of an index entry. */
  addToIndex(id: string, visitorId: string): void
  /** Takes a visitor out of an index entry that is loaded. */
  dropFromIndex(id: string, visitorId: string): void
  /** What was learned of a system and browser; undefined or null: nothing yet. */
  learned(id: string): Learned | null | undefined
  teach(id: string, lesson: PackedLesson): void
  /** What is left of an erased visitor, by `erasedId`. */
  tombstone(id: string): Tombstone | null | undefined
  /** Drops a visitor and its places in the index; what is left is the tombstone. */
  erase(id: string, indexIds: readonly string[], tombstoneId: string, tombstone: Tombstone): void
  missing(kind: Loadable, id: string): boolean
  load(entries: readonly Loaded[]): void
  /** How many entries the next checkpoint would write. */
  dirtyCount(): number
  /** Everything changed since the last call; afterwards the cache shrinks to its bound. */
  takeDirty(): Dirty[]
}

const asIndex = (value: unknown): IndexEntry => {
  const [total, ...ids] = value as [number, ...string[]]
  return { total, ids }
}

/** `visitorsMax` bounds the clean entries kept of visitors; index entries are bounded at four times as many. */
export function createState(visitorsMax: number): PartitionState {
  const visitors = createTable<HeldVisitor>(visitorsMax)
  const indexes = createTable<IndexEntry>(visitorsMax * 4)
  const tombstones = createTable<Tombstone>(visitorsMax)
  const learned = createTable<Learned>(visitorsMax)
  const tables = { learned, visitor: visitors, index: indexes, [ERASED]: tombstones }

  function dropFromIndex(id: string, visitorId: string): void {
    const entry = indexes.get(id)
    if (!entry?.ids.includes(visitorId)) return
    const ids = entry.ids.filter((other) => other !== visitorId)
    indexes.set(id, ids.length === 0 ? null : { ids, total: Math.max(ids.length, entry.total - 1) })
  }

  return {
    visitor: visitors.get,
    putVisitor: visitors.set,
    index: indexes.get,
    addToIndex(id, visitorId) {
      const entry = indexes.get(id) ?? { ids: [], total: 0 }
      const known = entry.ids.includes(visitorId)
      const ids = entry.ids.filter((other) => other !== visitorId)
      ids.push(visitorId)
      if (ids.length > INDEX_IDS_MAX) ids.shift()
      indexes.set(id, { ids, total: entry.total + (known ? 0 : 1) })
    },
    dropFromIndex,
    learned: learned.get,
    teach(id, lesson) {
      const known = learned.get(id) ?? newLearned()
      learn(known, unpackLesson(lesson))
      learned.set(id, known)
    },
    tombstone: tombstones.get,
    erase(id, indexIds, tombstoneId, tombstone) {
      const visitorId = id.slice(id.lastIndexOf('/') + 1)
      visitors.set(id, null)
      for (const indexId of indexIds) dropFromIndex(indexId, visitorId)
      // The first erasure is the one that was answered.
      if (!tombstones.get(tombstoneId)) tombstones.set(tombstoneId, tombstone)
    },
    missing: (kind, id) => !tables[kind].has(id),
    load(entries) {
      for (const { kind, id, value } of entries) {
        if (kind === 'visitor') visitors.load(id, value === null ? null : unpackHeldVisitor(value as Uint8Array))
        else if (kind === 'index') indexes.load(id, value === null ? null : asIndex(value))
        else if (kind === 'learned') learned.load(id, value === null ? null : unpackLearned(value as number[]))
        else if (kind === ERASED) tombstones.load(id, value as Tombstone | null)
      }
    },
    dirtyCount: () => visitors.dirtyCount + indexes.dirtyCount + learned.dirtyCount + tombstones.dirtyCount,
    takeDirty() {
      const dirty: Dirty[] = []
      for (const [id, v] of visitors.takeDirty()) dirty.push({ kind: 'visitor', id, value: v?.packed ?? null })
      for (const [id, e] of indexes.takeDirty()) dirty.push({ kind: 'index', id, value: e && [e.total, ...e.ids] })
      for (const [id, t] of tombstones.takeDirty()) dirty.push({ kind: ERASED, id, value: t })
      for (const [id, l] of learned.takeDirty()) dirty.push({ kind: 'learned', id, value: l && packLearned(l) })
      learned.evict()
      visitors.evict()
      indexes.evict()
      tombstones.evict()
      return dirty
    },
  }
}
