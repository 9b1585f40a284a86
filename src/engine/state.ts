// What a partition's owner holds of its visitors in memory: packed states and the match index. A bounded cache over the kv
// checkpoint plus what has changed since.

import { ERASED, type Tombstone } from '../records/erasures.ts'
import { type HeldVisitor, unpackHeldVisitor } from '../records/visitors.ts'

/** Ids that share a match key, newest last, and how many there ever were. */
export interface IndexEntry {
  readonly ids: readonly string[]
  readonly total: number
}
export const INDEX_IDS_MAX = 32

export type Loadable = 'visitor' | 'index' | typeof ERASED
export interface Wanted {
  /** A ruleset (`<workspace>/<env>`) is not an entry of the state: it comes with the next step, if there is one. */
  readonly kind: Loadable | 'ruleset'
  readonly id: string
}
/** null: the kv has no such entry. */
export interface Loaded {
  readonly kind: Loadable
  readonly id: string
  readonly value: unknown
}
export interface Dirty {
  readonly kind: Loadable
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

/** undefined: not loaded. null: known to be absent. Dirty entries are never evicted. */
function createTable<T>(entriesMax: number): Table<T> {
  const entries = new Map<string, T | null>()
  const dirty = new Set<string>()
  return {
    get: (id) => {
      const value = entries.get(id)
      if (value !== undefined) {
        entries.delete(id)
        entries.set(id, value)
      }
      return value
    },
    has: (id) => entries.has(id),
    set(id, value) {
      entries.delete(id)
      entries.set(id, value)
      dirty.add(id)
    },
    load(id, value) {
      if (!entries.has(id)) entries.set(id, value)
    },
    takeDirty() {
      const taken: [string, T | null][] = []
      for (const id of dirty) taken.push([id, entries.get(id) as T | null])
      dirty.clear()
      return taken
    },
    evict() {
      for (const id of entries.keys()) {
        if (entries.size <= entriesMax) return
        if (!dirty.has(id)) entries.delete(id)
      }
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
  const tables = { visitor: visitors, index: indexes, [ERASED]: tombstones }

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
    tombstone: tombstones.get,
    erase(id, indexIds, tombstoneId, tombstone) {
      const visitorId = id.slice(id.lastIndexOf('/') + 1)
      visitors.set(id, null)
      for (const indexId of indexIds) {
        const entry = indexes.get(indexId)
        if (!entry?.ids.includes(visitorId)) continue
        const ids = entry.ids.filter((other) => other !== visitorId)
        indexes.set(indexId, ids.length === 0 ? null : { ids, total: Math.max(ids.length, entry.total - 1) })
      }
      // The first erasure is the one that was answered.
      if (!tombstones.get(tombstoneId)) tombstones.set(tombstoneId, tombstone)
    },
    missing: (kind, id) => !tables[kind].has(id),
    load(entries) {
      for (const { kind, id, value } of entries) {
        if (kind === 'visitor') visitors.load(id, value === null ? null : unpackHeldVisitor(value as Uint8Array))
        else if (kind === 'index') indexes.load(id, value === null ? null : asIndex(value))
        else tombstones.load(id, value as Tombstone | null)
      }
    },
    dirtyCount: () => visitors.dirtyCount + indexes.dirtyCount + tombstones.dirtyCount,
    takeDirty() {
      const dirty: Dirty[] = []
      for (const [id, v] of visitors.takeDirty()) dirty.push({ kind: 'visitor', id, value: v?.packed ?? null })
      for (const [id, e] of indexes.takeDirty()) dirty.push({ kind: 'index', id, value: e && [e.total, ...e.ids] })
      for (const [id, t] of tombstones.takeDirty()) dirty.push({ kind: ERASED, id, value: t })
      visitors.evict()
      indexes.evict()
      tombstones.evict()
      return dirty
    },
  }
}
