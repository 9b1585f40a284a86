// Writes what subscribers are to be told: payloads first, then deliveries with the index that wakes the senders. All of it may be
// done again, after a crash or by two at once: what is there stays as it is.

import type { Commit, Kv, Put, Version } from '../kv/kv.ts'
import { Unavailable } from '../lib/failures.ts'
import {
  DUE,
  deliveriesScope,
  deliveryKey,
  dueId,
  FAILED_KEPT_MS,
  type Next,
  nextKey,
  type Payload,
  PENDING_DELIVERIES,
  payloadKey,
  shardOf,
  shardScope,
} from '../records/deliveries.ts'
import type { NewDelivery, NewPayload, OutboxEntries } from './match.ts'

const PAYLOADS_PER_COMMIT = 64
const DELIVERIES_PER_COMMIT = 256
const ATTEMPTS_MAX = 20

export interface StoredOutbox {
  /** The webhooks that have something to send now, by shard. */
  readonly woken: ReadonlyMap<number, ReadonlySet<string>>
  /** What was written just now, each with a payload exactly as it was told: it can be sent without reading it again. */
  readonly fresh: readonly NewDelivery[]
}

/** `isAwake`: whether the index is known to have the webhook already. */
export async function storeOutbox(
  kv: Pick<Kv, 'get' | 'commit'>,
  { payloads, deliveries }: OutboxEntries,
  nowMs: number,
  isAwake: (webhookId: string) => boolean = () => false,
): Promise<StoredOutbox> {
  if (deliveries.length === 0) return { woken: new Map(), fresh: [] }
  const ofPayload = (payload: NewPayload): Rendered => ({ payload, stored: null, version: null })
  const rendered = chunksOf(payloads.map(ofPayload), ({ payload }) => payload.scope, PAYLOADS_PER_COMMIT)
  const otherwise = await commitNew(kv, rendered, payloadCommit, onlyMissing)
  const byWebhook = chunksOf(deliveries, ({ webhookId }) => deliveriesScope(webhookId), DELIVERIES_PER_COMMIT)
  const woken = wokenBy(deliveries)
  const known = await commitNew(kv, byWebhook, deliveryCommit, unknownDeliveries, wakes(woken, nowMs, isAwake))
  if (otherwise.size === 0 && known.size === 0) return { woken: idsOf(woken), fresh: deliveries }
  const unsure = new Set([...otherwise].map(({ payload }) => payload.id))
  const fresh = deliveries.filter((one) => !known.has(one) && !unsure.has(one.delivery.payloadId))
  return { woken: idsOf(woken), fresh }
}

type Chunk<T> = { readonly scope: string; readonly items: readonly T[] }

function chunksOf<T>(items: readonly T[], scopeOf: (item: T) => string, itemsMax: number): Chunk<T>[] {
  const chunks: { readonly scope: string; readonly items: T[] }[] = []
  const open = new Map<string, T[]>()
  for (const item of items) {
    const scope = scopeOf(item)
    let chunk = open.get(scope)
    if (chunk === undefined || chunk.length >= itemsMax) {
      chunk = []
      open.set(scope, chunk)
      chunks.push({ scope, items: chunk })
    }
    chunk.push(item)
  }
  return chunks
}

/** Commits say that nothing of them is there yet; of those refused only what is missing is written. Resolves with the items of those. */
async function commitNew<T>(
  kv: Pick<Kv, 'get' | 'commit'>,
  chunks: readonly Chunk<T>[],
  toCommit: (chunk: Chunk<T>) => Commit,
  missingOf: (kv: Pick<Kv, 'get'>, chunk: Chunk<T>) => Promise<readonly T[]>,
  further: readonly Commit[] = [],
): Promise<ReadonlySet<T>> {
  const doubtful = new Set<T>()
  let left = chunks
  for (let attempt = 0; left.length > 0; attempt++) {
    if (attempt === ATTEMPTS_MAX) throw new Unavailable('deliveries keep changing while they are written')
    const done = await kv.commit([...left.map(toCommit), ...(attempt === 0 ? further : [])])
    const refused = left.filter((_, i) => done[i] !== true)
    const missing: Chunk<T>[] = []
    for (const chunk of refused) {
      for (const item of chunk.items) doubtful.add(item)
      const items = await missingOf(kv, chunk)
      if (items.length > 0) missing.push({ scope: chunk.scope, items })
    }
    left = missing
  }
  return doubtful
}

/** A payload that may be there already, in part. */
interface Rendered {
  readonly payload: NewPayload
  readonly stored: Payload | null
  readonly version: Version | null
}

function payloadCommit({ scope, items }: Chunk<Rendered>): Commit {
  return {
    scope,
    check: items.map(({ payload, version }) => [payloadKey(payload.id), version] as const),
    put: items.map(({ payload: { id, payload }, stored }) => ({
      key: payloadKey(id),
      value: stored === null ? payload : { ...payload, ...stored },
      ttlMs: FAILED_KEPT_MS,
    })),
  }
}

/**
 * Bodies are rendered once: one that is there, of whatever apiVersion, is what everybody gets. A shape may be missing when its
 * first subscriber came between two readings of the same event.
 */
async function onlyMissing(kv: Pick<Kv, 'get'>, { scope, items }: Chunk<Rendered>): Promise<readonly Rendered[]> {
  const found = await kv.get<Payload>(
    scope,
    items.map(({ payload }) => payloadKey(payload.id)),
  )
  return items.flatMap(({ payload }, i): Rendered[] => {
    const entry = found[i]
    if (!entry) return [{ payload, stored: null, version: null }]
    const isWhole = Object.keys(payload.payload).every((shape) => Object.hasOwn(entry.value, shape))
    return isWhole ? [] : [{ payload, stored: entry.value, version: entry.version }]
  })
}

function deliveryCommit({ scope, items }: Chunk<NewDelivery>): Commit {
  const put: Put[] = []
  for (const { id, delivery } of items) {
    put.push({ key: deliveryKey(id), value: delivery })
    put.push({ key: [DUE, dueId(delivery.nextAttemptAt ?? 0, id)], value: true })
  }
  const check = items.map(({ id }) => [deliveryKey(id), null] as const)
  return { scope, check, put, add: [[PENDING_DELIVERIES, items.length]] }
}

async function unknownDeliveries(
  kv: Pick<Kv, 'get'>,
  { scope, items }: Chunk<NewDelivery>,
): Promise<readonly NewDelivery[]> {
  const found = await kv.get(
    scope,
    items.map(({ id }) => deliveryKey(id)),
  )
  return items.filter((_, i) => found[i] === null)
}

type WokenPlaces = ReadonlyMap<number, ReadonlyMap<string, NewDelivery>>

function wokenBy(deliveries: readonly NewDelivery[]): WokenPlaces {
  const woken = new Map<number, Map<string, NewDelivery>>()
  for (const delivery of deliveries) {
    const shard = shardOf(delivery.webhookId)
    const webhooks = woken.get(shard) ?? new Map<string, NewDelivery>()
    woken.set(shard, webhooks.set(delivery.webhookId, delivery))
  }
  return woken
}

const idsOf = (woken: WokenPlaces): StoredOutbox['woken'] =>
  new Map([...woken].map(([shard, webhooks]) => [shard, new Set(webhooks.keys())]))

function wakes(woken: WokenPlaces, nowMs: number, isAwake: (webhookId: string) => boolean): Commit[] {
  return [...woken].flatMap(([shard, webhooks]) => {
    const put = [...webhooks.values()]
      .filter(({ webhookId }) => !isAwake(webhookId))
      .map(({ workspace, env, webhookId }) => {
        const next: Next = { workspace, env, at: nowMs }
        return { key: nextKey(webhookId), value: next }
      })
    return put.length === 0 ? [] : [{ scope: shardScope(shard), put }]
  })
}
