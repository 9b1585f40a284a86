// Sends what is due: a queue per webhook, taken in turns, so that none waits behind another; each at the pace its receiver bears,
// those that are slow or down together in a small part of the places.

import { type Bus, pollEveryMs } from '../bus/bus.ts'
import type { RandomBytes } from '../domain/ids.ts'
import type { Kv } from '../kv/kv.ts'
import { type Clock, nextBeat } from '../lib/clock.ts'
import type { Log } from '../log/log.ts'
import { type Attempt, NO_HEALTH, shardOf } from '../records/deliveries.ts'
import { onHint } from '../records/hints.ts'
import { type Attempts, attemptAt } from './attempt.ts'
import { type Backlog, backlogOf } from './backlog.ts'
import { closeCircuit, isSlow, recordAttempt, roomIn } from './circuit-breaker.ts'
import { disableWebhook, type Failing, failingOf } from './disable.ts'
import { isAwake } from './due-index.ts'
import { type FailureCode, isOutage } from './failure.ts'
import type { Handover } from './handover.ts'
import { openLoader } from './loader.ts'
import { EXTEND_EVERY_MS, extendPayloadTtls, payloadUntilOf } from './payload-ttl.ts'
import { giveBack, isComplete, wakeBy } from './queue-state.ts'
import { saveOutcomes } from './save.ts'
import { afterAttempt, healthAfter } from './schedule.ts'
import { isSlackQueue } from './slack.ts'
import type { Subscriptions } from './subscriptions.ts'
import { handOver, type Job, openWebhookQueue, refreshQueue, release, type WebhookQueue } from './webhook-queue.ts'

export interface SenderNeeds {
  readonly log: Pick<Log, 'append'>
  readonly kv: Pick<Kv, 'get' | 'scan' | 'commit' | 'position'>
  readonly bus: Bus
  readonly clock: Clock
  readonly random: RandomBytes
  readonly attempts: Attempts
  readonly subscriptions: Subscriptions
  /** Attempts of this process under way at once. */
  readonly inFlightMax: number
  /** Deliveries that may wait per webhook; the oldest fail when there are more. */
  readonly backlogMax: number
  readonly report: SenderReport
}

export interface SenderReport {
  attempted(trigger: Attempt['trigger'], error: string | null, durationMs: number): void
  ended(status: 'delivered' | 'failed'): void
  /** Gave way to newer ones. */
  overflowed(webhookId: string, count: number): void
  /** Half of the time to the end is over, or all of it. */
  failing(webhookId: string, what: 'warned' | 'disabled', about: Failing): void
  inFlight(count: number): void
  failed(error: unknown): void
}

export interface Sender extends Handover {
  /** Of the webhooks that have something. */
  backlog(): Promise<Backlog>
  /** Sends what webhooks of this shard have due, until `signal` aborts. */
  hold(shard: number, signal: AbortSignal): Promise<void>
}

const TICK_MS = 20
const QUIET_MS = 1_000
const POLL_MS = 1_000
const RETRY_MS = 500
/** Outcomes are gathered for so long: of what a burst brings each queue has one commit, and the sending of the rest comes first. */
const SAVE_AFTER_MS = 50
/** What is known of a webhook is read again so often even when nobody says that it changed. */
const REFRESH_MS = 1_000
const SPOILED_MS = 30_000
/** Not while everything starts. */
const EXTEND_FIRST_MS = 600_000
const LET_GO_MS = 2_000
/** Those that cannot go now are not all asked each time; they come round. */
const REFUSED_MAX = 64
/** Of all places, those that slow receivers and such that are down may take together. */
const SLOW_SHARE = 0.2

export function openSender(needs: SenderNeeds): Sender {
  const { kv, clock, attempts, subscriptions, inFlightMax, backlogMax, report } = needs
  const pollMs = pollEveryMs(needs.bus, POLL_MS)
  const queues = new Map<string, WebhookQueue>()
  /** Those with something ready that may be sent, in turns. */
  const waitingQueues = new Set<WebhookQueue>()
  const unsaved = new Set<WebhookQueue>()
  let saving = false
  const held = new Map<number, AbortSignal>()
  const polledAt = new Map<number, number>()
  const isHeld = (shard: number): boolean => held.get(shard)?.aborted === false
  /** Shards whose index has something new. */
  const unseen = new Set<number>()
  let quiet = new AbortController()
  let inFlight = 0
  let slowInFlight = 0

  const { look, load, loadMore } = openLoader({
    kv,
    clock,
    subscriptions,
    backlogMax,
    queues,
    isHeld,
    onReady(queue) {
      waitingQueues.add(queue)
      pump()
    },
    onGone: (queue) => waitingQueues.delete(queue),
    onOverflow: report.overflowed,
    onFailed: report.failed,
  })

  onHint(needs.bus, 'deliveries.due', ({ shard, webhookIds }) => {
    if (!held.has(shard)) return
    for (const id of webhookIds) {
      const queue = queues.get(id)
      if (queue === undefined) lookSoon(shard)
      else loadMore(queue)
    }
  })
  onHint(needs.bus, 'webhooks.changed', ({ id, status, workspace, env }) => {
    const shard = shardOf(id)
    if (!held.has(shard)) return
    const queue = queues.get(id) ?? openWebhookQueue(id, shard, workspace, env)
    // At once: what comes after this is not sent any more.
    queue.status = status
    if (status === 'gone') queue.ending.cancel()
    if (status === 'active') closeCircuit(queue.pace)
    queues.set(id, queue)
    quiet.abort()
    void load(queue)
  })

  const slowMax = Math.max(1, Math.floor(inFlightMax * SLOW_SHARE))

  function lookSoon(shard: number): void {
    unseen.add(shard)
    quiet.abort()
  }

  /** Begins attempts, one of each queue in turn, while there is room. */
  function pump(): void {
    const now = clock.monotonic()
    let refused = 0
    while (inFlight < inFlightMax && refused < Math.min(waitingQueues.size, REFUSED_MAX)) {
      const [queue] = waitingQueues as Set<WebhookQueue>
      if (queue === undefined) return
      waitingQueues.delete(queue)
      const slow = isSlow(queue.pace)
      if (queue.ready.length === 0 || roomIn(queue.pace, queue.inFlight, now) <= 0) {
        // It comes back when an attempt ends, or when its breaker lets one through.
        if (queue.pace.openUntil > now) wakeBy(queue.state, clock.now() + (queue.pace.openUntil - now))
        continue
      }
      const mayConnect = queue.webhook === null || attempts.hasRoom(queue.webhook.url)
      if (!mayConnect || (slow && slowInFlight >= slowMax)) {
        waitingQueues.add(queue)
        refused += 1
        continue
      }
      refused = 0
      const job = queue.ready.shift() as Job
      if (queue.ready.length > 0) waitingQueues.add(queue)
      void run(queue, job, slow)
    }
  }

  async function run(queue: WebhookQueue, job: Job, slow: boolean): Promise<void> {
    inFlight += 1
    queue.inFlight += 1
    if (slow) slowInFlight += 1
    try {
      const attempt = isHeld(queue.shard) ? await attemptAt(attempts, queue, job) : null
      if (attempt === null) release(queue, job)
      else settle(queue, job, attempt)
    } catch (error) {
      report.failed(error)
      release(queue, job)
      // Nothing that the receiver could help: not before somebody may have done something about it.
      queue.pace.openUntil = clock.monotonic() + SPOILED_MS
      queue.state.wakeAt = clock.now() + SPOILED_MS
    }
    inFlight -= 1
    queue.inFlight -= 1
    if (slow) slowInFlight -= 1
    if (queue.ready.length > 0) waitingQueues.add(queue)
    pump()
    if (queue.state.holding === 'partial') loadMore(queue)
  }

  function settle(queue: WebhookQueue, job: Job, attempt: Attempt): void {
    const { error, statusCode, durationMs, trigger } = attempt
    const after = afterAttempt(job.deliveryId, job.delivery, queue.webhook?.shape ?? 'B', attempt)
    const delivery = { ...after, payloadUntil: payloadUntilOf(job.payload, after, clock.now()) }
    const outage = error !== null && isOutage(error as FailureCode, statusCode)
    recordAttempt(queue.pace, { ok: error === null, outage, durationMs, now: clock.monotonic() })
    if (queue.pace.openUntil > clock.monotonic()) for (const waiting of queue.ready.splice(0)) release(queue, waiting)
    const { health, turn } = healthAfter(queue.standing?.health ?? NO_HEALTH, attempt, queue.webhook?.enabledAt ?? 0)
    if (queue.standing !== null) queue.standing.health = health
    report.attempted(trigger, error, durationMs)
    if (delivery.status !== 'pending' && job.delivery.status === 'pending') report.ended(delivery.status)
    if (turn === 'warn' && !isSlackQueue(queue.id)) report.failing(queue.id, 'warned', failingOf(queue))
    if (turn === 'disable' && !isSlackQueue(queue.id)) disable(queue)
    if (delivery.nextAttemptAt !== null) wakeBy(queue.state, delivery.nextAttemptAt)
    queue.outcomes.push({ job, delivery })
    unsaved.add(queue)
    if (!saving) void save()
  }

  function disable(queue: WebhookQueue): void {
    if (queue.disabling) return
    queue.disabling = true
    const failing = failingOf(queue)
    disableWebhook(needs, failing)
      .then(() => report.failing(queue.id, 'disabled', failing), report.failed)
      .finally(() => {
        queue.disabling = false
      })
  }

  /** One round trip for all that has come to an end since the last one began. */
  async function save(): Promise<void> {
    saving = true
    while (unsaved.size > 0) {
      await clock.sleep(SAVE_AFTER_MS)
      const some = [...unsaved].filter(({ status }) => status !== 'gone')
      unsaved.clear()
      for (const queue of some) queue.saving = true
      try {
        await saveOutcomes(kv, some, clock.now())
      } catch (error) {
        report.failed(error)
        if (held.size > 0) await clock.sleep(RETRY_MS)
      }
      for (const queue of some) {
        queue.saving = false
        if (queue.outcomes.length > 0 && held.has(queue.shard)) unsaved.add(queue)
        else if (!isComplete(queue.state)) loadMore(queue)
      }
    }
    saving = false
  }

  async function extendAllPayloadTtls(): Promise<void> {
    for (const { id, shard } of [...queues.values()]) if (isHeld(shard)) await extendPayloadTtls(kv, id, clock.now())
  }

  /** One for all shards, so that an idle process is not woken for each. */
  async function tick(): Promise<void> {
    let refreshAt = 0
    let extendAt = clock.now() + EXTEND_FIRST_MS
    while (held.size > 0) {
      const now = clock.now()
      report.inFlight(inFlight)
      for (const shard of held.keys()) {
        if (!unseen.has(shard) && (polledAt.get(shard) ?? 0) > clock.monotonic() - pollMs) continue
        polledAt.set(shard, clock.monotonic())
        unseen.delete(shard)
        look(shard).then(() => quiet.abort(), report.failed)
      }
      if (now >= extendAt) {
        extendAt = now + EXTEND_EVERY_MS
        extendAllPayloadTtls().catch(report.failed)
      }
      const isRefresh = clock.monotonic() >= refreshAt
      if (isRefresh) refreshAt = clock.monotonic() + REFRESH_MS
      for (const queue of queues.values()) {
        if (isRefresh && queue.inFlight > 0) refreshQueue(subscriptions, queue).catch(report.failed)
        if (queue.state.wakeAt > now) continue
        queue.state.wakeAt = Number.POSITIVE_INFINITY
        if (queue.ready.length > 0) waitingQueues.add(queue)
        void load(queue)
      }
      pump()
      quiet = new AbortController()
      const isBusy = waitingQueues.size + inFlight + unsaved.size + unseen.size > 0
      // Where there are queues, one of them may be due any moment.
      await (isBusy ? clock.sleep(TICK_MS) : nextBeat(clock, queues.size > 0 ? QUIET_MS : pollMs, quiet.signal))
    }
  }

  return {
    backlog: () => backlogOf(kv, queues.values(), clock.now()),

    async hold(shard, signal) {
      const isFirst = held.size === 0
      quiet.abort()
      held.set(shard, signal)
      polledAt.set(shard, Number.NEGATIVE_INFINITY)
      if (isFirst) void tick()
      if (!signal.aborted) await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))
      await letGo(shard)
    },

    reserve(webhookIds) {
      const mine = new Map<string, WebhookQueue>()
      for (const id of webhookIds) {
        const queue = queues.get(id)
        if (queue !== undefined && isHeld(queue.shard) && isAwake(queue)) mine.set(id, queue)
      }
      for (const queue of mine.values()) queue.state.reserved += 1
      return {
        isAwake: (id) => mine.has(id),
        done() {
          for (const queue of mine.values()) queue.state.reserved -= 1
        },
      }
    },

    offer(fresh, payloads) {
      for (const one of fresh) {
        const queue = queues.get(one.webhookId)
        if (queue === undefined) lookSoon(shardOf(one.webhookId))
        else if (queue.status === 'paused') giveBack(queue.state)
        else if (!handOver(queue, one, payloads.get(one.delivery.payloadId) ?? {})) loadMore(queue)
        else waitingQueues.add(queue)
      }
      pump()
    },
  }

  /** What is under way is finished and saved, as far as that goes quickly; nothing new is begun. */
  async function letGo(shard: number): Promise<void> {
    const mine = [...queues.values()].filter((queue) => queue.shard === shard)
    const until = clock.monotonic() + LET_GO_MS
    for (const queue of mine) waitingQueues.delete(queue)
    while (mine.some((queue) => queue.inFlight > 0 || queue.outcomes.length > 0) && clock.monotonic() < until)
      await clock.sleep(TICK_MS)
    for (const queue of mine) queue.ending.cancel()
    held.delete(shard)
    for (const queue of mine) queues.delete(queue.id)
  }
}
