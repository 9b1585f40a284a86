// The kv on Redis or Redis Cluster: a string per record, a sorted set of ids per collection, and one script that decides commits.
import { Redis } from 'ioredis'
import type { RandomBytes } from '../domain/ids.ts'
import { Full, Unavailable } from '../lib/failures.ts'
import { must } from '../lib/must.ts'
import {
  connectRedis,
  type RedisConfig,
  type RedisFacts,
  readRedisFacts,
  readScript,
  redisFailureOf,
  refuseUnsafeRedis,
  usedMemory,
} from '../lib/redis.ts'
import { checkGet, checkRange, checkScopes, checkSorted } from './checks.ts'
import type { Commit, KeyRange, Kv, KvEntry, KvKey, Scope } from './kv.ts'
import { decodeRecord, type PreparedCommit, prepareClearing, prepareRedisCommit } from './redis-commit.ts'
import { patternOf, redisKeys, type ScopeKeys } from './redis-keys.ts'

export interface RedisKvConfig {
  readonly redis: RedisConfig
  /** Tells deployments on the same server apart: letters, digits and `_.:/-`. */
  readonly prefix: string
  /** Collections without an index: they cannot be scanned, and walking them looks at every key of the server. */
  readonly unsorted?: readonly string[]
  readonly random: RandomBytes
  /** Bytes of commits on their way to the server before further ones fail with Full. */
  readonly queuedBytesMax?: number
}

export interface RedisKv extends Kv {
  /** What the servers say now about how they keep data. */
  facts(): Promise<RedisFacts>
}

const QUEUED_BYTES_MAX = 128 * 1024 * 1024
/** Commits of one scope share a call of the script up to these bounds: the server does nothing else meanwhile. */
const BATCH_KEYS_MAX = 2_000
const BATCH_BYTES_MAX = 4 * 1024 * 1024
const PAGE_KEYS = 1_000
/** Keys the server looks at per page of a walk through everything it has. */
const WALK_COUNT = 2_000
/** The script's first argument. */
const EACH = 0
const TOGETHER = 1

const COMMIT = readScript(new URL('./commit.lua', import.meta.url))
const WALK = readScript(new URL('./walk.lua', import.meta.url))

/**
 * Connects. Fails with Unavailable when the server cannot be reached and UnsafeRedis when it would drop or refuse records.
 * A commit without an answer fails with Unavailable and may have been done, even later. A scan reads ids and values one after
 * the other: it may miss a record that was made in between.
 */
export async function openRedisKv(config: RedisKvConfig): Promise<RedisKv> {
  const { random, queuedBytesMax = QUEUED_BYTES_MAX } = config
  const keysOf = redisKeys(config.prefix)
  const unsorted = new Set(config.unsorted)
  const client = await connectRedis(config.redis)
  try {
    refuseUnsafeRedis(await readRedisFacts(client))
  } catch (error) {
    client.disconnect()
    throw error
  }
  const inFlight = new Set<Promise<unknown>>()
  let queuedBytes = 0
  let closed = false

  const refuseClosed = () => {
    if (closed) throw new Unavailable('the kv is closed')
  }

  const call = async <T>(work: () => Promise<unknown>): Promise<T> => {
    const answer = work()
    inFlight.add(answer)
    try {
      return (await answer) as T
    } catch (error) {
      throw redisFailureOf(error)
    } finally {
      inFlight.delete(answer)
    }
  }

  const read = async <T>(names: ScopeKeys, keys: readonly KvKey[]): Promise<(KvEntry<T> | null)[]> => {
    const build = recordNames(names)
    const stored = keys.map(build)
    if (stored.length === 0) return []
    const found = await call<(Buffer | null)[]>(() => client.callBuffer('mget', stored))
    return keys.map((key, at) => {
      const bytes = found[at]
      return bytes ? decodeRecord<T>(key, bytes) : null
    })
  }

  const scan = async <T>(scope: Scope, collection: string, range: KeyRange): Promise<KvEntry<T>[]> => {
    const names = keysOf(scope)
    const { index } = names.collection(collection)
    const { limit, reverse = false } = range
    let [low, high] = boundsOf(names, collection, range)
    const entries: KvEntry<T>[] = []
    let expired = 0
    while (entries.length < limit) {
      // Where much has expired, a page of just what is missing might take many rounds.
      const count = expired > 0 ? PAGE_KEYS : Math.min(limit - entries.length, PAGE_KEYS)
      const bounds = reverse ? [high, low, 'bylex', 'rev'] : [low, high, 'bylex']
      const ids = await call<string[]>(() => client.call('zrange', [index, ...bounds, 'limit', 0, count]))
      const found = await read<T>(
        names,
        ids.map((id) => [collection, id] as const),
      )
      const alive = found.filter((entry) => entry !== null)
      expired += found.length - alive.length
      entries.push(...alive.slice(0, limit - entries.length))
      if (ids.length < count) break
      const last = `(${must(ids.at(-1))}`
      if (reverse) high = last
      else low = last
    }
    if (expired > 0) {
      // A courtesy to later scans, which would do it again.
      await runCommits([prepareClearing(scope, names.collection(collection), random)], EACH).catch(() => undefined)
    }
    return entries
  }

  async function* walkAll<T>(scope: Scope, collection: string): AsyncGenerator<KvEntry<T>> {
    const names = keysOf(scope)
    const { start, index } = names.collection(collection)
    let first: string | null = null
    let cursor = '0'
    do {
      const args = [cursor, patternOf(start), WALK_COUNT]
      const [process, next, found] = await call<[string, string, string[]]>(() => WALK.run(client, [index], args))
      first ??= process
      if (process !== first) throw new Unavailable('the server restarted or moved during a walk: begin it again')
      cursor = next
      const entries = await read<T>(
        names,
        found.map((key) => [collection, key.slice(start.length)] as const),
      )
      for (const entry of entries) if (entry !== null) yield entry
    } while (cursor !== '0')
  }

  /** The answers of the script. Throws what the caller did wrong. */
  const runCommits = async (commits: readonly PreparedCommit[], how: number): Promise<number[]> => {
    const keys = commits.flatMap((commit) => commit.keys)
    const args = [how, ...commits.flatMap((commit) => commit.args)]
    return call<number[]>(() => COMMIT.run(client, keys, args))
  }

  const isDone = (answer: number): boolean => {
    if (answer === -1) throw new TypeError('only a counter can be added to')
    if (answer === -2) throw new RangeError('a counter would leave the safe integers')
    return answer === 1
  }

  /** The answers to commits of one scope, in order; ends with the failure that kept the rest from being decided. */
  const decide = async (commits: readonly PreparedCommit[]): Promise<{ answers: boolean[]; failure: unknown }> => {
    const answers: boolean[] = []
    try {
      for (const batch of batches(commits)) {
        for (const answer of await runCommits(batch, EACH)) answers.push(isDone(answer))
      }
    } catch (failure) {
      return { answers, failure }
    }
    return { answers, failure: null }
  }

  const commitAll = async (prepared: readonly PreparedCommit[]): Promise<boolean[]> => {
    const places = new Map<Scope, number[]>()
    for (const [at, { scope }] of prepared.entries()) {
      const known = places.get(scope)
      if (known) known.push(at)
      else places.set(scope, [at])
    }
    const scopes = [...places.values()]
    const outcomes = await Promise.all(scopes.map((own) => decide(own.map((at) => must(prepared[at])))))
    const failures = outcomes.map(({ failure }) => failure).filter((failure) => failure !== null)
    if (failures.length > 0) {
      const wrote = outcomes.some(({ answers }) => answers.includes(true))
      throw failures.find((failure) => !(failure instanceof Unavailable)) ?? verdict(failures, wrote)
    }
    const answers: boolean[] = []
    for (const [scope, own] of scopes.entries()) {
      for (const [at, place] of own.entries()) answers[place] = must(outcomes[scope]?.answers[at])
    }
    return answers
  }

  async function submit<T>(
    commits: readonly Commit[],
    decideAll: (prepared: readonly PreparedCommit[]) => Promise<T>,
  ): Promise<T> {
    refuseClosed()
    const prepared = commits.map((commit) => prepareRedisCommit(commit, keysOf, unsorted, random))
    const bytes = prepared.reduce((sum, commit) => sum + commit.bytes, 0)
    if (queuedBytes + bytes > queuedBytesMax) throw new Full('too many bytes wait for Redis')
    queuedBytes += bytes
    const done = decideAll(prepared)
    // Its later batches are part of what was taken, so closing waits for the whole.
    inFlight.add(done)
    try {
      return await done
    } finally {
      inFlight.delete(done)
      queuedBytes -= bytes
    }
  }

  async function commitTogether(commits: readonly Commit[]): Promise<boolean> {
    checkScopes(commits)
    if (commits.length === 0) return true
    return submit(commits, async (prepared) => isDone((await runCommits(prepared, TOGETHER))[0] ?? 0))
  }

  return {
    async get<T>(scope: Scope, keys: readonly KvKey[]) {
      refuseClosed()
      checkGet(keys)
      return read<T>(keysOf(scope), keys)
    },

    async scan<T>(scope: Scope, collection: string, range: KeyRange) {
      refuseClosed()
      checkRange(range)
      checkSorted(collection, unsorted)
      return scan<T>(scope, collection, range)
    },

    async *walk<T>(scope: Scope, collection: string) {
      refuseClosed()
      if (unsorted.has(collection)) return yield* walkAll<T>(scope, collection)
      let after = ''
      for (;;) {
        const entries = await scan<T>(scope, collection, { after, limit: PAGE_KEYS })
        yield* entries
        if (entries.length < PAGE_KEYS) return
        after = must(entries.at(-1)).key[1]
      }
    },

    async position(scope, source) {
      refuseClosed()
      const name = keysOf(scope).position(source)
      const stored = await call<string | null>(() => client.call('get', [name]))
      return stored === null ? null : Number(stored)
    },

    commit: (commits) => submit(commits, commitAll),

    // The scopes of a Redis Cluster lie on different servers.
    ...(client instanceof Redis ? { commitTogether } : {}),

    async facts() {
      refuseClosed()
      return readRedisFacts(client)
    },

    async usage() {
      refuseClosed()
      return usedMemory(client)
    },

    async close() {
      closed = true
      await Promise.allSettled(inFlight)
      client.disconnect()
    },
  }
}

/** Full only when it is certain that nothing was written. */
function verdict(failures: readonly unknown[], wrote: boolean): unknown {
  const full = failures.every((failure) => failure instanceof Full)
  return full && wrote ? new Unavailable('Redis became full amid several commits', { cause: failures[0] }) : failures[0]
}

function* batches(commits: readonly PreparedCommit[]): Generator<PreparedCommit[]> {
  let batch: PreparedCommit[] = []
  let keys = 0
  let bytes = 0
  for (const commit of commits) {
    if (batch.length > 0 && (keys + commit.keys.length > BATCH_KEYS_MAX || bytes + commit.bytes > BATCH_BYTES_MAX)) {
      yield batch
      batch = []
      keys = 0
      bytes = 0
    }
    batch.push(commit)
    keys += commit.keys.length
    bytes += commit.bytes
  }
  if (batch.length > 0) yield batch
}

/** Builds record keys of one scope, reusing the collection's part while it stays the same. */
function recordNames(names: ScopeKeys): (key: KvKey) => string {
  let collection: string | null = null
  let current = { record: (id: string) => id }
  return ([name, id]) => {
    if (name !== collection) {
      current = names.collection(name)
      collection = name
    }
    return current.record(id)
  }
}

/** The range as ZRANGE takes it, low before high. */
function boundsOf(names: ScopeKeys, collection: string, { after = '', upTo }: KeyRange): [string, string] {
  const { record } = names.collection(collection)
  if (after !== '') record(after)
  if (upTo !== undefined) record(upTo)
  return [after === '' ? '-' : `(${after}`, upTo === undefined ? '+' : `[${upTo}`]
}
