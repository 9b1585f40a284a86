// The engine's side of the kv: entries loaded for a batch, and the lazy, guarded checkpoint of what changed (R2, R3).

import type { Env } from '../domain/event.ts'
import { NONCE_WINDOW_MS } from '../domain/identify.ts'
import { homePartition } from '../domain/ids.ts'
import { getAll } from '../kv/get-all.ts'
import type { Kv, KvKey, Put, Scope } from '../kv/kv.ts'
import type { ThreadKv } from '../kv/remote.ts'
import type { Clock } from '../lib/clock.ts'
import { Conflict, Unavailable } from '../lib/failures.ts'
import type { Seq } from '../log/log.ts'
import { groupOf } from '../records/aliases.ts'
import {
  DECIDED_TO,
  ENGINE_POSITION,
  NONCE,
  nonceKey,
  partitionScope,
  ruleStatKeys,
  VELOCITY,
  velocityTtlMs,
  visitorKey,
} from '../records/partitions.ts'
import { persist } from './append.ts'
import type { Load } from './asking.ts'
import type { Checkpoint } from './decided.ts'
import { MERGED_RECORDS, type StoredMergedRecords } from './merged-records.ts'
import type { Dirty, LoadedEntry } from './state.ts'
import type { StoredCounter } from './velocity/board.ts'

const RETRY_MS = 50
const NONCE_CHUNKS_MAX = 10_000
const NONCE_KEPT_MS = 2 * NONCE_WINDOW_MS

/** Asks before it returns, as `getAll` does. */
export async function readStateEntries(
  kv: Pick<Kv, 'get'>,
  scope: Scope,
  entries: readonly Omit<LoadedEntry, 'value'>[],
): Promise<LoadedEntry[]> {
  const found = await getAll(
    kv,
    scope,
    entries.map(({ kind, id }) => [kind, id] as const),
  )
  return entries.map((entry, at) => ({ ...entry, value: found[at]?.value ?? null }))
}

type PackedCounter = readonly [seq: Seq, packed: Uint8Array]

/** Counters by the ids of their keys, each with what each of the partitions has stored of it. */
export async function readCounters(
  kv: Pick<Kv, 'get'>,
  partitions: readonly number[],
  ids: readonly string[],
): Promise<LoadedEntry[]> {
  const keys = ids.map((id) => [VELOCITY, id] as const)
  const found = await Promise.all(
    partitions.map((partition) => getAll<PackedCounter>(kv, partitionScope(partition), keys)),
  )
  return ids.map((id, at) => {
    const value: StoredCounter[] = []
    partitions.forEach((partition, p) => {
      const stored = found[p]?.[at]?.value
      if (stored !== undefined) value.push({ partition, seq: stored[0], packed: stored[1] })
    })
    return { kind: VELOCITY, id, value }
  })
}

/** Who is one visitor with the survivors of these ids, with what the kv has of those in partitions other than `here`. */
async function readMergedRecords(
  kv: Pick<Kv, 'get'>,
  { partition: here, partitions }: { readonly partition: number; readonly partitions: number },
  ids: readonly string[],
): Promise<LoadedEntry[]> {
  const packedOf = async (workspace: string, env: Env, visitorId: string) => {
    const scope = partitionScope(homePartition(visitorId, partitions))
    const [entry] = await kv.get<Uint8Array>(scope, [visitorKey(workspace, env, visitorId)])
    return entry === null || entry === undefined ? [] : [[visitorId, entry.value] as const]
  }
  const read = async (id: string): Promise<LoadedEntry> => {
    const [workspace, env, survivor] = id.split('/') as [string, Env, string]
    const group = await groupOf(kv, workspace, env, survivor)
    const others = group.filter((one) => homePartition(one, partitions) !== here)
    const packed = await Promise.all(others.map((one) => packedOf(workspace, env, one)))
    const value: StoredMergedRecords = { ids: group, elsewhere: packed.flat() }
    return { kind: MERGED_RECORDS, id, value }
  }
  return Promise.all(ids.map(read))
}

/** Made as they are written: see `DirtyEntries`. */
function* putsOf(dirty: Iterable<Dirty>, more: Iterable<Put>, seq: Seq, ttlMs: number): Generator<Put> {
  for (const { kind, id, value, isRenewal = false } of dirty) {
    if (kind === VELOCITY) yield { key: [kind, id], value: [seq, value], ttlMs, isRenewal }
    else yield { key: [kind, id], value }
  }
  yield* more
}

/**
 * What a checkpoint says of state and counts, and `more`, as the kv is to write it `nowMs`; `seq`: the events record it is as of.
 */
export function writesOf(
  { dirty, gone, matches }: Pick<Checkpoint, 'dirty' | 'gone' | 'matches'>,
  seq: Seq,
  nowMs: number,
  more: readonly Put[],
) {
  const few = [...more]
  const drop: KvKey[] = [...gone]
  const ttlMs = velocityTtlMs(nowMs)
  const add: (readonly [KvKey, number])[] = []
  for (const { id, matched, monitored, lastMatchAt } of matches) {
    const keys = ruleStatKeys(id)
    if (matched > 0) {
      add.push([keys.live, matched])
      few.push({ key: keys.last, value: lastMatchAt })
    }
    if (monitored > 0) add.push([keys.monitor, monitored])
  }
  return { put: { [Symbol.iterator]: () => putsOf(dirty, few, seq, ttlMs) }, drop, add }
}

/**
 * `loadRuleset` makes the ruleset of `<workspace>/<env>` known to the next step, when there is one. `checkpointed` is the
 * position the kv must still have: in one that was emptied everybody would look like a stranger. Fails with Conflict then.
 */
export function loadFrom(
  kv: Pick<Kv, 'get' | 'position'>,
  { partition, partitions }: { readonly partition: number; readonly partitions: number },
  loadRuleset: (name: string) => Promise<void>,
  checkpointed: () => Seq,
): Load {
  const scope = partitionScope(partition)
  const everyPartition = Array.from({ length: partitions }, (_, p) => p)
  return async (wanted) => {
    const entries: Omit<LoadedEntry, 'value'>[] = []
    const counters: string[] = []
    const mergedRecords: string[] = []
    for (const { kind, id } of wanted) {
      if (kind === 'ruleset') await loadRuleset(id)
      else if (kind === VELOCITY) counters.push(id)
      else if (kind === MERGED_RECORDS) mergedRecords.push(id)
      else entries.push({ kind, id })
    }
    if (entries.length === 0 && counters.length === 0 && mergedRecords.length === 0) return []
    const expect = checkpointed()
    // Asked behind the entries, over one connection in this order: had they been gone, it would be gone too, or another one.
    const [loaded, counted, related, position] = await Promise.all([
      entries.length === 0 ? [] : readStateEntries(kv, scope, entries),
      counters.length === 0 ? [] : readCounters(kv, everyPartition, counters),
      mergedRecords.length === 0 ? [] : readMergedRecords(kv, { partition, partitions }, mergedRecords),
      kv.position(scope, ENGINE_POSITION),
    ])
    if (position === null || position < expect) throw new Conflict(`partition ${partition} lost its records in the kv`)
    return [...loaded, ...counted, ...related]
  }
}

/**
 * The nonces stored with checkpoints, which go by the age that this process sees: records that expire by themselves would
 * follow a clock that jumps.
 */
export interface NonceChunks {
  /** Of the last minutes, oldest first. */
  read(): Promise<Uint8Array[]>
  /** Notes a chunk that is stored with a checkpoint. */
  stored(key: KvKey): void
  /** Chunks whose time is over; they are not named again. */
  takeOld(): KvKey[]
}

export function openNonceChunks(kv: Pick<Kv, 'scan'>, clock: Pick<Clock, 'monotonic'>, partition: number): NonceChunks {
  const chunks: { readonly key: KvKey; readonly at: number }[] = []
  return {
    async read() {
      const entries = await kv.scan<Uint8Array>(partitionScope(partition), NONCE, {
        limit: NONCE_CHUNKS_MAX,
        reverse: true,
      })
      entries.reverse()
      for (const { key } of entries) chunks.push({ key, at: clock.monotonic() })
      return entries.map(({ value }) => value)
    },
    stored: (key) => void chunks.push({ key, at: clock.monotonic() }),
    takeOld() {
      const oldest = clock.monotonic() - NONCE_KEPT_MS
      const kept = chunks.findIndex(({ at }) => at > oldest)
      return chunks.splice(0, kept < 0 ? chunks.length : kept).map(({ key }) => key)
    },
  }
}

/** Matches of backdated events, with the latest match there ever was. */
export async function withStoredMatches(
  kv: Pick<Kv, 'get'>,
  scope: Scope,
  matches: Checkpoint['matches'],
): Promise<Checkpoint['matches']> {
  const doubtful = matches.filter(({ backdated }) => backdated)
  if (doubtful.length === 0) return matches
  const keys = doubtful.map(({ id }) => ruleStatKeys(id).last)
  const found = await kv.get<number>(scope, keys)
  const stored = new Map(doubtful.map(({ id }, at) => [id, found[at]?.value ?? 0]))
  return matches.map((one) => ({ ...one, lastMatchAt: Math.max(one.lastMatchAt, stored.get(one.id) ?? 0) }))
}

/**
 * Commits the state as of the events record `seq`, provided the stored position still is `expect`. Resolves with the new
 * position; throws Conflict when another owner has committed.
 */
export async function commitCheckpoint(
  kv: ThreadKv,
  clock: Clock,
  partition: number,
  checkpoint: Checkpoint,
  chunks: NonceChunks,
  expect: Seq,
  seq: Seq,
  decidedTo: Seq,
): Promise<Seq> {
  const scope = partitionScope(partition)
  // Nobody else writes them while the guarded position is ours.
  const matches = await persist(clock, () => withStoredMatches(kv, scope, checkpoint.matches))
  const more: Put[] = [{ key: DECIDED_TO, value: decidedTo }]
  const old = chunks.takeOld()
  for (const [part, value] of checkpoint.nonces.entries()) {
    const key = nonceKey(seq, part)
    more.push({ key, value })
    chunks.stored(key)
  }
  const { put, drop, add } = writesOf({ ...checkpoint, matches }, seq, clock.now(), more)
  drop.push(...old)
  const commit = { scope, guard: { source: ENGINE_POSITION, expect, next: seq }, put, drop, add }

  for (let unknown = false; ; unknown = true) {
    try {
      // A commit without an answer may have happened, or happen yet: only the guarded position tells.
      if (unknown && seq !== expect && (await kv.position(scope, ENGINE_POSITION)) === seq) return seq
      const [committed] = await kv.commit([commit])
      if (committed === true) return seq
      if (unknown && (await kv.position(scope, ENGINE_POSITION)) === seq) return seq
      throw new Conflict(`the checkpoint of partition ${partition} is another owner's`)
    } catch (error) {
      if (!(error instanceof Unavailable)) throw error
      await clock.sleep(RETRY_MS)
    }
  }
}
