// One LMDB environment with group commit: writes of many callers share one transaction, and one transaction is in
// flight at a time, so that a failed one takes nothing with it but itself and what waited behind it.
import { statfsSync } from 'node:fs'
import { statfs } from 'node:fs/promises'
import { join } from 'node:path'
import { open, type RootDatabase } from 'lmdb'
import { Full, Unavailable, Unreadable } from './failures.ts'
import { checkLmdbFile } from './lmdb-check.ts'

/** `fsync`: a resolved write survives a power cut. `relaxed`: it survives the process only, and a power cut may cost the whole file. */
export type Durability = 'fsync' | 'relaxed'

export interface LmdbConfig {
  /** The folder of the environment; made when missing. */
  readonly path: string
  readonly durability: Durability
  /** Of a file that is made; an existing one keeps its own. Large pages suit large values: fewer to find, free and write. */
  readonly pageBytes: number
  /** The most that live pages may occupy. Deleted data counts no more, though the file itself never shrinks. */
  readonly bytesMax: number
  /** The most that may wait for the disk; further writes fail with Full. */
  readonly queuedBytesMax: number
  /** Called after a failed transaction, when nothing is in flight and nothing that waited will be written. */
  readonly onFailure?: () => void
}

export interface LmdbWrite {
  /** What it may add on disk, in bytes; see `diskBytes`. */
  readonly bytes: number
  /**
   * Puts and removes, synchronously. Reads see the last transaction without the earlier writes of this group.
   * What it throws rejects this write alone, so it must throw before its first put.
   */
  apply(): void
  /** Runs when the transaction is durable, in the order of submission and before any promise of the group resolves. */
  done?(): void
}

export interface LmdbEnv {
  readonly db: RootDatabase<Buffer, Buffer>
  /** Counts transactions; `apply` compares it to learn that a new group began. */
  group(): number
  /** Why a write of `bytes` cannot be taken now, or null. Writes that only free room pass 0. */
  refusal(bytes: number): Unavailable | null
  /** Resolves when the write is durable; rejects with Full when nothing was written for lack of room, else Unavailable. */
  submit(write: LmdbWrite): Promise<void>
  /** Pages in use, as of the last transaction. */
  usage(): { readonly bytes: number; readonly bytesMax: number }
  /** Waits for the writes taken so far; later ones are refused. */
  close(): Promise<void>
}

interface Waiting {
  readonly write: LmdbWrite
  readonly resolve: () => void
  readonly reject: (error: unknown) => void
}

const GROUP_BYTES_MAX = 16 * 1024 * 1024
/** A value that fills more of a page than this gets pages of its own. */
const IN_LEAF_SHARE_MAX = 0.46
/** How full pages are that split in the middle as they grow. */
const LEAF_FILL = 0.65
/**
 * Free space that a transaction must leave. The library corrupts memory when the disk refuses its pages, so it is not let come
 * to that. What frees room (a trim) writes little, and must still be possible when nothing else is.
 */
const RESERVE_BYTES = 64 * 1024 * 1024
const RESERVE_BYTES_TO_FREE = 24 * 1024 * 1024
/** Below this much free space an I/O error is taken for a full disk: LMDB reports a short write as one. */
const ROOM_BYTES_MIN = 16 * 1024 * 1024
const NO_ROOM_CODES: readonly unknown[] = [27, 28, 122, -30792]

/** An estimate of the disk pages one record takes, in bytes: larger ones get whole pages of their own. */
export function diskBytes(keyBytes: number, valueBytes: number, pageBytes: number): number {
  const apart = valueBytes > pageBytes * IN_LEAF_SHARE_MAX
  const inLeaf = (apart ? 24 : valueBytes) + keyBytes + 16
  const ownPages = apart ? Math.ceil((valueBytes + 24) / pageBytes) : 0
  return Math.ceil(inLeaf / LEAF_FILL) + ownPages * pageBytes
}

/**
 * True for the rejections that the lmdb package leaves unhandled when a transaction fails. The caller of the failed write
 * has been told, so a process-wide handler may ignore them.
 */
export function isLmdbRejection(reason: unknown): boolean {
  if (!(reason instanceof Error)) return false
  if ('commitError' in reason) return true
  const keys = Object.keys(reason)
  return keys.length === 1 && keys[0] === 'code' && typeof (reason as { code?: unknown }).code === 'number'
}

/** Opens or makes the environment. Throws Unreadable when its file is damaged and Unavailable when it cannot be opened. */
export function openLmdb(config: LmdbConfig): LmdbEnv {
  checkLmdbFile(join(config.path, 'data.mdb'))
  const db = openDatabase(config)
  const waiting: Waiting[] = []
  let pendingBytes = 0
  let liveBytes = usedBytes(db)
  let groups = 0
  let scheduled = false
  let committing = false
  let broken: Error | null = null
  let closed = false
  let whenIdle: (() => void) | null = null

  const schedule = () => {
    if (scheduled || committing || waiting.length === 0) return
    scheduled = true
    setImmediate(flush)
  }

  const flush = () => {
    scheduled = false
    groups += 1
    const group = takeGroup(waiting)
    const written: Waiting[] = []
    committing = true
    if (!leavesReserve(config.path, group)) {
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
      () => settle(written),
      (error: unknown) => fail(written, error),
    )
  }

  const settle = (group: readonly Waiting[]) => {
    committing = false
    liveBytes = usedBytes(db)
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
    for (const { write, reject } of [...group, ...waiting.splice(0)]) {
      pendingBytes -= write.bytes
      reject(failure)
    }
    config.onFailure?.()
    proceed()
  }

  const proceed = () => {
    schedule()
    if (!scheduled && !committing) whenIdle?.()
  }

  return {
    db,
    group: () => groups,
    refusal(bytes) {
      if (closed) return new Unavailable('the storage is closed')
      if (broken) return new Unavailable('the storage stopped after a failed write: restart', { cause: broken })
      if (pendingBytes + bytes > config.queuedBytesMax) return new Full('too many bytes wait for the disk')
      if (bytes > 0 && liveBytes + pendingBytes + bytes > config.bytesMax) return new Full('the byte limit is reached')
      return null
    },
    submit: (write) =>
      new Promise((resolve, reject) => {
        pendingBytes += write.bytes
        waiting.push({ write, resolve, reject })
        schedule()
      }),
    usage: () => ({ bytes: liveBytes, bytesMax: config.bytesMax }),
    async close() {
      if (closed) return
      closed = true
      if (scheduled || committing) {
        await new Promise<void>((resolve) => {
          whenIdle = resolve
        })
      }
      await db.close()
    },
  }
}

function openDatabase(config: LmdbConfig): RootDatabase<Buffer, Buffer> {
  try {
    return open<Buffer, Buffer>({
      path: config.path,
      pageSize: config.pageBytes,
      encoding: 'binary',
      keyEncoding: 'binary',
      overlappingSync: false,
      // With it lmdb keeps a promise to itself, and a failed transaction becomes an unhandled rejection.
      eventTurnBatching: false,
      noSync: config.durability === 'relaxed',
    })
  } catch (cause) {
    const code = (cause as { code?: unknown }).code
    if (typeof code === 'number' && code <= -30_000) throw new Unreadable(`cannot read ${config.path}`, { cause })
    throw new Unavailable(`cannot open ${config.path}`, { cause })
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

function leavesReserve(path: string, group: readonly Waiting[]): boolean {
  let bytes = 0
  for (const { write } of group) bytes += write.bytes
  try {
    const { bavail, bsize } = statfsSync(path)
    return bavail * bsize > (bytes === 0 ? RESERVE_BYTES_TO_FREE : RESERVE_BYTES + 2 * bytes)
  } catch {
    return true
  }
}

interface TreeStats {
  readonly pageSize: number
  readonly treeBranchPageCount: number
  readonly treeLeafPageCount: number
  readonly overflowPages: number
}

function usedBytes(db: RootDatabase<Buffer, Buffer>): number {
  const stats = db.getStats() as TreeStats
  return (stats.treeBranchPageCount + stats.treeLeafPageCount + stats.overflowPages) * stats.pageSize
}

async function commitCause(error: unknown): Promise<unknown> {
  const inner = (error as { commitError?: Promise<unknown> }).commitError
  if (!inner) return error
  try {
    return await inner
  } catch (cause) {
    return cause
  }
}

async function lacksRoom(path: string, cause: unknown): Promise<boolean> {
  if (NO_ROOM_CODES.includes((cause as { code?: unknown }).code)) return true
  try {
    const { bavail, bsize } = await statfs(path)
    return bavail * bsize < ROOM_BYTES_MIN
  } catch {
    return false
  }
}

function probe(db: RootDatabase<Buffer, Buffer>): Error | null {
  try {
    db.transactionSync(() => undefined)
    return null
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error))
  }
}
