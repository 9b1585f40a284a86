// The index of webhooks that have something due, as a sender sees it: it finds the webhooks of a shard, claims their entries, and
// takes an entry away when nothing is left.

import type { Kv } from '../kv/kv.ts'
import type { Clock } from '../lib/clock.ts'
import { NEXT, type Next, nextKey, shardScope } from '../records/deliveries.ts'
import { scanAll } from '../records/scopes.ts'
import { claimEntry, entryVersion, isIndexed, seeEntry, wakeBy } from './queue-state.ts'
import { isEmpty, openWebhookQueue, type WebhookQueue } from './webhook-queue.ts'

/** A queue that has nothing is kept for a while: there may be more soon. */
const IDLE_MS = 30_000

/** The queues of a shard that something may be due for, made where they are missing. */
export async function lookAt(
  kv: Pick<Kv, 'scan' | 'commit'>,
  queues: Map<string, WebhookQueue>,
  shard: number,
): Promise<readonly WebhookQueue[]> {
  const news: WebhookQueue[] = []
  const scope = shardScope(shard)
  const unclaimed: { readonly queue: WebhookQueue; readonly value: Next; readonly version: number }[] = []
  for await (const { key, value, version } of scanAll<Next>(kv, scope, NEXT)) {
    const queue = queues.get(key[1]) ?? openWebhookQueue(key[1], shard, value.workspace, value.env)
    queues.set(queue.id, queue)
    if (!seeEntry(queue.state, version, value.at)) continue
    if (queue.state.entry.is !== 'claimed') unclaimed.push({ queue, value, version })
    news.push(queue)
  }
  // A former sender of this shard that slept meanwhile would still take away the entry it knew.
  const claims = unclaimed.map(({ queue, value, version }) => {
    const key = nextKey(queue.id)
    return { scope, check: [[key, version] as const], put: [{ key, value }] }
  })
  const done = claims.length === 0 ? [] : await kv.commit(claims)
  for (const [i, { queue }] of unclaimed.entries()) if (done[i] === true) claimEntry(queue.state)
  return news
}

/** Whoever stores something for it need not write to the index, because its entry is there and stays. */
export const isAwake = ({ state, status }: WebhookQueue): boolean => isIndexed(state) && status !== 'gone'

/** Everything due is known: when is the next time? */
export async function rest(
  needs: {
    readonly kv: Pick<Kv, 'scan' | 'commit'>
    readonly clock: Clock
    readonly queues: Map<string, WebhookQueue>
  },
  queue: WebhookQueue,
  at: number | null,
): Promise<void> {
  const { kv, clock, queues } = needs
  const { state } = queue
  if (at !== null) {
    wakeBy(state, at)
    state.idleSince = Number.POSITIVE_INFINITY
    return
  }
  if (queue.known.size > 0 || state.reserved > 0) {
    state.idleSince = Number.POSITIVE_INFINITY
    wakeBy(state, clock.now() + IDLE_MS)
    return
  }
  state.idleSince = Math.min(state.idleSince, clock.monotonic())
  if (clock.monotonic() - state.idleSince < IDLE_MS) {
    wakeBy(state, clock.now() + IDLE_MS)
    return
  }
  state.leaving = true
  try {
    // Held back, by a pause: looked at again when that ends, or when nobody told of it.
    if (!(await isEmpty(kv, queue))) {
      wakeBy(state, clock.now() + IDLE_MS)
      return
    }
    const check = [[nextKey(queue.id), entryVersion(state)] as const]
    const [dropped] = await kv.commit([{ scope: shardScope(queue.shard), check, drop: [nextKey(queue.id)] }])
    if (dropped === true && queue.known.size === 0 && state.holding !== 'again') queues.delete(queue.id)
  } finally {
    state.leaving = false
  }
}
