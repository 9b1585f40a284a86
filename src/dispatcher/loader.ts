// Brings into memory what is due: which webhooks of a shard have something, and as much of each as is sent next.

import type { Kv } from '../kv/kv.ts'
import type { Clock } from '../lib/clock.ts'
import { lookAt, rest } from './due-index.ts'
import { beginLoad, endLoad, isLoading, missSomething, reachEnd } from './queue-state.ts'
import type { Subscriptions } from './subscriptions.ts'
import { endUnsendable, failPending, pendingOf, purgeQueue } from './sweep.ts'
import { loadQueue, readStandingOf, refreshQueue, type WebhookQueue, wantsMore } from './webhook-queue.ts'

export interface LoaderNeeds {
  readonly kv: Pick<Kv, 'get' | 'scan' | 'commit' | 'position'>
  readonly clock: Clock
  readonly subscriptions: Subscriptions
  /** Deliveries that may wait per webhook; the oldest fail when there are more. */
  readonly backlogMax: number
  readonly queues: Map<string, WebhookQueue>
  readonly isHeld: (shard: number) => boolean
  readonly onReady: (queue: WebhookQueue) => void
  readonly onGone: (queue: WebhookQueue) => void
  readonly onOverflow: (webhookId: string, count: number) => void
  readonly onFailed: (error: unknown) => void
}

export interface Loader {
  look(shard: number): Promise<void>
  /** Something is due that is not in memory: read now when there is room for it, else when there is. */
  loadMore(queue: WebhookQueue): void
  /** Reads in any case, also whether the webhook may be called; never rejects. */
  load(queue: WebhookQueue): Promise<void>
}

const RETRY_MS = 500
const SAVING_MS = 20

export function openLoader(needs: LoaderNeeds): Loader {
  const { kv, clock, subscriptions, backlogMax, queues, isHeld } = needs

  async function look(shard: number): Promise<void> {
    for (const queue of await lookAt(kv, queues, shard)) if (queue.state.wakeAt <= clock.now()) loadMore(queue)
  }

  function loadMore(queue: WebhookQueue): void {
    missSomething(queue.state)
    if (isLoading(queue.state) || !wantsMore(queue) || queue.pace.openUntil > clock.monotonic()) return
    void load(queue)
  }

  async function load(queue: WebhookQueue): Promise<void> {
    const { state } = queue
    missSomething(state)
    if (isLoading(state)) return
    try {
      do {
        beginLoad(state)
        if (isHeld(queue.shard)) await loadOnce(queue)
      } while (state.holding === 'again')
    } catch (error) {
      needs.onFailed(error)
      state.wakeAt = clock.now() + RETRY_MS
    } finally {
      endLoad(state)
    }
  }

  async function loadOnce(queue: WebhookQueue): Promise<void> {
    await refreshQueue(subscriptions, queue)
    if (queue.status === 'gone') return remove(queue)
    queue.standing ??= await readStandingOf(kv, queue)
    if (queue.status === 'disabled') {
      for (let ended = 1; ended > 0; ) ended = await failPending(kv, queue, 'endpoint_disabled', clock.now())
    }
    if (!wantsMore(queue)) return
    await overflow(queue)
    const { unsendable, complete, nextAt } = await loadQueue(kv, queue, clock.now())
    await endUnsendable(kv, queue, unsendable, clock.now())
    if (queue.ready.length > 0) needs.onReady(queue)
    if (!complete) return
    reachEnd(queue.state)
    await rest({ kv, clock, queues }, queue, nextAt)
  }

  async function overflow(queue: WebhookQueue): Promise<void> {
    for (;;) {
      const excess = (await pendingOf(kv, queue.id)) - backlogMax
      if (excess <= 0) return
      const count = await failPending(kv, queue, 'backlog_overflow', clock.now(), excess)
      if (count === 0) return
      needs.onOverflow(queue.id, count)
    }
  }

  async function remove(queue: WebhookQueue): Promise<void> {
    while (queue.saving) await clock.sleep(SAVING_MS)
    queue.outcomes.length = 0
    await purgeQueue(kv, queue)
    queues.delete(queue.id)
    needs.onGone(queue)
  }

  return { look, loadMore, load }
}
