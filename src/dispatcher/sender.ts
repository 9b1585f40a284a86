// Sends what is due: a queue per webhook, taken in turns, so that none waits behind another; each at the pace its receiver bears,
// those that are slow or down together in a small part of the places.

import type { Bus } from '../bus/bus.ts'
import type { RandomBytes } from '../domain/ids.ts'
import type { Kv } from '../kv/kv.ts'
import { type Clock, nextBeat } from '../lib/clock.ts'
import type { Log } from '../log/log.ts'
import { type Attempt, FAILED_KEPT_MS, NO_HEALTH, shardOf } from '../records/deliveries.ts'
import { onHint } from '../records/hints.ts'
import { type Attempts, attemptAt } from './attempt.ts'
import { closeCircuit, isSlow, recordAttempt, roomIn } from './circuit-breaker.ts'
import { disableWebhook, type Failing } from './disable.ts'
import { isAwake } from './due-index.ts'
import { type FailureCode, isOutage } from './failure.ts'
import type { Handover } from './handover.ts'
import { openLoader } from './loader.ts'
import { EXTEND_EVERY_MS, extendPayloadTtls } from './payload-ttl.ts'
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
  readonly courier: Attempts
  readonly subscriptions: Subscriptions
  /** Attempts of this process under way at once. */
  readonly inFlightMax: number
  /** Deliveries that may wait per webhook; the oldest fail when there are more. */
  readonly backlogMax: number
  readonly report: SenderReport
}

export interface SenderReport {
  attempted(trigger: Attempt['trigger'], error: string | null): void
  ended(status: 'delivered' | 'failed'): void
  /** Gave way to newer ones. */
  overflowed(webhookId: string, count: number): void
  /** Half of the time to the end is over, or all of it. */
  failing(webhookId: string, what: 'warned' | 'disabled', about: Failing): void
  inFlight(count: number): void
  failed(error: unknown): void
}

export interface Sender extends Handover {
  /** Sends what webhooks of this shard have due, until `signal` aborts. */
  hold(shard: number, signal: AbortSignal): Promise<void>
}

const TICK_MS = 20
const QUIET_MS = 250
const POLL_MS = 1_000
const RETRY_MS = 500
/** Outcomes are gathered for so long: of what a burst brings each lane has one commit, and the sending of the rest comes first. */
const SAVE_AFTER_MS = 50
/** What is known of a webhook is read again so often even when nobody says that it changed. */
const REFRESH_MS = 1_000
const SPOILED_MS = 30_000
/** Not while everything starts. */
const KEEP_FIRST_MS = 600_000
const LET_GO_MS = 2_000
/** Those that cannot go now are not all asked each time; they come round. */
const REFUSED_MAX = 64
/** Of all places, those that slow receivers and such that are down may take together. */
const SLOW_SHARE = 0.2

const failingOf = ({ id, workspace, env, standing }: WebhookQueue): Failing => ({
  id,
  workspace,
  env,
  failingSince: standing?.health.failingSince ?? 0,
})

export function openSender(needs: SenderNeeds): Sender {
  const { kv, clock, courier, subscriptions, inFlightMax, backlogMax, report } = needs
  const lanes = new Map<string, WebhookQueue>()
  /** Those with something ready that may be sent, in turns. */
  const turns = new Set<WebhookQueue>()
  /** Those with outcomes that are not saved. */
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
    lanes,
    isHeld,
    onReady(lane) {
      turns.add(lane)
      pump()
    },
    onGone: (lane) => turns.delete(lane),
    onOverflow: report.overflowed,
    onFailed: report.failed,
  })

  onHint(needs.bus, 'deliveries.due', ({ shard, webhookIds }) => {
    if (!held.has(shard)) return
    for (const id of webhookIds) {
      const lane = lanes.get(id)
      if (lane === undefined) lookSoon(shard)
      else loadMore(lane)
    }
  })
  onHint(needs.bus, 'webhooks.changed', ({ id, status, workspace, env }) => {
    const shard = shardOf(id)
    if (!held.has(shard)) return
    const lane = lanes.get(id) ?? openWebhookQueue(id, shard, workspace, env)
    // At once: what comes after this is not sent any more.
    lane.status = status
    if (status === 'gone') lane.ending.cancel()
    if (status === 'active') closeCircuit(lane.pace)
    lanes.set(id, lane)
    void load(lane)
  })

  const slowMax = Math.max(1, Math.floor(inFlightMax * SLOW_SHARE))

  function lookSoon(shard: number): void {
    unseen.add(shard)
    quiet.abort()
  }

  /** Begins attempts, one of each lane in turn, while there is room. */
  function pump(): void {
    const now = clock.monotonic()
    let refused = 0
    while (inFlight < inFlightMax && refused < Math.min(turns.size, REFUSED_MAX)) {
      const [lane] = turns as Set<WebhookQueue>
      if (lane === undefined) return
      turns.delete(lane)
      const slow = isSlow(lane.pace)
      if (lane.ready.length === 0 || roomIn(lane.pace, lane.inFlight, now) <= 0) {
        // It comes back when an attempt ends, or when its breaker lets one through.
        if (lane.pace.openUntil > now) lane.wakeAt = Math.min(lane.wakeAt, clock.now() + (lane.pace.openUntil - now))
        continue
      }
      const mayConnect = lane.webhook === null || courier.hasRoom(lane.webhook.url)
      if (!mayConnect || (slow && slowInFlight >= slowMax)) {
        turns.add(lane)
        refused += 1
        continue
      }
      refused = 0
      const job = lane.ready.shift() as Job
      if (lane.ready.length > 0) turns.add(lane)
      void run(lane, job, slow)
    }
  }

  async function run(lane: WebhookQueue, job: Job, slow: boolean): Promise<void> {
    inFlight += 1
    lane.inFlight += 1
    if (slow) slowInFlight += 1
    try {
      const attempt = isHeld(lane.shard) ? await attemptAt(courier, lane, job) : null
      if (attempt === null) release(lane, job)
      else settle(lane, job, attempt)
    } catch (error) {
      report.failed(error)
      release(lane, job)
      // Nothing that the receiver could help: not before somebody may have done something about it.
      lane.pace.openUntil = clock.monotonic() + SPOILED_MS
      lane.wakeAt = clock.now() + SPOILED_MS
    }
    inFlight -= 1
    lane.inFlight -= 1
    if (slow) slowInFlight -= 1
    if (lane.ready.length > 0) turns.add(lane)
    pump()
    if (!lane.complete && !lane.loading) loadMore(lane)
  }

  function settle(lane: WebhookQueue, job: Job, attempt: Attempt): void {
    const { error, statusCode, durationMs, trigger } = attempt
    const after = afterAttempt(job.deliveryId, job.delivery, lane.webhook?.shape ?? 'B', attempt)
    const delivery = error === null ? after : { ...after, payloadUntil: clock.now() + FAILED_KEPT_MS }
    const outage = error !== null && isOutage(error as FailureCode, statusCode)
    recordAttempt(lane.pace, { ok: error === null, outage, durationMs, now: clock.monotonic() })
    if (lane.pace.openUntil > clock.monotonic()) for (const waiting of lane.ready.splice(0)) release(lane, waiting)
    const { health, turn } = healthAfter(lane.standing?.health ?? NO_HEALTH, attempt, lane.webhook?.enabledAt ?? 0)
    if (lane.standing !== null) lane.standing.health = health
    report.attempted(trigger, error)
    if (delivery.status !== 'pending' && job.delivery.status === 'pending') report.ended(delivery.status)
    if (turn === 'warn' && !isSlackQueue(lane.id)) report.failing(lane.id, 'warned', failingOf(lane))
    if (turn === 'disable' && !isSlackQueue(lane.id)) disable(lane)
    if (delivery.nextAttemptAt !== null) lane.wakeAt = Math.min(lane.wakeAt, delivery.nextAttemptAt)
    lane.outcomes.push({ job, delivery })
    unsaved.add(lane)
    if (!saving) void save()
  }

  function disable(lane: WebhookQueue): void {
    if (lane.disabling) return
    lane.disabling = true
    const failing = failingOf(lane)
    disableWebhook(needs, failing)
      .then(() => report.failing(lane.id, 'disabled', failing), report.failed)
      .finally(() => {
        lane.disabling = false
      })
  }

  /** One round trip for all that has come to an end since the last one began. */
  async function save(): Promise<void> {
    saving = true
    while (unsaved.size > 0) {
      await clock.sleep(SAVE_AFTER_MS)
      const some = [...unsaved].filter(({ status }) => status !== 'gone')
      unsaved.clear()
      for (const lane of some) lane.saving = true
      try {
        await saveOutcomes(kv, some, clock.now())
      } catch (error) {
        report.failed(error)
        if (held.size > 0) await clock.sleep(RETRY_MS)
      }
      for (const lane of some) {
        lane.saving = false
        if (lane.outcomes.length > 0 && held.has(lane.shard)) unsaved.add(lane)
        else if (!lane.complete) loadMore(lane)
      }
    }
    saving = false
  }

  async function keepAll(): Promise<void> {
    for (const { id, shard } of [...lanes.values()]) if (isHeld(shard)) await extendPayloadTtls(kv, id, clock.now())
  }

  /** One for all shards, so that an idle process is not woken for each. */
  async function tick(): Promise<void> {
    let refreshAt = 0
    let keepAt = clock.now() + KEEP_FIRST_MS
    while (held.size > 0) {
      const now = clock.now()
      report.inFlight(inFlight)
      for (const shard of held.keys()) {
        if (!unseen.has(shard) && (polledAt.get(shard) ?? 0) > clock.monotonic() - POLL_MS) continue
        polledAt.set(shard, clock.monotonic())
        unseen.delete(shard)
        look(shard).catch(report.failed)
      }
      if (now >= keepAt) {
        keepAt = now + EXTEND_EVERY_MS
        keepAll().catch(report.failed)
      }
      const isRefresh = clock.monotonic() >= refreshAt
      if (isRefresh) refreshAt = clock.monotonic() + REFRESH_MS
      for (const lane of lanes.values()) {
        if (isRefresh && lane.inFlight > 0) refreshQueue(subscriptions, lane).catch(report.failed)
        if (lane.wakeAt > now) continue
        lane.wakeAt = Number.POSITIVE_INFINITY
        if (lane.ready.length > 0) turns.add(lane)
        void load(lane)
      }
      pump()
      quiet = new AbortController()
      const isBusy = turns.size + inFlight + unsaved.size + unseen.size > 0
      await (isBusy ? clock.sleep(TICK_MS) : nextBeat(clock, QUIET_MS, quiet.signal))
    }
  }

  return {
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
        const lane = lanes.get(id)
        if (lane !== undefined && isHeld(lane.shard) && isAwake(lane)) mine.set(id, lane)
      }
      for (const lane of mine.values()) lane.reserved += 1
      return {
        isAwake: (id) => mine.has(id),
        done() {
          for (const lane of mine.values()) lane.reserved -= 1
        },
      }
    },

    offer(fresh, payloads) {
      for (const one of fresh) {
        const lane = lanes.get(one.webhookId)
        if (lane === undefined) lookSoon(shardOf(one.webhookId))
        else if (lane.status === 'paused') lane.complete = false
        else if (!handOver(lane, one, payloads.get(one.delivery.payloadId) ?? {})) loadMore(lane)
        else turns.add(lane)
      }
      pump()
    },
  }

  /** What is under way is finished and saved, as far as that goes quickly; nothing new is begun. */
  async function letGo(shard: number): Promise<void> {
    const mine = [...lanes.values()].filter((lane) => lane.shard === shard)
    const until = clock.monotonic() + LET_GO_MS
    for (const lane of mine) turns.delete(lane)
    while (mine.some((lane) => lane.inFlight > 0 || lane.outcomes.length > 0) && clock.monotonic() < until)
      await clock.sleep(TICK_MS)
    for (const lane of mine) lane.ending.cancel()
    held.delete(shard)
    for (const lane of mine) lanes.delete(lane.id)
  }
}
