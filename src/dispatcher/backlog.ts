// What figures say of what waits: how many deliveries, how late the latest is, and how many webhooks are switched off.

import type { Kv } from '../kv/kv.ts'
import { DUE, deliveriesScope, PENDING_DELIVERIES, readDueDeliveryId } from '../records/deliveries.ts'
import type { WebhookQueue } from './webhook-queue.ts'

export interface Backlog {
  readonly waiting: number
  /** For how long the first of them has been due, milliseconds. */
  readonly oldestMs: number
}

/** Of so many queues the rest is left out: a scrape must not read a large store. */
const QUEUES_MAX = 500

export async function backlogOf(
  kv: Pick<Kv, 'get' | 'scan'>,
  queues: Iterable<Pick<WebhookQueue, 'id'>>,
  now: number,
): Promise<Backlog> {
  const asked = Array.from(queues).slice(0, QUEUES_MAX)
  const each = await Promise.all(
    asked.map(async ({ id }) => {
      const scope = deliveriesScope(id)
      const [[pending], [first]] = await Promise.all([
        kv.get<number>(scope, [PENDING_DELIVERIES]),
        kv.scan(scope, DUE, { limit: 1 }),
      ])
      const dueAt = first === undefined ? now : readDueDeliveryId(String(first.key[1])).at
      return { waiting: pending?.value ?? 0, lateMs: Math.max(0, now - dueAt) }
    }),
  )
  return {
    waiting: each.reduce((sum, { waiting }) => sum + waiting, 0),
    oldestMs: Math.max(0, ...each.map(({ lateMs }) => lateMs)),
  }
}
