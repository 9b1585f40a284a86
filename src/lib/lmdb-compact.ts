// A file of LMDB with nothing in it but what is live: what was deleted stays in free pages, in the gaps of others and in the keys
// that part pages, until they happen to be written over; LMDB's own copy keeps the last. Entry by entry another file is made beside
// the running one, caught up with what was written meanwhile, and put in its place by a rename, before and after which either
// file holds everything that was acknowledged.
import { mkdirSync, renameSync, rmSync } from 'node:fs'
import { open, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { RangeOptions, RootDatabase } from 'lmdb'
import type { Stored } from './lmdb-database.ts'

type Db = RootDatabase<Buffer, Buffer>

export interface LmdbRewrite {
  /** The folder of the environment. */
  readonly path: string
  /** As it is now, open. */
  readonly db: Db
  /** `relaxed`: what is written is durable when it is said so, and not before. */
  readonly openDb: (path: string, relaxed: boolean) => Db
  /** How a value is put into the new one. */
  readonly stored: (to: Db, value: Uint8Array) => Stored
  /** What is still needed of an entry; null: nothing. */
  readonly leftOf: (key: Buffer, value: Buffer) => Uint8Array | null
  /** Begins to note the keys of committed writes, once none is in flight. */
  readonly startNoting: () => Promise<void>
  /** The keys of writes committed since it was last called. */
  readonly takeNoted: () => Buffer[]
  /** Resolves when no write is in flight, and lets none begin until the rewrite is over. */
  readonly hold: () => Promise<void>
  /** Takes the new environment into use, at once: its file is in place. */
  readonly adopt: (next: Db) => void
  /** True when it is to be given up. */
  readonly isStopped: () => boolean
}

const NEXT = 'next'
/** Reads and writes of others come between. */
const ENTRIES_AT_ONCE = 500
const KEYS_AT_ONCE = 500
/** So few are written while everybody waits. */
const KEYS_HELD_MAX = 2_000
const ROUNDS_MAX = 8
const JUST_ABOVE = Buffer.alloc(1)
/** The library takes it in place of a version, unlike its types. Fills pages instead of leaving half of each free. */
const AT_THE_END = { append: true } as unknown as number

/** Removes what a rewrite left that was interrupted. Call it before the environment is opened. */
export function dropLeftovers(path: string): void {
  rmSync(join(path, NEXT), { recursive: true, force: true })
}

/** `db` is left open. What it throws before `adopt` was called changed nothing. */
export async function rewrite(job: LmdbRewrite): Promise<void> {
  const { path, openDb, isStopped } = job
  const folder = join(path, NEXT)
  dropLeftovers(path)
  mkdirSync(folder, { mode: 0o700 })
  let next: Db | null = null
  try {
    await job.startNoting()
    next = openDb(folder, true)
    await copy(job, next)
    let noted = job.takeNoted()
    for (let round = 1; round < ROUNDS_MAX && noted.length > KEYS_HELD_MAX; round++) {
      await follow(job, next, noted)
      if (isStopped()) return
      noted = job.takeNoted()
    }
    if (isStopped()) return
    await sync(join(folder, 'data.mdb'))
    await next.close()
    next = openDb(folder, false)
    await job.hold()
    await follow(job, next, [...noted, ...job.takeNoted()])
    if (isStopped()) return
    await sync(join(folder, 'data.mdb'))
    renameSync(join(folder, 'data.mdb'), join(path, 'data.mdb'))
    job.adopt(next)
    next = null
    await sync(path)
  } finally {
    await next?.close()
    await rm(folder, { recursive: true, force: true })
  }
}

async function copy({ db, stored, leftOf, isStopped }: LmdbRewrite, to: Db): Promise<void> {
  let after: Buffer | null = null
  while (!isStopped()) {
    db.resetReadTxn()
    const range: RangeOptions = {
      limit: ENTRIES_AT_ONCE,
      ...(after === null ? {} : { start: Buffer.concat([after, JUST_ABOVE]) }),
    }
    const found = [...db.getRange(range)].map(({ key, value }) => ({ key: Buffer.from(key as Buffer), value }))
    const live = found.flatMap(({ key, value }) => {
      const left = leftOf(key, value)
      return left === null ? [] : [{ key, stored: stored(to, left) }]
    })
    await write(to, live, AT_THE_END)
    after = found.at(-1)?.key ?? null
    if (after === null) return
  }
}

async function follow({ db, stored }: LmdbRewrite, to: Db, keys: readonly Buffer[]): Promise<void> {
  for (let at = 0; at < keys.length; at += KEYS_AT_ONCE) {
    db.resetReadTxn()
    const changes = keys.slice(at, at + KEYS_AT_ONCE).map((key) => {
      const value = db.getBinary(key)
      return { key, stored: value === undefined ? null : stored(to, value) }
    })
    await write(to, changes)
  }
}

/** null: the entry is gone. */
interface Change {
  readonly key: Buffer
  readonly stored: Stored | null
}

/** Empties `changes`, and not before the transaction is over: until then the library reads the bytes where they lie. */
async function write(to: Db, changes: Change[], place?: number): Promise<void> {
  await to.batch(() => {
    for (const { key, stored } of changes) {
      if (stored === null) void to.remove(key)
      else void stored.to.put(key, stored.bytes as Buffer, place as number)
    }
  })
  changes.length = 0
}

async function sync(path: string): Promise<void> {
  const file = await open(path, 'r')
  try {
    await file.sync()
  } finally {
    await file.close()
  }
}
