// The kv on one LMDB environment. Commits are decided one after the other when their group is written: against the
// last transaction, plus what the earlier commits of the same group change.
import { type Clock, nextBeat } from '../lib/clock.ts'
import { type Durability, type LmdbConfig, openLmdb } from '../lib/lmdb.ts'
import { must } from '../lib/must.ts'
import { checkGet, checkRange, checkScopes, checkSorted } from './checks.ts'
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
import type { KeyRange, Kv, KvEntry, KvKey, Prepared, Scope } from './kv.ts'
import { createChanges, textOf } from './lmdb-changes.ts'
import { eachPut, NUMBER_BYTES, PAGE_BYTES, prepareCommits } from './lmdb-commit.ts'
import { decodeHeader, decodeValue, encodeCounter, NEVER, type RecordHeader, setVersion } from './record.ts'

export interface LmdbKvConfig {
  /** As `LmdbConfig` has it. */
  readonly onGroup?: LmdbConfig['onGroup']
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
const SWEEP_EVERY_MS = 10_000
/** A record is removed up to so many sweeps after its time: one that is renewed every few seconds is noted once in that time. */
const DUE_SWEEPS = 6
const QUEUED_BYTES_MAX = 128 * 1024 * 1024
const NOTHING = Buffer.alloc(0)
const VERSION_KEY = Buffer.from([0x01])

/** New values of counters, by their keys as text. */
type Sums = Map<string, readonly [Buffer, number]>

/**
 * Opens or makes the kv in `config.path`. Within a commit puts come first, then drops, then adds, each in order.
 * Adding to a record that is not a counter rejects the call with TypeError; commits before that one are written.
 */
export async function openLmdbKv(config: LmdbKvConfig): Promise<Kv> {
  const { clock } = config
  const env = openLmdb({
    path: config.path,
    ...(config.onGroup ? { onGroup: config.onGroup } : {}),
    durability: config.durability ?? 'fsync',
    pageBytes: PAGE_BYTES,
    // Nearly all records lie within a page, so that hardly anything looks for several in a row.
    freePagesMax: 2_000,
    bytesMax: config.bytesMax ?? Number.POSITIVE_INFINITY,
    queuedBytesMax: config.queuedBytesMax ?? QUEUED_BYTES_MAX,
    leftOf: (key, value) => (isStale(key) ? null : value),
  })
  const closing = new AbortController()
  const unsorted = new Set(config.unsorted)
  const sweepEveryMs = config.sweepEveryMs ?? SWEEP_EVERY_MS
  const dueStepMs = DUE_SWEEPS * sweepEveryMs
  const dueOf = (expiresAt: number): number => Math.ceil(expiresAt / dueStepMs) * dueStepMs
  const changes = createChanges()
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

  const current = (key: Buffer): RecordHeader | null => {
    const known = changes.of(key)
    if (known !== undefined) return known
    const bytes = env.db.getBinaryFast(key)
    return bytes ? decodeHeader(bytes) : null
  }

  /** When a record was to expire that is gone, or expires sooner or never. One that was renewed may be found by nothing else. */
  function isStale(key: Buffer): boolean {
    if (!isExpiryKey(key)) return false
    const { dueAt, record } = parseExpiryKey(key)
    const bytes = env.db.getBinaryFast(record)
    return bytes === undefined || dueOf(decodeHeader(bytes).expiresAt) < dueOf(dueAt)
  }

  const alive = (header: RecordHeader | null): RecordHeader | null =>
    header && header.expiresAt !== NEVER && header.expiresAt <= clock.now() ? null : header

  const position = (key: Buffer): number | null => {
    const known = changes.of(key)
    return known ? known.counter : readNumber(key)
  }

  const write = (key: Buffer, record: Buffer, isRenewal = false) => {
    version += 1
    setVersion(record, version)
    // A renewed one is noted already, and anew by the sweep that comes to it.
    const expiresAt = isRenewal ? NEVER : decodeHeader(record).expiresAt
    if (expiresAt !== NEVER && dueOf(current(key)?.expiresAt ?? NEVER) !== dueOf(expiresAt)) {
      env.put(expiryKey(dueOf(expiresAt), key), NOTHING)
    }
    env.put(key, record)
  }

  const holds = ({ guard, check }: Prepared): boolean =>
    (guard === null || position(bufferOf(guard.key)) === guard.expect) &&
    check.every(([key, expected]) => (alive(current(bufferOf(key)))?.version ?? null) === expected)

  /** All of them or none; no two are of the same scope. */
  const decide = (commits: readonly Prepared[]): boolean => {
    if (!commits.every(holds)) return false
    const sums = commits.map(addUp)
    for (const [at, commit] of commits.entries()) apply(commit, must(sums[at]))
    return true
  }

  const apply = (prepared: Prepared, sums: Sums) => {
    const { guard, put, drop } = prepared
    if (guard) putNumber(bufferOf(guard.key), guard.next)
    eachPut(put, write)
    for (const key of drop) env.remove(bufferOf(key))
    const counters = [...sums.values()].map(([key, sum]) => [key, encodeCounter(sum)] as const)
    for (const [key, record] of counters) write(key, record)
    changes.add(prepared, counters)
  }

  /** The new values of counters, worked out before the first write so that a refusal leaves nothing behind. */
  const addUp = (commit: Prepared): Sums => {
    const sums: Sums = new Map()
    if (commit.add.length === 0) return sums
    const dropped = new Set(commit.drop.map((key) => textOf(key)))
    const replaced = new Set<string>()
    eachPut(commit.put, (key) => void replaced.add(textOf(key)))
    for (const [bytes, by] of commit.add) {
      const key = bufferOf(bytes)
      const name = textOf(key)
      const stored = dropped.has(name) ? null : alive(current(key))
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
    changes.clear()
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

  const submitAll = async (prepared: readonly Prepared[], run: () => void) => {
    const bytes = prepared.reduce((sum, commit) => sum + commit.bytes, 0)
    let refusal: { readonly error: unknown } | null = null
    await submit(bytes, () => {
      try {
        run()
      } catch (error) {
        // Thrown later: the commits before this one are written, and must be when the caller learns of it.
        refusal = { error }
      }
    })
    if (refusal !== null) throw (refusal as { readonly error: unknown }).error
  }

  const commitPrepared = async (prepared: readonly Prepared[]): Promise<boolean[]> => {
    if (prepared.length === 0) return []
    const answers: boolean[] = []
    await submitAll(prepared, () => {
      for (const commit of prepared) answers.push(decide([commit]))
    })
    return answers
  }

  const sweepStep = async (): Promise<boolean> => {
    const now = clock.now()
    const due = [...env.db.getKeys({ ...expiredBounds(now), limit: SWEEP_RECORDS_MAX })]
    if (due.length === 0) return false
    await submit(0, () => {
      for (const index of due) {
        const { record } = parseExpiryKey(index as Buffer)
        const stored = current(record)
        env.remove(index)
        if (stored === null || stored.expiresAt === NEVER) continue
        if (stored.expiresAt <= now) {
          env.remove(record)
          changes.drop(record)
        } else env.put(expiryKey(dueOf(stored.expiresAt), record), NOTHING)
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
      await nextBeat(clock, sweepEveryMs, closing.signal)
    }
  }
  const sweeping = sweep()

  const decode = <T>(key: KvKey, bytes: Uint8Array, length: number, now: number): KvEntry<T> | null => {
    const header = decodeHeader(bytes)
    if (header.expiresAt !== NEVER && header.expiresAt <= now) return null
    return { key, value: decodeValue(bytes, length) as T, version: header.version }
  }

  const page = <T>(
    scope: Scope,
    collection: string,
    { after, upTo, limit, reverse = false }: KeyRange,
  ): KvEntry<T>[] => {
    const start = collectionPrefix(scope, collection)
    const now = clock.now()
    const entries: KvEntry<T>[] = []
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
    async get<T>(scope: Scope, keys: readonly KvKey[]) {
      refuseClosed()
      checkGet(keys)
      const build = keyBuilder(scope)
      const now = clock.now()
      return keys.map((key) => {
        const bytes = env.db.getBinaryFast(build(key))
        return bytes ? decode<T>(key, bytes, bytes.length, now) : null
      })
    },

    async scan<T>(scope: Scope, collection: string, range: KeyRange) {
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

    commitPrepared,
    commit: async (commits) => commitPrepared(prepareCommits(commits, clock.now())),

    async commitTogether(commits) {
      checkScopes(commits)
      const prepared = prepareCommits(commits, clock.now())
      let answer = true
      await submitAll(prepared, () => {
        answer = decide(prepared)
      })
      return answer
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

const bufferOf = (bytes: Uint8Array): Buffer => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
