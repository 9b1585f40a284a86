// Senders on a real kv with receivers that are functions and a clock that can leap: queues, schedules, the end of a webhook.

import { setMaxListeners } from 'node:events'
import t, { type Test } from 'tap'
import type { Attempts } from '../../src/dispatcher/attempt.ts'
import type { OutboxEntries } from '../../src/dispatcher/match.ts'
import { outboxEntriesOf } from '../../src/dispatcher/match.ts'
import { storeOutbox } from '../../src/dispatcher/outbox.ts'
import { sampleOf } from '../../src/dispatcher/samples.ts'
import { openSender } from '../../src/dispatcher/sender.ts'
import { slackNotices } from '../../src/dispatcher/slack.ts'
import { openSubscriptions } from '../../src/dispatcher/subscriptions.ts'
import { pendingOf } from '../../src/dispatcher/sweep.ts'
import type { Alert } from '../../src/domain/alert.ts'
import type { DecidedItem } from '../../src/events/packed-items.ts'
import { openLmdbKv } from '../../src/kv/lmdb.ts'
import type { Cancel } from '../../src/lib/cancel.ts'
import { type Clock, systemClock } from '../../src/lib/clock.ts'
import { must } from '../../src/lib/must.ts'
import { openAlertMetrics } from '../../src/reads/alert-metrics.ts'
import {
  type Attempt,
  deliveriesScope,
  payloadKey,
  readDeliveries,
  readStanding,
  SHARDS,
} from '../../src/records/deliveries.ts'
import { ERASED, erasedId } from '../../src/records/erasures.ts'
import { publishHint } from '../../src/records/hints.ts'
import { readWebhook } from '../../src/records/webhooks.ts'
import { eventually } from '../helpers/client.ts'
import { createWorkspace, openPorts, prepare, random, startOwner, startSubmit } from '../helpers/control-plane.ts'
import { temporaryFolder } from '../helpers/server.ts'

const HOUR = 3_600_000
const BACKLOG_MAX = 100
const ERASED_ONE = 'pv_00000000000000000002'
const ALL = { holds: () => true }

/** What a receiver answers: null hangs until nobody waits any more. */
type Answers = (webhookId: string, n: number) => number | null

async function open(t: Test, answers: Answers, shape: 'A' | 'B' = 'B') {
  let leapMs = 0
  const clock: Clock = { ...systemClock, now: () => systemClock.now() + leapMs }
  const ports = { ...(await openPorts(t)), kv: await openLmdbKv({ path: temporaryFolder(), clock }) }
  await prepare(ports)
  startOwner(t, ports)
  const submit = startSubmit(t, ports)
  await submit(createWorkspace('ws_1'))
  const sent: { readonly to: string; readonly body: string; readonly at: number; readonly trigger: string }[] = []
  async function attempt(to: string, body: Buffer, trigger: Attempt['trigger'], n: number, cancel: Cancel) {
    sent.push({ to, body: body.toString('utf8'), at: clock.now(), trigger })
    const statusCode = answers(to, n)
    const startedAt = clock.now()
    if (statusCode === null) {
      await new Promise<void>((resolve) => cancel.whenCancelled(resolve))
      return null
    }
    await systemClock.sleep(1)
    const error = statusCode < 300 ? null : 'http_status'
    return { n, trigger, startedAt, durationMs: 1, statusCode, error }
  }
  const attempts: Attempts = {
    hasRoom: () => true,
    deliver: (webhook, { body, trigger, n }, cancel) => attempt(webhook.id, body, trigger, n, cancel),
    deliverToSlack: (url, body, { trigger, n }, cancel) => attempt(url, body, trigger, n, cancel),
  }
  const subscriptions = openSubscriptions(ports.kv)
  const failing: string[] = []
  const overflowed: number[] = []
  const failed = (error: unknown) => t.fail(`nothing may fail: ${(error as Error).stack}`)
  const report = {
    attempted() {},
    ended() {},
    overflowed: (_: string, count: number) => overflowed.push(count),
    inFlight() {},
    failing: (_: string, what: string) => failing.push(what),
    failed,
  }
  function start() {
    const sender = openSender({
      ...ports,
      clock,
      random,
      attempts,
      subscriptions,
      inFlightMax: 64,
      backlogMax: BACKLOG_MAX,
      report,
    })
    const stopping = new AbortController()
    setMaxListeners(0, stopping.signal)
    const over = Promise.all(Array.from({ length: SHARDS }, (_, shard) => sender.hold(shard, stopping.signal)))
    return async () => {
      stopping.abort()
      await over
    }
  }
  const webhook = async (n: number) => {
    const id = `${shape === 'A' ? 'whk' : 'wh'}_${String(n).padStart(20, '0')}`
    const fields = { url: 'https://shop.example/', events: [shape === 'A' ? 'identification' : '*'], filters: null }
    const data = { id, shape, ...fields, description: null, status: 'active', sealed: 'x', webhooksMax: 100 } as const
    const made = await submit({ type: 'webhook.create', workspace: 'ws_1', env: 'live', actor: 'test', data })
    t.ok(made.ok)
    return id
  }
  const store = async (told: OutboxEntries) => {
    const { woken } = await storeOutbox(ports.kv, told, clock.now())
    for (const [shard, ids] of woken) {
      publishHint(ports.bus, 'deliveries.due', { shard, webhookIds: [...ids] })
    }
  }
  const happen = async (name: string, visitorId: string | null = null) => {
    const told: OutboxEntries = { payloads: [], deliveries: [] }
    const tenant = must(await subscriptions.tenant('ws_1', 'live'))
    const found = { occurrence: sampleOf('identification.complete', 1_000_000, name), verdict: null, ruleId: null }
    outboxEntriesOf(told, tenant, { ...found, botDetected: null }, { payloadAt: 'p/0', nowMs: clock.now(), visitorId })
    await store(told)
    return told
  }
  const unused = () => Promise.reject(new Error('deliveries are not asked for there'))
  const measure = openAlertMetrics({ ...ports, clickhouse: { query: unused }, clock, partitions: 1 })
  /** Of the last while, over all webhooks. */
  const failureRate = (windowSeconds: number) => {
    const alert: Partial<Alert> = { metric: 'webhook_failure_rate', filters: {}, windowSeconds }
    return measure('ws_1', 'live', alert as Alert, clock.now())
  }
  const deliveriesOf = async (id: string) => (await readDeliveries(ports.kv, id, ALL, 100, null)).deliveries
  const statuses = async (id: string) => (await deliveriesOf(id)).map(({ delivery }) => delivery.status)
  return {
    ...ports,
    sent,
    failing,
    overflowed,
    start,
    webhook,
    happen,
    store,
    submit,
    deliveriesOf,
    statuses,
    failureRate,
    leap(ms: number) {
      leapMs += ms
    },
  }
}

t.test('what is stored twice is delivered once', async (t) => {
  const { start, webhook, happen, store, sent, statuses } = await open(t, () => 200)
  const id = await webhook(1)
  const told = await happen('one')
  await store(told)
  const stop = start()
  await eventually(
    () => statuses(id),
    (all) => all[0] === 'delivered',
  )
  await store(told)
  await systemClock.sleep(300)
  t.equal(sent.length, 1)
  await stop()
})

t.test('a delivery goes through its schedule, over restarts, and then has failed', async (t) => {
  const { start, webhook, happen, sent, leap, deliveriesOf } = await open(t, () => 500)
  const id = await webhook(1)
  await happen('one')
  const tries = (n: number) =>
    eventually(
      () => deliveriesOf(id),
      ([one]) => one?.delivery.attemptsMade === n,
    )
  let stop = start()
  await tries(1)
  await stop()
  leap(4 * 60_000)
  stop = start()
  await systemClock.sleep(500)
  t.equal(sent.length, 1, 'never early')
  leap(60_000 + 15_000)
  await tries(2)
  t.ok((sent[1]?.at ?? 0) - (sent[0]?.at ?? 0) >= 5 * 60_000, 'nor a second early')
  leap(30 * 60_000 + 15_000)
  const [last] = await tries(3)
  t.match(last?.delivery, { status: 'failed', nextAttemptAt: null, tries: 3 })
  leap(24 * HOUR)
  await systemClock.sleep(300)
  t.equal(sent.length, 3)
  t.equal(new Set(sent.map(({ body }) => body)).size, 1, 'the same bytes every time')
  await stop()
})

t.test('a delivered body goes after three days, unless others are told by it', async (t) => {
  const { kv, start, webhook, happen, leap, statuses } = await open(t, () => 200)
  const bodies = async () => (await kv.scan('p/0', 'payload', { limit: 10 })).map(({ key }) => key[1])
  const first = await webhook(1)
  const stop = start()
  const alone = await happen('alone')
  const delivered = (id: string, count: number) =>
    eventually(
      () => statuses(id),
      (all) => all.length === count && all.every((one) => one === 'delivered'),
    )
  await delivered(first, 1)
  const second = await webhook(2)
  const both = await happen('both')
  await delivered(first, 2)
  await delivered(second, 1)
  await stop()
  t.equal((await bodies()).length, 2)
  leap(73 * HOUR)
  t.same(await bodies(), [both.payloads[0]?.id])
  t.not(alone.payloads[0]?.id, both.payloads[0]?.id)
})

t.test(
  'a delivery whose body is gone has failed and says so; one about an erased visitor is gone with it',
  async (t) => {
    const { kv, start, webhook, happen, sent, deliveriesOf } = await open(t, () => 200)
    const id = await webhook(1)
    const VISITOR = 'pv_00000000000000000001'
    for (const { payloads } of [await happen('one'), await happen('two', VISITOR), await happen('three', ERASED_ONE)]) {
      await kv.commit([{ scope: 'p/0', drop: payloads.map((one) => payloadKey(one.id)) }])
    }
    const tombstone = { erasureId: 'era_1', at: 1 }
    const put = [{ key: [ERASED, erasedId('ws_1', 'live', ERASED_ONE)] as const, value: tombstone }]
    await kv.commit([{ scope: 'p/0', put }])
    const stop = start()
    const all = await eventually(
      () => deliveriesOf(id),
      (some) => some.length === 2 && some.every(({ delivery }) => delivery.status === 'failed'),
    )
    t.equal(all.length, 2)
    t.ok(all.every(({ delivery }) => delivery.reason === 'body_expired' && delivery.nextAttemptAt === null))
    t.equal(await pendingOf(kv, id), 0)
    t.match(await readStanding(kv, id, systemClock.now()), { successRate: 0 })
    t.equal(sent.length, 0)
    await stop()
  },
)

t.test('a receiver that hangs takes places from nobody', async (t) => {
  const hanging = 'wh_00000000000000000000'
  const { start, webhook, happen, sent, statuses } = await open(t, (id) => (id === hanging ? null : 200))
  const ids = []
  for (let n = 0; n < 6; n++) ids.push(await webhook(n))
  const stop = start()
  for (let n = 0; n < 60; n++) await happen(`event ${n}`)
  for (const id of ids.slice(1)) {
    const all = await eventually(
      () => statuses(id),
      (some) => some.length === 60 && some.every((s) => s === 'delivered'),
    )
    t.equal(all.length, 60)
  }
  const held = await eventually(
    async () => sent.filter(({ to }) => to === hanging).length,
    (count) => count >= 32,
  )
  t.equal(held, 32, 'no more at once than one receiver may have')
  t.ok((await statuses(hanging)).every((status) => status === 'pending'))
  await stop()
})

t.test('the failure rate of a window counts what ended in it, whoever sent it, and nothing before', async (t) => {
  const failing = 'wh_00000000000000000001'
  const { start, webhook, happen, leap, statuses, deliveriesOf, failureRate } = await open(t, (id) =>
    id === failing ? 410 : 200,
  )
  const [good, bad] = [await webhook(0), await webhook(1)]
  t.equal(bad, failing)
  const tries = (n: number) =>
    eventually(
      () => deliveriesOf(bad),
      ([one]) => one?.delivery.attemptsMade === n,
    )
  const delivered = () =>
    eventually(
      () => statuses(good),
      (all) => all.every((one) => one === 'delivered'),
    )
  let stop = start()
  await happen('one')
  await delivered()
  // A receiver that fails is tried three times, the last time after 35 minutes.
  await tries(1)
  leap(5 * 60_000 + 15_000)
  await tries(2)
  leap(30 * 60_000 + 15_000)
  await tries(3)
  t.same(await failureRate(60), { value: 1, events: 1 }, 'what was delivered half an hour ago is out of the window')
  t.same(await failureRate(3_600), { value: 0.5, events: 2 })
  await stop()
  stop = start()
  await happen('two')
  await delivered()
  t.same(await failureRate(60), { value: 0.5, events: 2 }, 'of two senders')
  leap(3 * 60_000)
  t.same(await failureRate(60), { value: 0, events: 0 })
  t.same(await failureRate(300), { value: 0.5, events: 2 })
  t.same(await failureRate(86_400), { value: 1 / 3, events: 3 })
  await stop()
})

t.test('a webhook that fails for a whole day is disabled, and what waited for it has failed', async (t) => {
  const context = await open(t, () => 500, 'A')
  const { kv, start, webhook, happen, leap, failing, submit, deliveriesOf } = context
  const id = await webhook(1)
  const stop = start()
  await happen('first')
  await eventually(
    () => deliveriesOf(id),
    ([one]) => one?.delivery.attemptsMade === 1,
  )
  leap(24 * HOUR - 60_000)
  await happen('second')
  await eventually(
    () => deliveriesOf(id),
    (all) => all.every(({ delivery }) => delivery.attemptsMade > 0),
  )
  t.equal((await readWebhook(kv, 'ws_1', 'live', id))?.status, 'active', 'a minute is missing')
  t.same(failing, ['warned'])
  leap(61_000)
  await happen('third')
  const ended = await eventually(
    () => readWebhook(kv, 'ws_1', 'live', id),
    (now) => now?.status === 'disabled',
  )
  t.match(ended, { status: 'disabled', disabledReason: 'failing_24h' })
  const all = await eventually(
    () => deliveriesOf(id),
    (some) => some.every(({ delivery }) => delivery.status === 'failed'),
  )
  t.ok(all.every(({ delivery }) => delivery.status === 'failed' && delivery.reason === 'endpoint_disabled'))
  t.equal((await happen('fourth')).deliveries.length, 0, 'nothing is queued for it any more')
  const data = { id, changes: { status: 'active' } } as const
  t.ok((await submit({ type: 'webhook.update', workspace: 'ws_1', env: 'live', actor: 'test', data })).ok)
  await happen('fifth')
  await eventually(
    () => deliveriesOf(id),
    (some) => some.length === 4 && some.every(({ delivery }) => delivery.attemptsMade > 0),
  )
  await systemClock.sleep(300)
  t.equal((await readWebhook(kv, 'ws_1', 'live', id))?.status, 'active', 'the failures before count no more')
  await stop()
})

t.test('a deleted webhook leaves nothing behind, not even what was under way', async (t) => {
  const { kv, start, webhook, happen, sent, submit } = await open(t, () => null)
  const id = await webhook(1)
  const stop = start()
  for (let n = 0; n < 40; n++) await happen(`event ${n}`)
  await eventually(
    async () => sent.length,
    (count) => count === 32,
  )
  t.ok((await submit({ type: 'webhook.delete', workspace: 'ws_1', env: 'live', actor: 'test', data: { id } })).ok)
  const left = async () => {
    const pages = await Promise.all(
      ['due', 'delivery', 'meta'].map((c) => kv.scan(deliveriesScope(id), c, { limit: 100 })),
    )
    return pages.flat().length
  }
  t.equal(await eventually(left, (count) => count === 0), 0)
  t.equal(sent.length, 32)
  await stop()
})

t.test('a message for Slack is sent once, as it was rendered, to the address of its rule', async (t) => {
  const { start, store, sent } = await open(t, () => 200)
  const url = 'https://hooks.slack.example/services/secret'
  const item = {
    workspace: 'ws_1',
    env: 'live',
    requestId: 'req_1',
    visitorId: 'pv_1',
    acceptedAt: 1_000_000,
    effects: [{ type: 'slack', ruleId: 'rul_1', index: 0, url, message: 'Bots: pv_1' }],
  } as unknown as DecidedItem
  const stop = start()
  for (let n = 0; n < 2; n++) {
    const told: OutboxEntries = { payloads: [], deliveries: [] }
    slackNotices(told, item, { payloadAt: 'p/0', nowMs: systemClock.now() })
    await store(told)
    await eventually(
      async () => sent.length,
      (count) => count === 1,
    )
  }
  await systemClock.sleep(200)
  t.match(sent, [{ to: url, body: '{"text":"Bots: pv_1"}' }])
  t.equal(sent.length, 1)
  await stop()
})
