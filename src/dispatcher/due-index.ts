// The index of webhooks that have something due, as a sender sees it: it finds the webhooks of a shard, claims their entries, and
// takes an entry away when nothing is left.

import type { Kv } from '../kv/kv.ts'
import type { Clock } from '../lib/clock.ts'
import { NEXT, type Next, nextKey, shardScope } from '../records/deliveries.ts'
import { scanAll } from '../records/scopes.ts'
import { isEmpty, openWebhookQueue, type WebhookQueue } from './webhook-queue.ts'

/** A lane that has nothing is kept for a while: there may be more soon. */
const IDLE_MS = 30_000

/** The lanes of a shard that something may be due for, made where they are missing. */
export async function lookAt(
  kv: Pick<Kv, 'scan' | 'commit'>,
  lanes: Map<string, WebhookQueue>,
  shard: number,
): Promise<readonly WebhookQueue[]> {
  const news: WebhookQueue[] = []
  const scope = shardScope(shard)
  const unclaimed: { readonly lane: WebhookQueue; readonly value: Next; readonly version: number }[] = []
  for await (const { key, value, version } of scanAll<Next>(kv, scope, NEXT)) {
    const lane = lanes.get(key[1]) ?? openWebhookQueue(key[1], shard, value.workspace, value.env)
    lanes.set(lane.id, lane)
    if (lane.nextVersion === version) continue
    lane.nextVersion = version
    if (!lane.claimed) unclaimed.push({ lane, value, version })
    lane.wakeAt = Math.min(lane.wakeAt === 0 ? value.at : lane.wakeAt, value.at)
    news.push(lane)
  }
  // A former sender of this shard that slept meanwhile would still take away the entry it knew.
  const claims = unclaimed.map(({ lane, value, version }) => {
    const key = nextKey(lane.id)
    return { scope, check: [[key, version] as const], put: [{ key, value }] }
  })
  const done = claims.length === 0 ? [] : await kv.commit(claims)
  for (const [i, { lane }] of unclaimed.entries()) {
    if (done[i] !== true) continue
    lane.claimed = true
    lane.nextVersion = 0
  }
  return news
}

/** Whoever stores something for it need not write to the index, because its entry is there and stays. */
export const isAwake = (lane: WebhookQueue): boolean =>
  lane.claimed && lane.nextVersion !== 0 && !lane.resting && lane.status !== 'gone'

/** Everything due is known: when is the next time? */
export async function rest(
  needs: { readonly kv: Pick<Kv, 'scan' | 'commit'>; readonly clock: Clock; readonly lanes: Map<string, WebhookQueue> },
  lane: WebhookQueue,
  at: number | null,
): Promise<void> {
  const { kv, clock, lanes } = needs
  if (at !== null) {
    lane.wakeAt = Math.min(lane.wakeAt, at)
    lane.idleSince = Number.POSITIVE_INFINITY
    return
  }
  if (lane.known.size > 0 || lane.reserved > 0) {
    lane.idleSince = Number.POSITIVE_INFINITY
    lane.wakeAt = Math.min(lane.wakeAt, clock.now() + IDLE_MS)
    return
  }
  lane.idleSince = Math.min(lane.idleSince, clock.monotonic())
  if (clock.monotonic() - lane.idleSince < IDLE_MS) {
    lane.wakeAt = Math.min(lane.wakeAt, clock.now() + IDLE_MS)
    return
  }
  lane.resting = true
  try {
    // Held back, by a pause: looked at again when that ends, or when nobody told of it.
    if (!(await isEmpty(kv, lane))) {
      lane.wakeAt = Math.min(lane.wakeAt, clock.now() + IDLE_MS)
      return
    }
    const check = [[nextKey(lane.id), lane.nextVersion === 0 ? null : lane.nextVersion] as const]
    const [dropped] = await kv.commit([{ scope: shardScope(lane.shard), check, drop: [nextKey(lane.id)] }])
    if (dropped === true && lane.known.size === 0 && !lane.again) lanes.delete(lane.id)
  } finally {
    lane.resting = false
  }
}
