// What happens to many deliveries of a webhook at once: they fail together, give way to newer ones, lose what they were to send, or
// go with the webhook.

import type { Kv, KvKey, Put } from '../kv/kv.ts'
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
  STAT,
  type StoredDelivery,
  shardScope,
  statKey,
  TALLY,
  tallyId,
} from '../records/deliveries.ts'
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
    .map(({ key }) => ({ key, id: readDueDeliveryId(key[1]).deliveryId }))
    .filter(({ id }) => !queue.busy.has(id))
  if (due.length === 0) return 0
  const found = await kv.get<StoredDelivery>(
    scope,
    due.map(({ id }) => deliveryKey(id)),
  )
  const put: Put[] = []
  for (const [i, entry] of found.entries()) {
    if (entry?.value.status === 'pending') put.push(putDelivery(due[i]?.id ?? '', endedBy(entry.value, reason)))
  }
  const check = found.map((entry, i) => [deliveryKey(due[i]?.id ?? ''), entry?.version ?? null] as const)
  const counts = [
    [statKey(dayNumberOf(nowMs), 'failed'), put.length] as const,
    [PENDING_DELIVERIES, -put.length] as const,
  ]
  if (put.length > 0) put.push(putTally(tallyId(nowMs, due[0]?.id ?? ''), { delivered: 0, failed: put.length }))
  const drop = due.map(({ key }) => key)
  await kv.commit([{ scope, check, put, drop, add: put.length === 0 ? [] : counts }])
  return due.length
}

/** Nothing can be sent: the visitor it spoke of was erased. Nobody is to see it waiting. */
export async function dropUnsendable(
  kv: SweepKv,
  queue: Pick<WebhookQueue, 'id'>,
  some: readonly Unsendable[],
): Promise<void> {
  if (some.length === 0) return
  const scope = deliveriesScope(queue.id)
  await kv.commit(
    some.map(({ due, deliveryId, entry }) => {
      if (entry === null || entry.value.status !== 'pending' || due[0] !== DUE) return { scope, drop: [due] }
      const check = [[deliveryKey(deliveryId), entry.version] as const]
      return { scope, check, drop: [due, deliveryKey(deliveryId)], add: [[PENDING_DELIVERIES, -1] as const] }
    }),
  )
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
