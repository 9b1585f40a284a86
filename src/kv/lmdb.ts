// The kv on one LMDB environment. Commits are decided one after the other when their group is written: against the
// last transaction, plus what the earlier commits of the same group change.
import type { Clock } from '../lib/clock.ts'
import { type Durability, diskBytes, openLmdb } from '../lib/lmdb.ts'
import { must } from '../lib/must.ts'
import { checkCommit, checkGet, checkRange, checkSorted, checkTtl } from './checks.ts'
import {
  collectionPrefix,
  expiredBounds,
  expiryKey,
  idOf,
  isExpiryKey,
  keyBuilder,
  parseExpiryKey,
  positionKey,
  rangeBounds,
} from './keys.ts'
import type { Commit, Entry, Key, Kv, Range, Scope, Version } from './kv.ts'
import { decodeHeader, decodeValue, encodeCounter, encodeValue, type Header, NEVER, setVersion } from './record.ts'

export interface LmdbKvConfig {
  /** The folder of the environment. */
  readonly path: string
  readonly clock: Clock
  /** Collections that are walked but never scanned. They are sorted here all the same, but a scan of one is refused. */
  readonly unsorted?: readonly string[]
  readonly durability?: Durability
  /** The most the records may occupy on disk; what is dropped frees room at once. */
  readonly bytesMax?: number
  /** Written bytes that may wait for the disk before commits fail with Full. */
  readonly queuedBytesMax?: number
  /** How often expired records are removed. */
  readonly sweepEveryMs?: number
  /** Told when a sweep failed; it is tried again. */
  readonly onError?: (error: unknown) => void
}

const WALK_PAGE_KEYS = 500
const SWEEP_RECORDS_MAX = 500
const SWEEP_EVERY_MS = 1_000
/** Visitors are changed here and there: every changed record costs a page. */
const PAGE_BYTES = 4_096
const QUEUED_BYTES_MAX = 128 * 1024 * 1024
const VERSION_KEY = Buffer.from([0x01])
const NUMBER_BYTES = 8

interface Prepared {
  readonly bytes: number
  readonly guard: { readonly key: Buffer; readonly expect: number | null; readonly next: number } | null
  readonly check: readonly (readonly [Buffer, Version | null])[]
  readonly put: readonly (readonly [key: Buffer, record: Buffer, expiresAt: number])[]
  readonly drop: readonly Buffer[]
  readonly add: readonly (readonly [Buffer, number])[]
}

/**
 * Opens or makes the kv in `config.path`. Within a commit puts come first, then drops, then adds, each in order.
 * Adding to a record that is not a counter rejects the call with TypeError; commits before that one are written.
 */
export async function openLmdbKv(config: LmdbKvConfig): Promise<Kv> {
  const { clock } = config
  const env = openLmdb({
    path: config.path,
    durability: config.durability ?? 'fsync',
    pageBytes: PAGE_BYTES,
    bytesMax: config.bytesMax ?? Number.POSITIVE_INFINITY,
    queuedBytesMax: config.queuedBytesMax ?? QUEUED_BYTES_MAX,
    isStale,
  })
  const closing = new AbortController()
  const unsorted = new Set(config.unsorted)
  /** What the current group changed: keys as text, null for what is gone. */
  const changed = new Map<string, Header | null>()
  let changedGroup = -1
  let version = readNumber(VERSION_KEY) ?? 0

  function readNumber(key: Buffer): number | null {
    return env.db.getBinary(key)?.readDoubleBE(0) ?? null
  }

  const putNumber = (key: Buffer, value: number) => {
    const bytes = Buffer.allocUnsafe(NUMBER_BYTES)
    bytes.writeDoubleBE(value)
    env.put(key, bytes)
  }

  const current = (key: Buffer, name = textOf(key)): Header | null => {
    const known = changed.get(name)
    if (known !== undefined) return known
    const bytes = env.db.getBinaryFast(key)
    return bytes ? decodeHeader(bytes) : null
  }

  /** When a record that is gone, or was renewed, was to expire. */
  function isStale(key: Buffer): boolean {
    if (!isExpiryKey(key)) return false
    const { expiresAt, record } = parseExpiryKey(key)
    const bytes = env.db.getBinaryFast(record)
    return bytes === undefined || decodeHeader(bytes).expiresAt !== expiresAt
  }

  const alive = (header: Header | null): Header | null =>
    header && header.expiresAt !== NEVER && header.expiresAt <= clock.now() ? null : header

  const position = (key: Buffer): number | null => {
    const known = changed.get(textOf(key))
    return known ? known.counter : readNumber(key)
  }

  const write = (key: Buffer, record: Buffer, expiresAt: number, counter: number | null) => {
    version += 1
    setVersion(record, version)
    env.put(key, record)
    if (expiresAt !== NEVER) env.put(expiryKey(expiresAt, key), Buffer.alloc(0))
    changed.set(textOf(key), { version, expiresAt, counter })
  }

  const decide = (commit: Prepared): boolean => {
    const { guard } = commit
    if (guard && position(guard.key) !== guard.expect) return false
    for (const [key, expected] of commit.check) if ((alive(current(key))?.version ?? null) !== expected) return false
    const sums = addUp(commit)
    if (guard) {
      putNumber(guard.key, guard.next)
      changed.set(textOf(guard.key), { version: 0, expiresAt: NEVER, counter: guard.next })
    }
    for (const [key, record, expiresAt] of commit.put) write(key, record, expiresAt, null)
    for (const key of commit.drop) {
      env.remove(key)
      changed.set(textOf(key), null)
    }
    for (const [key, sum] of sums.values()) write(key, encodeCounter(sum), NEVER, sum)
    return true
  }

  /** The new values of counters, worked out before the first write so that a refusal leaves nothing behind. */
  const addUp = (commit: Prepared): Map<string, readonly [Buffer, number]> => {
    const sums = new Map<string, readonly [Buffer, number]>()
    if (commit.add.length === 0) return sums
    const dropped = new Set(commit.drop.map((key) => textOf(key)))
    const replaced = new Set(commit.put.map(([key]) => textOf(key)))
    for (const [key, by] of commit.add) {
      const name = textOf(key)
      const stored = dropped.has(name) ? null : alive(current(key, name))
      if ((replaced.has(name) && !dropped.has(name)) || (stored && stored.counter === null)) {
        throw new TypeError('only a counter can be added to')
      }
      const sum = (sums.get(name)?.[1] ?? stored?.counter ?? 0) + by
      if (!Number.isSafeInteger(sum)) throw new RangeError('a counter would leave the safe integers')
      sums.set(name, [key, sum])
    }
    return sums
  }

  const beginGroup = () => {
    if (env.group() === changedGroup) return
    changedGroup = env.group()
    changed.clear()
  }

  const submit = async (bytes: number, apply: () => void) => {
    const refused = env.refusal(bytes)
    if (refused) throw refused
    await env.submit({
      bytes,
      apply() {
        const before = version
        beginGroup()
        try {
          apply()
        } finally {
          if (version !== before) putNumber(VERSION_KEY, version)
        }
      },
    })
  }

  const sweepStep = async (): Promise<boolean> => {
    const now = clock.now()
    const due = [...env.db.getKeys({ ...expiredBounds(now), limit: SWEEP_RECORDS_MAX })]
    if (due.length === 0) return false
    await submit(0, () => {
      for (const index of due) {
        const { expiresAt, record } = parseExpiryKey(index as Buffer)
        const stored = current(record)
        if (stored && stored.expiresAt === expiresAt) {
          env.remove(record)
          changed.set(textOf(record), null)
        }
        env.remove(index)
      }
    })
    return due.length === SWEEP_RECORDS_MAX
  }

  const sweep = async () => {
    while (!closing.signal.aborted) {
      try {
        while (!closing.signal.aborted && (await sweepStep())) {}
      } catch (error) {
        config.onError?.(error)
      }
      await clock.sleep(config.sweepEveryMs ?? SWEEP_EVERY_MS, closing.signal)
    }
  }
  const sweeping = sweep()

  const decode = <T>(key: Key, bytes: Uint8Array, length: number, now: number): Entry<T> | null => {
    const header = decodeHeader(bytes)
    if (header.expiresAt !== NEVER && header.expiresAt <= now) return null
    return { key, value: decodeValue(bytes, length) as T, version: header.version }
  }

  const page = <T>(scope: Scope, collection: string, { after, upTo, limit, reverse = false }: Range): Entry<T>[] => {
    const start = collectionPrefix(scope, collection)
    const now = clock.now()
    const entries: Entry<T>[] = []
    for (const { key, value } of env.db.getRange({ ...rangeBounds(start, after, upTo, reverse), reverse })) {
      const entry = decode<T>([collection, idOf(key as Buffer, start)], value, value.length, now)
      if (entry) entries.push(entry)
      if (entries.length >= limit) break
    }
    return entries
  }

  const refuseClosed = () => {
    const refused = closing.signal.aborted ? env.refusal(0) : null
    if (refused) throw refused
  }

  return {
    async get<T>(scope: Scope, keys: readonly Key[]) {
      refuseClosed()
      checkGet(keys)
      const build = keyBuilder(scope)
      const now = clock.now()
      return keys.map((key) => {
        const bytes = env.db.getBinaryFast(build(key))
        return bytes ? decode<T>(key, bytes, bytes.length, now) : null
      })
    },

    async scan<T>(scope: Scope, collection: string, range: Range) {
      refuseClosed()
      checkRange(range)
      checkSorted(collection, unsorted)
      return page<T>(scope, collection, range)
    },

    async *walk<T>(scope: Scope, collection: string) {
      let after = ''
      for (;;) {
        refuseClosed()
        const entries = page<T>(scope, collection, { after, limit: WALK_PAGE_KEYS })
        yield* entries
        if (entries.length < WALK_PAGE_KEYS) return
        after = must(entries.at(-1)).key[1]
      }
    },

    async position(scope, source) {
      refuseClosed()
      return readNumber(positionKey(scope, source))
    },

    async commit(commits) {
      const prepared = commits.map((commit) => prepare(commit, clock.now()))
      if (prepared.length === 0) return []
      const answers: boolean[] = []
      const bytes = prepared.reduce((sum, commit) => sum + commit.bytes, 0)
      let refusal: { readonly error: unknown } | null = null
      await submit(bytes, () => {
        try {
          for (const commit of prepared) answers.push(decide(commit))
        } catch (error) {
          // Thrown later: the commits before this one are written, and must be when the caller learns of it.
          refusal = { error }
        }
      })
      if (refusal !== null) throw (refusal as { readonly error: unknown }).error
      return answers
    },

    compact: () => env.compact(),
    usage: async () => env.usage().bytes,

    async close() {
      closing.abort()
      await sweeping
      await env.close()
    },
  }
}

/** Map keys compare by value, buffers do not. */
function textOf(key: Buffer): string {
  return key.toString('latin1')
}

function prepare(commit: Commit, now: number): Prepared {
  const { scope, guard, check = [], put = [], drop = [], add = [] } = commit
  checkCommit(commit)
  const build = keyBuilder(scope)
  let bytes = 0
  const prepared = {
    guard: guard ? { key: positionKey(scope, guard.source), expect: guard.expect, next: guard.next } : null,
    check: check.map(([key, expected]) => [build(key), expected] as const),
    put: put.map(({ key, value, ttlMs }) => {
      const expiresAt = ttlMs === undefined ? NEVER : now + checkTtl(ttlMs)
      const record = encodeValue(value, expiresAt)
      const built = build(key)
      bytes += diskBytes(built.length, record.length, PAGE_BYTES)
      return [built, record, expiresAt] as const
    }),
    drop: drop.map(build),
    add: add.map(([key, by]) => {
      const built = build(key)
      bytes += diskBytes(built.length, NUMBER_BYTES, PAGE_BYTES)
      return [built, by] as const
    }),
  }
  return { ...prepared, bytes }
}
