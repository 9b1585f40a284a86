// What happens to many deliveries of a webhook at once: they fail together, give way to newer ones, lose what they were to send, or
// go with the webhook.

import type { Commit, Kv, KvKey, Put } from '../kv/kv.ts'
import {
  DELIVERY,
  DUE,
  DUE_MANUAL,
  dayNumberOf,
  deliveriesScope,
  deliveryKey,
  HEALTH,
  nextKey,
  PENDING_DELIVERIES,
  putDelivery,
  putTally,
  readDueDeliveryId,
  readPayloadWhose,
  STAT,
  type StoredDelivery,
  shardScope,
  statKey,
  TALLY,
  tallyId,
} from '../records/deliveries.ts'
import { erasedAmong, erasedId } from '../records/erasures.ts'
import { prolongPayloads } from './payload-ttl.ts'
import { endedBy } from './schedule.ts'
import type { Unsendable, WebhookQueue } from './webhook-queue.ts'

const SWEPT_AT_ONCE = 500

type SweepKv = Pick<Kv, 'get' | 'scan' | 'commit'>

/** Ends what waits longest, `countMax` at the most and as many as go at once: how many, 0 when nothing waits. */
export async function failPending(
  kv: SweepKv,
  queue: Pick<WebhookQueue, 'id' | 'busy'>,
  reason: string,
  nowMs: number,
  countMax = Number.POSITIVE_INFINITY,
): Promise<number> {
  const scope = deliveriesScope(queue.id)
  const page = await kv.scan(scope, DUE, { limit: Math.min(SWEPT_AT_ONCE, countMax) + queue.busy.size })
  const due = page
    .map(({ key }) => ({ due: key, deliveryId: readDueDeliveryId(key[1]).deliveryId }))
    .filter(({ deliveryId }) => !queue.busy.has(deliveryId))
  if (due.length === 0) return 0
  const found = await kv.get<StoredDelivery>(
    scope,
    due.map(({ deliveryId }) => deliveryKey(deliveryId)),
  )
  await endAsFailed(
    kv,
    queue,
    due.map((one, i) => ({ ...one, entry: found[i] ?? null })),
    reason,
    nowMs,
  )
  return due.length
}

/** Those of them that wait: together, or none where one has changed since it was read. */
async function endAsFailed(
  kv: SweepKv,
  queue: Pick<WebhookQueue, 'id'>,
  some: readonly Unsendable[],
  reason: string,
  nowMs: number,
): Promise<void> {
  const waiting = some.flatMap(({ entry }) => (entry?.value.status === 'pending' ? [entry] : []))
  const kept = await prolongPayloads(
    kv,
    waiting.map(({ value }) => value),
    nowMs,
  )
  const put: Put[] = kept.map((delivery, i) => putDelivery(waiting[i]?.key[1] ?? '', endedBy(delivery, reason)))
  const check = some.map(({ deliveryId, entry }) => [deliveryKey(deliveryId), entry?.version ?? null] as const)
  const counts = [
    [statKey(dayNumberOf(nowMs), 'failed'), put.length] as const,
    [PENDING_DELIVERIES, -put.length] as const,
  ]
  if (put.length > 0) {
    put.push(putTally(tallyId(nowMs, some[0]?.deliveryId ?? ''), { delivered: 0, failed: put.length }))
  }
  const drop = some.map(({ due }) => due)
  await kv.commit([{ scope: deliveriesScope(queue.id), check, put, drop, add: waiting.length === 0 ? [] : counts }])
}

/** What waited for so long that it was not kept. */
const EXPIRED = 'body_expired'

/**
 * Nothing can be sent. Where that is because the visitor it spoke of was erased nobody is to see it waiting; else it has failed.
 */
export async function endUnsendable(
  kv: SweepKv,
  queue: Pick<WebhookQueue, 'id'>,
  some: readonly Unsendable[],
  nowMs: number,
): Promise<void> {
  if (some.length === 0) return
  const scope = deliveriesScope(queue.id)
  const drops: Commit[] = []
  const expired: Unsendable[] = []
  for (const one of some) {
    const { due, deliveryId, entry } = one
    if (entry === null || entry.value.status !== 'pending' || due[0] !== DUE) drops.push({ scope, drop: [due] })
    else if (await isErased(kv, entry.value)) {
      const check = [[deliveryKey(deliveryId), entry.version] as const]
      drops.push({ scope, check, drop: [due, deliveryKey(deliveryId)], add: [[PENDING_DELIVERIES, -1] as const] })
    } else expired.push(one)
  }
  if (drops.length > 0) await kv.commit(drops)
  if (expired.length > 0) await endAsFailed(kv, queue, expired, EXPIRED, nowMs)
}

async function isErased(kv: Pick<Kv, 'get'>, { payloadAt, payloadId }: StoredDelivery): Promise<boolean> {
  const whose = readPayloadWhose(payloadId)
  if (whose === null) return false
  const id = erasedId(whose.workspace, whose.env, whose.visitorId)
  return (await erasedAmong(kv, payloadAt, [id])).has(id)
}

/** Deliveries of a webhook that wait. */
export async function pendingOf(kv: Pick<Kv, 'get'>, webhookId: string): Promise<number> {
  const [entry] = await kv.get<number>(deliveriesScope(webhookId), [PENDING_DELIVERIES])
  return entry?.value ?? 0
}

/** Removes all that is kept of a webhook that was deleted. */
export async function purgeQueue(
  kv: Pick<Kv, 'scan' | 'commit'>,
  queue: Pick<WebhookQueue, 'id' | 'shard'>,
): Promise<void> {
  const scope = deliveriesScope(queue.id)
  for (const collection of [DUE, DUE_MANUAL, DELIVERY, STAT, TALLY]) {
    for (;;) {
      const page = await kv.scan(scope, collection, { limit: SWEPT_AT_ONCE })
      if (page.length === 0) break
      await kv.commit([{ scope, drop: page.map(({ key }): KvKey => key) }])
    }
  }
  await kv.commit([
    { scope, drop: [HEALTH, PENDING_DELIVERIES] },
    { scope: shardScope(queue.shard), drop: [nextKey(queue.id)] },
  ])
}
