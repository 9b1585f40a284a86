// Bodies of what waits long, behind a pause or a receiver that is down: each has an expiry, which moves on as long as a delivery
// still needs it.

import type { Commit, Kv } from '../kv/kv.ts'
import { HOUR_MS } from '../lib/durations.ts'
import {
  DUE,
  deliveriesScope,
  deliveryKey,
  FAILED_KEPT_MS,
  readDueDeliveryId,
  type StoredDelivery,
} from '../records/deliveries.ts'
import { prolongPayloads } from './save.ts'

/** Half of what the shortest-lived body is given, so that one round may fail. */
export const EXTEND_EVERY_MS = 12 * HOUR_MS
const AHEAD_MS = 36 * HOUR_MS
const AT_ONCE = 200

/** Looks at everything that waits for a webhook. May run beside its sender. */
export async function extendPayloadTtls(
  kv: Pick<Kv, 'get' | 'scan' | 'commit'>,
  webhookId: string,
  nowMs: number,
): Promise<void> {
  const scope = deliveriesScope(webhookId)
  for (let after = ''; ; ) {
    const page = await kv.scan(scope, DUE, { after, limit: AT_ONCE })
    const last = page.at(-1)?.key[1]
    if (last === undefined) return
    after = last
    const found = await kv.get<StoredDelivery>(
      scope,
      page.map(({ key }) => deliveryKey(readDueDeliveryId(key[1]).deliveryId)),
    )
    const ending = found.flatMap((entry) =>
      entry !== null && entry.value.status === 'pending' && entry.value.payloadUntil < nowMs + AHEAD_MS ? [entry] : [],
    )
    if (ending.length > 0) {
      const kept = new Set<string>()
      for (const place of new Set(ending.map(({ value }) => value.payloadAt))) {
        const ids = ending.filter(({ value }) => value.payloadAt === place).map(({ value }) => value.payloadId)
        for (const id of await prolongPayloads(kv, place, [...new Set(ids)])) kept.add(id)
      }
      const commits = ending.flatMap(({ key, value, version }): Commit[] => {
        if (!kept.has(value.payloadId)) return []
        const delivery = { ...value, payloadUntil: nowMs + FAILED_KEPT_MS }
        return [{ scope, check: [[key, version]], put: [{ key, value: delivery }] }]
      })
      // One that changed meanwhile is looked at again in the next round.
      if (commits.length > 0) await kv.commit(commits)
    }
    if (page.length < AT_ONCE) return
  }
}
