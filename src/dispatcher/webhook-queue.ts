// The queue of one webhook in a sender: what is ready, what is under way, and how fast it may go. Reading more of it from the kv
// is here; when something may be sent is for the sender to say.

import type { Env } from '../domain/event.ts'
import type { WebhookStatus } from '../domain/webhook.ts'
import type { Kv, KvEntry, KvKey, Version } from '../kv/kv.ts'
import { type CancelSource, openCancel } from '../lib/cancel.ts'
import {
  DUE,
  DUE_MANUAL,
  deliveriesScope,
  deliveryKey,
  dueId,
  dueUntil,
  type Ended,
  HEALTH,
  type Health,
  NO_HEALTH,
  type Payload,
  readDueDeliveryId,
  readPayloads,
  SENDER_FENCE,
  type StoredDelivery,
} from '../records/deliveries.ts'
import type { StoredWebhook } from '../records/webhooks.ts'
import { newPace, type Pace } from './circuit-breaker.ts'
import { hasBodyFor } from './envelope.ts'
import type { NewDelivery } from './match.ts'
import { giveBack, isComplete, newQueueState, type QueueState } from './queue-state.ts'
import { isSlackQueue } from './slack.ts'
import type { Subscriptions } from './subscriptions.ts'

/** One attempt that is to be made. */
export interface Job {
  readonly deliveryId: string
  readonly due: KvKey
  readonly manual: boolean
  /** null: a follower of this process handed the delivery over, and the sender never read it. */
  readonly version: Version | null
  readonly delivery: StoredDelivery
  readonly payload: Payload
}

export interface AttemptOutcome {
  readonly job: Job
  readonly delivery: StoredDelivery
}

/** What the sender has read once of the records that only it writes. */
export interface QueueStanding {
  /** The guarded position that every write of outcomes moves on. */
  fence: number | null
  health: Health
  /** The health that the kv holds. */
  healthStored: Health
  /** The row that counts what ends just now, as it lies in the kv; null: the next one to be written is a new one. */
  tally: QueueTally | null
}

/** A row of deliveries that came to an end. */
export interface QueueTally extends Ended {
  readonly id: string
}

export interface WebhookQueue {
  readonly id: string
  readonly shard: number
  readonly workspace: string
  readonly env: Env
  readonly pace: Pace
  readonly ready: Job[]
  /** Due entries that are ready, under way or being saved, and the deliveries they are of. */
  readonly known: Set<string>
  readonly busy: Set<string>
  readonly outcomes: AttemptOutcome[]
  inFlight: number
  /** null: not read yet, and of a queue for Slack always. */
  webhook: StoredWebhook | null
  status: WebhookStatus | 'gone'
  /** null: not read yet. */
  standing: QueueStanding | null
  readonly state: QueueState
  saving: boolean
  disabling: boolean
  /** Ends what is under way when the webhook is deleted. */
  readonly ending: CancelSource
}

export function openWebhookQueue(id: string, shard: number, workspace: string, env: Env): WebhookQueue {
  return {
    id,
    shard,
    workspace,
    env,
    ending: openCancel(),
    pace: newPace(),
    ready: [],
    known: new Set(),
    busy: new Set(),
    outcomes: [],
    inFlight: 0,
    webhook: null,
    status: 'active',
    standing: null,
    state: newQueueState(),
    saving: false,
    disabling: false,
  }
}

/** Bodies in memory per webhook. */
const WINDOW = 64
const JOBS_BEFORE_MORE = 16
const HANDED_MAX = 256
export const wantsMore = (queue: WebhookQueue): boolean => queue.ready.length < JOBS_BEFORE_MORE

export interface Unsendable {
  readonly due: KvKey
  readonly deliveryId: string
  /** null: the delivery is gone. */
  readonly entry: KvEntry<StoredDelivery> | null
}

export interface LoadedDue {
  readonly added: number
  /** Deliveries that can never be sent: what was to be sent is gone. */
  readonly unsendable: readonly Unsendable[]
  /** The load looked at everything that is due. */
  readonly complete: boolean
  /** Then something more is due, as far as that was seen; null: never. */
  readonly nextAt: number | null
}

/** Finds out whether the webhook may be called at all. */
export async function refreshQueue(subscriptions: Subscriptions, queue: WebhookQueue): Promise<void> {
  if (isSlackQueue(queue.id)) return
  const tenant = await subscriptions.tenant(queue.workspace, queue.env)
  queue.webhook = tenant?.subscriptions.get(queue.id)?.webhook ?? null
  queue.status = queue.webhook?.status ?? 'gone'
  if (queue.status !== 'active') queue.ready.splice(0, queue.ready.length, ...queue.ready.filter(keptBy(queue)))
}

const keptBy = (queue: WebhookQueue) => (job: Job) => {
  if (job.manual && queue.status !== 'gone') return true
  release(queue, job)
  return false
}

/** Gives a job back: the next load finds it again in the kv. */
export function release(queue: WebhookQueue, { due, deliveryId }: Pick<Job, 'due' | 'deliveryId'>): void {
  giveBack(queue.state)
  forgetJob(queue, { due, deliveryId })
}

export function forgetJob(queue: WebhookQueue, { due, deliveryId }: Pick<Job, 'due' | 'deliveryId'>): void {
  queue.known.delete(dueName(due))
  queue.busy.delete(deliveryId)
}

const dueName = ([collection, id]: KvKey): string => `${collection}/${id}`

export async function readStandingOf(kv: Pick<Kv, 'get' | 'position'>, queue: WebhookQueue): Promise<QueueStanding> {
  const scope = deliveriesScope(queue.id)
  const [[stored], fence] = await Promise.all([kv.get<Health>(scope, [HEALTH]), kv.position(scope, SENDER_FENCE)])
  const health = stored?.value ?? NO_HEALTH
  return { fence, health, healthStored: health, tally: null }
}

/** Takes what was stored a moment ago without reading it; false when it has to wait its turn in the kv. */
export function handOver(queue: WebhookQueue, { id, delivery, webhook }: NewDelivery, payload: Payload): boolean {
  const mayTake =
    isComplete(queue.state) && queue.standing !== null && queue.status === 'active' && queue.pace.openUntil === 0
  if (!mayTake || queue.ready.length >= HANDED_MAX || queue.busy.has(id)) return false
  if (webhook !== null && (queue.webhook === null || webhook.version > queue.webhook.version)) queue.webhook = webhook
  const due: KvKey = [DUE, dueId(delivery.nextAttemptAt ?? 0, id)]
  queue.known.add(dueName(due))
  queue.busy.add(id)
  queue.ready.push({ deliveryId: id, due, manual: false, version: null, delivery, payload })
  return true
}

/** Reads what is due up to `nowMs` and not known yet, a window at a time. */
export async function loadQueue(kv: Pick<Kv, 'get' | 'scan'>, queue: WebhookQueue, nowMs: number): Promise<LoadedDue> {
  const scope = deliveriesScope(queue.id)
  const limit = WINDOW + queue.known.size
  const until = dueUntil(nowMs)
  const isActive = queue.status === 'active'
  const manual = await kv.scan(scope, DUE_MANUAL, { upTo: until, limit })
  const scheduled = isActive ? await kv.scan(scope, DUE, { upTo: until, limit }) : []
  // Very much may be due later: of that only the first matters.
  const [next] = isActive ? await kv.scan(scope, DUE, { after: until, limit: 1 }) : []
  const nextAt = next === undefined ? null : readDueDeliveryId(next.key[1]).at
  let complete = manual.length < limit && scheduled.length < limit
  const fresh: { readonly due: KvKey; readonly deliveryId: string }[] = []
  for (const { key } of [...manual, ...scheduled]) {
    const { deliveryId } = readDueDeliveryId(key[1])
    if (queue.known.has(dueName(key))) continue
    // One attempt at a time for one delivery: what is left out here is found again when that is over.
    if (queue.busy.has(deliveryId) || fresh.length === WINDOW) {
      complete = false
      continue
    }
    queue.busy.add(deliveryId)
    queue.known.add(dueName(key))
    fresh.push({ due: key, deliveryId })
  }
  try {
    const { jobs, unsendable } = await readJobs(kv, queue, fresh)
    for (const one of unsendable) forgetJob(queue, one)
    queue.ready.push(...jobs)
    return { added: jobs.length, unsendable, complete: complete && fresh.length < WINDOW, nextAt }
  } catch (error) {
    for (const one of fresh) forgetJob(queue, one)
    throw error
  }
}

async function readJobs(
  kv: Pick<Kv, 'get'>,
  queue: WebhookQueue,
  fresh: readonly { readonly due: KvKey; readonly deliveryId: string }[],
): Promise<{ readonly jobs: Job[]; readonly unsendable: Unsendable[] }> {
  const jobs: Job[] = []
  const unsendable: Unsendable[] = []
  if (fresh.length === 0) return { jobs, unsendable }
  const keys = fresh.map(({ deliveryId }) => deliveryKey(deliveryId))
  const found = await kv.get<StoredDelivery>(deliveriesScope(queue.id), keys)
  const payloads = await readPayloads(
    kv,
    found.flatMap((entry) => entry?.value ?? []),
  )
  for (const [i, { due, deliveryId }] of fresh.entries()) {
    const entry = found[i] ?? null
    const payload = payloads.get(entry?.value.payloadId ?? '')
    const manual = due[0] === DUE_MANUAL
    const isSendable = payload !== undefined && (queue.webhook === null || hasBodyFor(queue.webhook, payload))
    if (entry === null || !isSendable || (!manual && entry.value.status !== 'pending')) {
      unsendable.push({ due, deliveryId, entry })
    } else {
      jobs.push({ deliveryId, due, manual, version: entry.version, delivery: entry.value, payload })
    }
  }
  return { jobs, unsendable }
}

/** Returns whether no delivery waits, not even one that may not be sent now. */
export async function isEmpty(kv: Pick<Kv, 'scan'>, queue: WebhookQueue): Promise<boolean> {
  const scope = deliveriesScope(queue.id)
  const pages = await Promise.all([DUE, DUE_MANUAL].map((collection) => kv.scan(scope, collection, { limit: 1 })))
  return pages.every((page) => page.length === 0)
}
