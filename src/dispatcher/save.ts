// Writes what became of attempts: the delivery, what of it is due next, the standing of the webhook and its counts. The outcomes of
// many webhooks share one round trip, one commit for each, and hold only while no other sender writes for that webhook.

import type { Commit, Kv, KvKey, Put } from '../kv/kv.ts'
import {
  DUE,
  dayNumberOf,
  deliveriesScope,
  deliveryKey,
  dueId,
  type Ended,
  HEALTH,
  PAYLOAD_KEPT_MS,
  PENDING_DELIVERIES,
  putDelivery,
  putTally,
  SENDER_FENCE,
  STAT_DAYS,
  type StoredDelivery,
  statKey,
  tallyId,
} from '../records/deliveries.ts'
import { prolongPayloads, shortenCommits } from './payload-ttl.ts'
import {
  type AttemptOutcome,
  forgetJob,
  type QueueStanding,
  type QueueTally,
  readStandingOf,
  type WebhookQueue,
} from './webhook-queue.ts'

const SAVED_AT_ONCE = 256
/** Times of success are shown and decide nothing: they need not be written with every one of them. */
const TIMES_EVERY_MS = 1_000

interface Part {
  readonly queue: WebhookQueue
  readonly standing: QueueStanding
  readonly some: readonly AttemptOutcome[]
}

/** Saves some outcomes of each queue and takes them from it. Rejects with Unavailable, and then nothing is taken. */
export async function saveOutcomes(
  kv: Pick<Kv, 'get' | 'commit' | 'position'>,
  queues: readonly WebhookQueue[],
  nowMs: number,
): Promise<void> {
  const parts: Part[] = []
  for (const queue of queues) {
    queue.standing ??= await readStandingOf(kv, queue)
    parts.push({ queue, standing: queue.standing, some: queue.outcomes.slice(0, SAVED_AT_ONCE) })
  }
  const ended = parts.flatMap(({ some }) => some)
  const failing = ended.flatMap(({ job, delivery: { status } }) => (status === 'delivered' ? [] : [job.delivery]))
  await prolongPayloads(kv, failing, nowMs)
  const had = ended.filter(({ job, delivery }) => delivery.payloadUntil < job.delivery.payloadUntil)
  const shorten = await shortenCommits(
    kv,
    had.map(({ delivery }) => delivery),
    PAYLOAD_KEPT_MS,
  )
  const health = parts.map(healthToStore)
  const written = parts.map((part, i) => writeOf(part, part.some, health[i] ?? null, nowMs))
  // Until it is known what became of it, its row is not to be written over.
  for (const { standing } of parts) standing.tally = null
  const done = await kv.commit([...written.map(({ commit }) => commit), ...shorten])
  for (const [i, part] of parts.entries()) {
    if (done[i] !== true) await saveAgain(kv, part, nowMs)
    else moved(part.standing, health[i] ?? null, written[i]?.tally ?? null)
    const { queue, some } = part
    queue.outcomes.splice(0, some.length)
    for (const { job } of some) forgetJob(queue, job)
  }
}

function moved(standing: QueueStanding, stored: QueueStanding['health'] | null, tally: QueueTally | null): void {
  standing.fence = nextFence(standing)
  standing.tally = tally
  if (stored !== null) standing.healthStored = stored
}

const nextFence = ({ fence }: QueueStanding): number => (fence ?? 0) + 1

function healthToStore({ standing: { health, healthStored } }: Part) {
  const isNews =
    health.failingSince !== healthStored.failingSince ||
    health.warned !== healthStored.warned ||
    (health.lastAttemptAt ?? 0) >= (healthStored.lastAttemptAt ?? 0) + TIMES_EVERY_MS ||
    (health.lastDeliveryAt ?? 0) >= (healthStored.lastDeliveryAt ?? 0) + TIMES_EVERY_MS
  return isNews ? health : null
}

/** Named by the fence it is written under: nobody else can write under the same. */
function tallyWith(standing: QueueStanding, { delivered, failed }: Ended, nowMs: number): QueueTally | null {
  const { tally } = standing
  if (delivered + failed === 0) return tally
  if (!tally?.id.startsWith(tallyId(nowMs, '')))
    return { id: tallyId(nowMs, String(nextFence(standing))), delivered, failed }
  return { id: tally.id, delivered: tally.delivered + delivered, failed: tally.failed + failed }
}

function writeOf(
  { queue, standing }: Part,
  outcomes: readonly AttemptOutcome[],
  health: QueueStanding['health'] | null,
  nowMs: number,
): { readonly commit: Commit; readonly tally: QueueTally | null } {
  const put: Put[] = []
  const drop: KvKey[] = []
  const check: [KvKey, number][] = []
  const counts = { delivered: 0, failed: 0 }
  for (const { job, delivery } of outcomes) {
    put.push(putDelivery(job.deliveryId, delivery))
    drop.push(job.due)
    if (job.version !== null) check.push([deliveryKey(job.deliveryId), job.version])
    const before = job.delivery
    const wasDue = before.nextAttemptAt
    if (job.manual && wasDue !== null && wasDue !== delivery.nextAttemptAt) {
      drop.push([DUE, dueId(wasDue, job.deliveryId)])
    }
    if (delivery.nextAttemptAt !== null && delivery.nextAttemptAt !== wasDue) {
      put.push({ key: [DUE, dueId(delivery.nextAttemptAt, job.deliveryId)], value: true })
    }
    if (before.status === 'pending' && delivery.status !== 'pending') counts[delivery.status] += 1
  }
  if (health !== null) put.push({ key: HEALTH, value: health })
  const day = dayNumberOf(nowMs)
  const statuses = (['delivered', 'failed'] as const).filter((status) => counts[status] > 0)
  const ended = counts.delivered + counts.failed
  const tally = tallyWith(standing, counts, nowMs)
  if (ended > 0 && tally !== null) put.push(putTally(tally.id, tally))
  // Once in a while is enough for what nobody counts any more.
  const old = health === null ? [] : statuses.map((status) => statKey(day - STAT_DAYS - 1, status))
  const commit = {
    scope: deliveriesScope(queue.id),
    guard: { source: SENDER_FENCE, expect: standing.fence, next: nextFence(standing) },
    check,
    put,
    drop: [...drop, ...old],
    add: [
      ...statuses.map((status) => [statKey(day, status), counts[status]] as const),
      ...(ended === 0 ? [] : [[PENDING_DELIVERIES, -ended] as const]),
    ],
  }
  return { commit, tally }
}

/** Somebody else wrote for this webhook, or one of the deliveries: each is compared with what is there, and written by itself. */
async function saveAgain(kv: Pick<Kv, 'get' | 'commit' | 'position'>, part: Part, nowMs: number): Promise<void> {
  const { queue, standing, some } = part
  const scope = deliveriesScope(queue.id)
  standing.fence = (await readStandingOf(kv, queue)).fence
  const found = await kv.get<StoredDelivery>(
    scope,
    some.map(({ job }) => deliveryKey(job.deliveryId)),
  )
  for (const [i, { job, delivery }] of some.entries()) {
    const entry = found[i]
    const isNews = entry && entry.value.attemptsMade < delivery.attemptsMade
    const isOpen = entry?.value.status === 'pending' || job.manual
    if (isNews && isOpen) {
      const outcome = { delivery, job: { ...job, version: entry.version, delivery: entry.value } }
      const { commit, tally } = writeOf(part, [outcome], standing.health, nowMs)
      standing.tally = null
      const [done] = await kv.commit([commit])
      if (done === true) {
        moved(standing, standing.health, tally)
        continue
      }
      standing.fence = (await readStandingOf(kv, queue)).fence
    }
    // What is there is the truth, and says itself when it is due.
    if (entry?.value.nextAttemptAt !== job.delivery.nextAttemptAt || job.manual) {
      await kv.commit([{ scope, drop: [job.due] }])
    }
  }
}
