// One LMDB environment with group commit: writes of many callers share one transaction, and one transaction is in
// flight at a time, so that a failed one takes nothing with it but itself and what waited behind it.
import { join } from 'node:path'
import type { RootDatabase } from 'lmdb'
import { openArena } from './arena.ts'
import { Full, Unavailable } from './failures.ts'
import { checkLmdbFile } from './lmdb-check.ts'
import { dropLeftovers, rewrite } from './lmdb-compact.ts'
import { type DatabaseConfig, openDatabase, probe, storedIn, usedBytes } from './lmdb-database.ts'
import { commitCause } from './lmdb-failures.ts'
import { hasRoomForCopy, lacksRoom, openReserve } from './lmdb-room.ts'
import { openUsage } from './lmdb-usage.ts'

/** `fsync`: a resolved write survives a power cut. `relaxed`: it survives the process only, and a power cut may cost the whole file. */
export type Durability = DatabaseConfig['durability']

export interface LmdbConfig extends DatabaseConfig {
  /** The folder of the environment; made when missing. */
  readonly path: string
  /** The most that live pages may occupy. Deleted data counts no more, though the file itself never shrinks. */
  readonly bytesMax: number
  /** The most that may wait for the disk; further writes fail with Full. */
  readonly queuedBytesMax: number
  /** What a compaction keeps of an entry; null: nothing, because nobody needs it any more. Left out: all of each. */
  readonly leftOf?: (key: Buffer, value: Buffer) => Uint8Array | null
  /** Told of each transaction that was made durable. */
  readonly onGroup?: (writes: number, seconds: number) => void
  /** Called after a failed transaction, when nothing is in flight and nothing that waited will be written. */
  readonly onFailure?: () => void
}

export interface LmdbWrite {
  /** What it may add on disk, in bytes; see `diskBytes`. */
  readonly bytes: number
  /** Others are about to come that it shares a transaction with: it waits `PATIENCE_MS` for one that does not wait. */
  readonly patient?: boolean
  /**
   * Puts and removes, synchronously. Reads see the last transaction without the earlier writes of this group.
   * What it throws rejects this write alone, so it must throw before its first put.
   */
  apply(): void
  /** Runs when the transaction is durable, in the order of submission and before any promise of the group resolves. */
  done?(): void
}

export interface LmdbEnv {
  /** To read from, at once: a compaction puts another in its place. */
  readonly db: RootDatabase<Buffer, Buffer>
  /** Within `apply` only. Copies the value. */
  put(key: Buffer, value: Uint8Array): void
  /** Within `apply` only. */
  remove(key: Buffer): void
  /** Counts transactions; `apply` compares it to learn that a new group began. */
  group(): number
  /** Why a write of `bytes` cannot be taken now, or null. Writes that only free room pass 0. */
  refusal(bytes: number): Unavailable | null
  /** Resolves when the write is durable; rejects with Full when nothing was written for lack of room, else Unavailable. */
  submit(write: LmdbWrite): Promise<void>
  /** Pages in use, as of the last transaction. */
  usage(): { readonly bytes: number; readonly bytesMax: number }
  /**
   * Rewrites the file so that no byte of what was deleted before the call is in it. Reads and writes go on; the last of the
   * writes wait while they are copied. Rejects with Full when the disk has no room for a copy. Once at a time.
   */
  compact(): Promise<void>
  /** Waits for the writes taken so far; later ones are refused. */
  close(): Promise<void>
}

interface Waiting {
  readonly write: LmdbWrite
  readonly resolve: () => void
  readonly reject: (error: unknown) => void
}

const GROUP_BYTES_MAX = 16 * 1024 * 1024
const ARENA_BYTES_MAX = 2 * GROUP_BYTES_MAX
const PATIENCE_MS = 10
/** Where a transaction held so many writes, more are coming: the next begins so long behind the beginning of this one at the earliest (D212). */
const MANY_WRITES = 3
const MANY_APART_MS = 6
/** A value that fills more of a page than this gets pages of its own. */
const IN_LEAF_SHARE_MAX = 0.46
/** How full pages are that split in the middle as they grow. */
const LEAF_FILL = 0.65

/** An estimate of the disk pages one record takes, in bytes: larger ones get whole pages of their own. */
export function diskBytes(keyBytes: number, valueBytes: number, pageBytes: number): number {
  const apart = valueBytes > pageBytes * IN_LEAF_SHARE_MAX
  const inLeaf = (apart ? 24 : valueBytes) + keyBytes + 16
  const ownPages = apart ? Math.ceil((valueBytes + 24) / pageBytes) : 0
  return Math.ceil(inLeaf / LEAF_FILL) + ownPages * pageBytes
}

/** Opens or makes the environment. Throws Unreadable when its file is damaged and Unavailable when it cannot be opened. */
export function openLmdb(config: LmdbConfig): LmdbEnv {
  dropLeftovers(config.path)
  checkLmdbFile(join(config.path, 'data.mdb'))
  let db = openDatabase(config, config.path)
  const waiting: Waiting[] = []
  let pendingBytes = 0
  const usage = openUsage(() => usedBytes(db))
  const reserve = openReserve(config.path)
  let groups = 0
  let scheduled = false
  /** One of those that wait is not patient, or has been long enough. */
  let urgent = false
  let patience: NodeJS.Timeout | null = null
  let nextFlushAt = 0
  let committing = false
  let broken: Error | null = null
  let closed = false
  let held = false
  let compacting: Promise<void> | null = null
  const whenIdle: (() => void)[] = []
  /** Keys of the transaction in flight, and of those committed since a compaction began to note them. */
  let writing: string[] = []
  let noted: Set<string> | null = null

  const arena = openArena(ARENA_BYTES_MAX)

  const schedule = () => {
    if (scheduled || committing || held || waiting.length === 0) return
    if (!urgent) {
      patience ??= setTimeout(hurry, PATIENCE_MS)
      return
    }
    scheduled = true
    const waitMs = nextFlushAt - performance.now()
    if (waitMs >= 1) setTimeout(flush, waitMs)
    else setImmediate(flush)
  }

  const hurry = () => {
    patience = null
    urgent = waiting.length > 0
    schedule()
  }

  const flush = () => {
    scheduled = false
    groups += 1
    const group = takeGroup(waiting)
    urgent = waiting.some(({ write }) => write.patient !== true)
    const written: Waiting[] = []
    committing = true
    arena.reset()
    const from = performance.now()
    if (group.length >= MANY_WRITES) nextFlushAt = from + MANY_APART_MS
    const bytes = group.reduce((sum, { write }) => sum + write.bytes, 0)
    if (!reserve.isLeftBy(bytes)) {
      refuse(group, new Full('the disk is almost full'))
      return
    }
    db.batch(() => {
      for (const entry of group) {
        try {
          entry.write.apply()
          written.push(entry)
        } catch (error) {
          pendingBytes -= entry.write.bytes
          entry.reject(error)
        }
      }
    }).then(
      () => {
        config.onGroup?.(group.length, (performance.now() - from) / 1_000)
        usage.wrote(bytes)
        settle(written)
      },
      (error: unknown) => fail(written, error),
    )
  }

  const settle = (group: readonly Waiting[]) => {
    committing = false
    for (const key of writing.splice(0)) noted?.add(key)
    for (const { write } of group) {
      pendingBytes -= write.bytes
      write.done?.()
    }
    for (const { resolve } of group) resolve()
    proceed()
  }

  const fail = async (group: readonly Waiting[], error: unknown) => {
    const cause = await commitCause(error)
    const noRoom = await lacksRoom(config.path, cause)
    // LMDB refuses every later transaction after a failed header write, and lmdb would never answer: ask it first.
    broken = probe(db)
    const known = noRoom && broken === null
    refuse(
      group,
      known
        ? new Full('the disk is full', { cause })
        : new Unavailable(`the disk refused the write: ${cause instanceof Error ? cause.message : cause}`, { cause }),
    )
  }

  /** Nothing of the group was written, and what waits behind it may build on it. */
  const refuse = (group: readonly Waiting[], failure: Unavailable) => {
    committing = false
    writing = []
    for (const { write, reject } of [...group, ...waiting.splice(0)]) {
      pendingBytes -= write.bytes
      reject(failure)
    }
    urgent = false
    config.onFailure?.()
    proceed()
  }

  const proceed = () => {
    schedule()
    if (!scheduled && !committing) for (const wake of whenIdle.splice(0)) wake()
  }

  const idle = async (): Promise<void> => {
    if (scheduled || committing) await new Promise<void>((resolve) => whenIdle.push(resolve))
  }

  const hold = async () => {
    held = true
    await idle()
  }

  const release = () => {
    held = false
    schedule()
  }

  const compact = async () => {
    if (!hasRoomForCopy(config.path, usage.bytes())) throw new Full('the disk has no room for a copy')
    const former = db
    try {
      await rewrite({
        path: config.path,
        db,
        openDb: (path, relaxed) => openDatabase(relaxed ? { ...config, durability: 'relaxed' } : config, path),
        stored: (to, value) => storedIn(to, config, value),
        leftOf: config.leftOf ?? ((_, value) => value),
        startNoting: async () => {
          await hold()
          noted = new Set()
          release()
        },
        takeNoted: () => {
          const keys = [...(noted ?? [])]
          noted?.clear()
          return keys.map((key) => Buffer.from(key, 'latin1'))
        },
        hold,
        adopt: (next) => {
          db = next
          usage.measure()
        },
        isStopped: () => closed || broken !== null,
      })
    } catch (error) {
      // A file that is not known to be in its place for good must not acknowledge anything.
      if (db !== former) {
        broken = error instanceof Error ? error : new Error(String(error))
        refuse([], new Unavailable('the storage stopped after a failed compaction: restart', { cause: error }))
      }
      throw error
    } finally {
      noted = null
      release()
      if (db !== former) await former.close()
    }
  }

  return {
    get db() {
      return db
    },
    put(key, value) {
      if (noted !== null) writing.push(key.toString('latin1'))
      const { to, bytes } = storedIn(db, config, value)
      void to.put(key, arena.copyOf(bytes))
    },
    remove(key) {
      if (noted !== null) writing.push(key.toString('latin1'))
      void db.remove(key)
    },
    group: () => groups,
    refusal(bytes) {
      if (closed) return new Unavailable('the storage is closed')
      if (broken) return new Unavailable('the storage stopped after a failed write: restart', { cause: broken })
      if (pendingBytes + bytes > config.queuedBytesMax) return new Full('too many bytes wait for the disk')
      if (bytes > 0 && !usage.fits(pendingBytes + bytes, config.bytesMax)) return new Full('the byte limit is reached')
      return null
    },
    submit: (write) =>
      new Promise((resolve, reject) => {
        pendingBytes += write.bytes
        waiting.push({ write, resolve, reject })
        urgent ||= write.patient !== true
        schedule()
      }),
    usage: () => ({ bytes: usage.bytes(), bytesMax: config.bytesMax }),
    async compact() {
      if (closed) return
      compacting ??= compact().finally(() => {
        compacting = null
      })
      await compacting
    },
    async close() {
      if (closed) return
      closed = true
      await compacting?.catch(() => undefined)
      if (patience !== null) clearTimeout(patience)
      hurry()
      await idle()
      usage.end()
      await db.close()
    },
  }
}

function takeGroup(waiting: Waiting[]): Waiting[] {
  let bytes = 0
  let count = 0
  while (count < waiting.length && (count === 0 || bytes < GROUP_BYTES_MAX)) {
    bytes += (waiting[count] as Waiting).write.bytes
    count += 1
  }
  return waiting.splice(0, count)
}
