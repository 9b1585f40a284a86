// Versioned records with atomic, guarded commits: the checkpoint of state whose truth is the log.

/** One scope is one atomicity domain (one Redis slot): `system`, `p/<partition>`, `w/<workspace>/<env>`. */
export type Scope = string
/** Both parts are non-empty; ids sort by their UTF-8 bytes. At most 512 bytes together with the scope. */
export type KvKey = readonly [collection: string, id: string]
/** Changes with every write of the record; unique over the lifetime of a key. */
export type Version = number

export interface KvEntry<T = unknown> {
  readonly key: KvKey
  readonly value: T
  readonly version: Version
}

export interface KeyRange {
  /** Ids strictly greater than this one. */
  readonly after?: string
  /** Ids up to and including this one. */
  readonly upTo?: string
  readonly limit: number
  readonly reverse?: boolean
}

/**
 * The position of a log reader, kept in the scope it guards. `expect: null` means the position must not exist yet:
 * a missing position is never taken for zero.
 */
export interface PositionGuard {
  readonly source: string
  readonly expect: number | null
  readonly next: number
}

export interface Put {
  readonly key: KvKey
  /** Anything msgpack can hold; a Uint8Array is stored as it is. */
  readonly value: unknown
  /** Only for records whose disappearance nobody must notice. */
  readonly ttlMs?: number
  /** The writer knows that the record is there, and was to expire no later than it does now: nobody has to look. */
  readonly isRenewal?: boolean
}

/** All of it, or none. */
export interface Commit {
  readonly scope: Scope
  readonly guard?: PositionGuard
  /** The version each key must have; null: it must not exist. */
  readonly check?: readonly (readonly [KvKey, Version | null])[]
  /** May be asked for more than once: each is made when it is written, where there are thousands. */
  readonly put?: Iterable<Put>
  readonly drop?: readonly KvKey[]
  /** Adds to integer counters, creating them from 0. A counter reads back as a number. */
  readonly add?: readonly (readonly [KvKey, number])[]
}

/** A commit as the embedded kv's keys and records: plain data, which can go from one thread to another. */
export interface Prepared {
  /** What it may add on disk. */
  readonly bytes: number
  readonly guard: { readonly key: Uint8Array; readonly expect: number | null; readonly next: number } | null
  readonly check: readonly (readonly [Uint8Array, Version | null])[]
  /** Parts of keys and records, one behind the other; `eachPut` reads them. */
  readonly put: readonly Uint8Array[]
  readonly drop: readonly Uint8Array[]
  readonly add: readonly (readonly [Uint8Array, number])[]
}

export const VALUE_BYTES_MAX = 1_000_000
export const COMMIT_KEYS_MAX = 26_000

export interface Kv {
  /** One round trip; null for what does not exist or has expired. */
  get<T = unknown>(scope: Scope, keys: readonly KvKey[]): Promise<(KvEntry<T> | null)[]>
  /** Entries of a collection in id order; RangeError for a collection the kv was opened with as unsorted. */
  scan<T = unknown>(scope: Scope, collection: string, range: KeyRange): Promise<KvEntry<T>[]>
  /** All entries of any collection, in any order. One that is written meanwhile may be missing or come twice. */
  walk<T = unknown>(scope: Scope, collection: string): AsyncIterable<KvEntry<T>>
  /** The guarded position of `source` in this scope; null when it was never written. */
  position(scope: Scope, source: string): Promise<number | null>
  /** One answer per commit, each decided by itself: false means a check or the guard failed and nothing of it was written. */
  commit(commits: readonly Commit[]): Promise<boolean[]>
  /** As `commit`, of what `prepareCommits` made of them, on another thread perhaps. Absent where a server writes. */
  commitPrepared?(prepared: readonly Prepared[]): Promise<boolean[]>
  /**
   * All of these commits, each of a scope of its own, or none: false means that a check or a guard of one of them failed and nothing
   * was written. Absent where scopes may lie on different servers.
   */
  commitTogether?(commits: readonly Commit[]): Promise<boolean>
  /**
   * Resolves when no byte of what was dropped before the call is on the disk. Absent where the disk is a server's own matter.
   * Fails with Full when there is no room for it.
   */
  compact?(): Promise<void>
  /** Bytes that everything stored occupies, as the store counts them. Absent where nobody counts. */
  usage?(): Promise<number>
  close(): Promise<void>
}
