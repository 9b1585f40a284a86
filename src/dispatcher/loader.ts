// Brings into memory what is due: which webhooks of a shard have something, and as much of each as is sent next.

import type { Kv } from '../kv/kv.ts'
import type { Clock } from '../lib/clock.ts'
import { lookAt, rest } from './due-index.ts'
import type { Subscriptions } from './subscriptions.ts'
import { dropUnsendable, failPending, pendingOf, purgeQueue } from './sweep.ts'
import { loadQueue, readStandingOf, refreshQueue, type WebhookQueue, wantsMore } from './webhook-queue.ts'

export interface LoaderNeeds {
  readonly kv: Pick<Kv, 'get' | 'scan' | 'commit' | 'position'>
  readonly clock: Clock
  readonly subscriptions: Subscriptions
  /** Deliveries that may wait per webhook; the oldest fail when there are more. */
  readonly backlogMax: number
  readonly lanes: Map<string, WebhookQueue>
  readonly isHeld: (shard: number) => boolean
  readonly onReady: (lane: WebhookQueue) => void
  readonly onGone: (lane: WebhookQueue) => void
  readonly onOverflow: (webhookId: string, count: number) => void
  readonly onFailed: (error: unknown) => void
}

export interface Loader {
  look(shard: number): Promise<void>
  /** Something is due that is not in memory: read now when there is room for it, else when there is. */
  loadMore(lane: WebhookQueue): void
  /** Reads in any case, also whether the webhook may be called; never rejects. */
  load(lane: WebhookQueue): Promise<void>
}

const RETRY_MS = 500
const SAVING_MS = 20

export function openLoader(needs: LoaderNeeds): Loader {
  const { kv, clock, subscriptions, backlogMax, lanes, isHeld } = needs

  async function look(shard: number): Promise<void> {
    for (const lane of await lookAt(kv, lanes, shard)) if (lane.wakeAt <= clock.now()) loadMore(lane)
  }

  function loadMore(lane: WebhookQueue): void {
    lane.complete = false
    if (lane.loading) lane.again = true
    else if (wantsMore(lane) && lane.pace.openUntil <= clock.monotonic()) void load(lane)
  }

  async function load(lane: WebhookQueue): Promise<void> {
    lane.again = true
    lane.complete = false
    if (lane.loading) return
    lane.loading = true
    try {
      while (lane.again && isHeld(lane.shard)) {
        lane.again = false
        await loadOnce(lane)
      }
    } catch (error) {
      needs.onFailed(error)
      lane.wakeAt = clock.now() + RETRY_MS
    } finally {
      lane.loading = false
    }
  }

  async function loadOnce(lane: WebhookQueue): Promise<void> {
    await refreshQueue(subscriptions, lane)
    if (lane.status === 'gone') return remove(lane)
    lane.standing ??= await readStandingOf(kv, lane)
    if (lane.status === 'disabled') {
      for (let ended = 1; ended > 0; ) ended = await failPending(kv, lane, 'endpoint_disabled', clock.now())
    }
    if (!wantsMore(lane)) return
    await overflow(lane)
    const { unsendable, complete, nextAt } = await loadQueue(kv, lane, clock.now())
    await dropUnsendable(kv, lane, unsendable)
    if (lane.ready.length > 0) needs.onReady(lane)
    if (!complete) return
    lane.complete = !lane.again
    await rest({ kv, clock, lanes }, lane, nextAt)
  }

  async function overflow(lane: WebhookQueue): Promise<void> {
    for (;;) {
      const excess = (await pendingOf(kv, lane.id)) - backlogMax
      if (excess <= 0) return
      const count = await failPending(kv, lane, 'backlog_overflow', clock.now(), excess)
      if (count === 0) return
      needs.onOverflow(lane.id, count)
    }
  }

  async function remove(lane: WebhookQueue): Promise<void> {
    while (lane.saving) await clock.sleep(SAVING_MS)
    lane.outcomes.length = 0
    await purgeQueue(kv, lane)
    lanes.delete(lane.id)
    needs.onGone(lane)
  }

  return { look, loadMore, load }
}
