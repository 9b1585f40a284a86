// State from decisions outside of a tenure: applying records of `events` to a kv that nobody owns, with the owner's own code,
// and finding again under which keys visitors are looked up.

import type { DecidedItem } from '../events/packed-items.ts'
import { decodeEventsRecord } from '../events/record.ts'
import type { Kv, KvKey, Put } from '../kv/kv.ts'
import type { Clock } from '../lib/clock.ts'
import { partitionScope, VELOCITY } from '../records/partitions.ts'
import { allIndexKeysOf, unpackHeldVisitor } from '../records/visitors.ts'
import { provideAll } from './asking.ts'
import { readCounters, readStateEntries, withStoredMatches, writesOf } from './checkpoint.ts'
import { readIndex } from './index-entry.ts'
import { createPartition } from './partition.ts'
import { createState, type LoadedEntry, type WantedEntry } from './state.ts'

const COMMIT_KEYS = 1_000
const DIRTY_MAX = 2_000
const VISITORS_MAX = 10_000

export interface ReplayNeeds {
  readonly kv: Pick<Kv, 'get' | 'commit'>
  readonly clock: Pick<Clock, 'monotonic' | 'now'>
  readonly partition: number
  readonly partitions: number
  /** A fresh key for nonces, oldest first. */
  readonly nextNonceKey: () => KvKey
}

export interface StateReplay {
  /** Applies records of `events` in order. */
  apply(records: readonly Uint8Array[]): Promise<void>
  /** Writes what is not written yet. */
  flush(): Promise<void>
}

/** For a partition without positions: nothing guards what is written, and applying the same record twice counts it twice. */
export function openStateReplay({ kv, clock, partition, partitions, nextNonceKey }: ReplayNeeds): StateReplay {
  const scope = partitionScope(partition)
  const state = createPartition({
    partition,
    partitions,
    random: () => {
      throw new Error('what was decided is not decided again')
    },
    monotonic: clock.monotonic,
    ruleset: () => null,
    visitorsMax: VISITORS_MAX,
  })

  async function flush(): Promise<void> {
    const checkpoint = state.checkpoint()
    const { nonces } = checkpoint
    const matches = await withStoredMatches(kv, scope, checkpoint.matches)
    const more = nonces.map((value) => ({ key: nextNonceKey(), value }))
    const { put, drop, add } = writesOf({ ...checkpoint, matches }, 0, clock.now(), more)
    await putAll(kv, scope, put)
    for (const keys of parts(drop, COMMIT_KEYS)) await kv.commit([{ scope, drop: keys }])
    for (const sums of parts(add, COMMIT_KEYS)) await kv.commit([{ scope, add: sums }])
  }

  return {
    async apply(records) {
      await provideAll(state.adopt(records), (wanted) => loadAll(kv, partition, wanted))
      if (state.dirtyCount() >= DIRTY_MAX) await flush()
    },
    flush,
  }
}

/** Puts any number of records into a scope, not all at once. */
export async function putAll(kv: Pick<Kv, 'commit'>, scope: string, put: Iterable<Put>): Promise<void> {
  for (const some of parts([...put], COMMIT_KEYS)) await kv.commit([{ scope, put: some }])
}

/**
 * Lists visitors under the keys that an earlier visit put them under: adopting their records adds only the keys that were new
 * then. Twice equals once.
 */
export async function reindex(
  kv: Pick<Kv, 'get' | 'commit'>,
  partition: number,
  items: readonly DecidedItem[],
): Promise<void> {
  const places: { readonly id: string; readonly visitorId: string }[] = []
  for (const { workspace, env, visitorId, state, indexed } of items) {
    if (state.length === 0) continue
    for (const key of allIndexKeysOf(unpackHeldVisitor(state))) {
      if (!indexed.includes(key)) places.push({ id: `${workspace}/${env}/${key}`, visitorId })
    }
  }
  if (places.length === 0) return
  const held = createState(VISITORS_MAX)
  const wanted = [...new Set(places.map(({ id }) => id))].map((id) => ({ kind: 'index' as const, id }))
  held.load(await loadAll(kv, partition, wanted))
  for (const { id, visitorId } of places) {
    const entry = held.index(id)
    if (!entry || !readIndex(entry).ids.includes(visitorId)) held.addToIndex(id, visitorId)
  }
  const put = Array.from(held.takeDirty(0).dirty, ({ kind, id, value }) => ({ key: [kind, id] as const, value }))
  await putAll(kv, partitionScope(partition), put)
}

export const itemsOf = (records: readonly Uint8Array[]): DecidedItem[] =>
  records.flatMap((bytes) => decodeEventsRecord(bytes).items)

async function loadAll(
  kv: Pick<Kv, 'get'>,
  partition: number,
  wanted: readonly WantedEntry[],
): Promise<readonly LoadedEntry[]> {
  const entries = wanted.flatMap(({ kind, id }) => (kind === 'ruleset' || kind === VELOCITY ? [] : [{ kind, id }]))
  const counters = wanted.flatMap(({ kind, id }) => (kind === VELOCITY ? [id] : []))
  return [
    ...(entries.length > 0 ? await readStateEntries(kv, partitionScope(partition), entries) : []),
    // Nobody asks for what other partitions counted.
    ...(counters.length > 0 ? await readCounters(kv, [partition], counters) : []),
  ]
}

function* parts<T>(all: readonly T[], itemsMax: number): Generator<readonly T[]> {
  for (let at = 0; at < all.length; at += itemsMax) yield all.slice(at, at + itemsMax)
}
