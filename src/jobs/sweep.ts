// Looks through the state of every partition now and then: visitors who have had their time are forgotten (`expire.ts`), and what
// earlier releases left of erased visitors in the match index goes. Only the owner of a partition writes its state, so it is asked to
// erase such a visitor once more. A few entries at a time, so that nobody notices.

import type { Env } from '../domain/event.ts'
import type { Kv, KvEntry } from '../kv/kv.ts'
import { dueInMs } from '../lib/due.ts'
import { Full, Unavailable } from '../lib/failures.ts'
import { ERASED, erasedId, type RecordedErasure, type Tombstone } from '../records/erasures.ts'
import { encodeErasure } from '../records/identification.ts'
import { indexKey, partitionScope } from '../records/partitions.ts'
import { SYSTEM } from '../records/scopes.ts'
import { type ExpireNeeds, expireVisitors } from './expire.ts'

export interface SweepNeeds extends ExpireNeeds {
  readonly kv: Pick<Kv, 'get' | 'scan' | 'walk' | 'commit'>
  /** Between the ends of two sweeps and the beginnings of the next. */
  readonly everyMs: number
  readonly onError: (error: unknown) => void
  /** Told how many visitors the last sweep met, and null when somebody else is to sweep. */
  readonly onVisitors: (count: number | null) => void
}

const LOOK_MS_MAX = 60_000
/** At most so many entries are looked at before each pause, and so many visitors erased once more. */
const ENTRIES_AT_ONCE = 250
const ORDERS_AT_ONCE = 100
const PAUSE_MS = 250
const SWEPT = ['sweep', 'index'] as const

/** The last sweep of all partitions. Milliseconds. */
interface Swept {
  readonly finishedAt: number
  /** Those it met; absent in what earlier releases stored. */
  readonly visitors?: number
}

/** Runs until `signal` aborts. When the last sweep ended is stored, so whoever takes over keeps the pace. Twice equals once. */
export async function runSweep(needs: SweepNeeds, signal: AbortSignal): Promise<void> {
  const { kv, clock, partitions, everyMs, onError, onVisitors } = needs
  while (!signal.aborted) {
    let waitMs = Math.min(LOOK_MS_MAX, everyMs)
    try {
      const [last] = await kv.get<Swept>(SYSTEM, [SWEPT])
      if (last?.value.visitors !== undefined) onVisitors(last.value.visitors)
      const dueMs = dueInMs(last?.value.finishedAt ?? Number.NEGATIVE_INFINITY, everyMs, clock.now())
      if (dueMs <= 0) {
        let visitors = 0
        for (let partition = 0; partition < partitions; partition++) {
          await sweepIndex(needs, partition, signal)
          visitors += await expireVisitors(needs, partition, signal)
        }
        if (signal.aborted) break
        const swept: Swept = { finishedAt: clock.now(), visitors }
        await kv.commit([{ scope: SYSTEM, put: [{ key: SWEPT, value: swept }] }])
        onVisitors(visitors)
      } else waitMs = Math.min(waitMs, dueMs)
    } catch (error) {
      if (error instanceof Full || !(error instanceof Unavailable)) onError(error)
    }
    await clock.sleep(waitMs, signal)
  }
  onVisitors(null)
}

async function sweepIndex(needs: SweepNeeds, partition: number, signal: AbortSignal): Promise<void> {
  const { kv, clock } = needs
  const scope = partitionScope(partition)
  // Most deployments never erased anybody.
  if (await isEmpty(kv.walk(scope, ERASED))) return
  let some: KvEntry<IndexValue>[] = []
  for await (const entry of kv.walk<IndexValue>(scope, 'index')) {
    some.push(entry)
    if (some.length < ENTRIES_AT_ONCE) continue
    await heal(needs, partition, some, signal)
    some = []
    await clock.sleep(PAUSE_MS, signal)
    if (signal.aborted) return
  }
  await heal(needs, partition, some, signal)
}

type IndexValue = readonly [total: number, ...ids: string[]]

async function isEmpty(all: AsyncIterable<unknown>): Promise<boolean> {
  for await (const _ of all) return false
  return true
}

/** Where an entry of the index names whom. */
interface Place {
  readonly workspace: string
  readonly env: Env
  readonly key: string
  readonly visitorId: string
}

function placesOf({ key: [, id], value: [, ...ids] }: KvEntry<IndexValue>): Place[] {
  const [workspace = '', env, key = ''] = id.split('/')
  return ids.map((visitorId) => ({ workspace, env: env as Env, key, visitorId }))
}

async function heal(
  { kv, log, clock }: SweepNeeds,
  partition: number,
  entries: readonly KvEntry<IndexValue>[],
  signal: AbortSignal,
): Promise<void> {
  const scope = partitionScope(partition)
  const places = entries.flatMap(placesOf)
  if (places.length === 0) return
  const found = await kv.get<Tombstone>(
    scope,
    places.map(({ workspace, env, visitorId }) => [ERASED, erasedId(workspace, env, visitorId)] as const),
  )
  const erased = places.flatMap((place, i) => {
    const tombstone = found[i]?.value
    return tombstone === undefined ? [] : [{ ...place, tombstone }]
  })
  // Asked again: whoever was erased since the entry was read has left it with that.
  const now = await kv.get<IndexValue>(
    scope,
    erased.map(({ workspace, env, key }) => indexKey(workspace, env, key)),
  )
  const orders = new Map<string, RecordedErasure & { readonly found: string[] }>()
  erased.forEach(({ workspace, env, key, visitorId, tombstone }, i) => {
    if (!now[i]?.value.includes(visitorId)) return
    const id = `${workspace}/${env}/${visitorId}`
    const order = orders.get(id)
    if (order === undefined) orders.set(id, { ...tombstone, workspace, env, visitorId, found: [key] })
    else order.found.push(key)
  })
  const all = [...orders.values()].map(encodeErasure)
  for (let at = 0; at < all.length && !signal.aborted; at += ORDERS_AT_ONCE) {
    if (at > 0) await clock.sleep(PAUSE_MS, signal)
    await log.append('identifications', partition, all.slice(at, at + ORDERS_AT_ONCE))
  }
}
