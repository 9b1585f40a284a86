// The state machine of deliveries and webhooks on a clock that only the test moves, to the second.

import t from 'tap'
import { isSlow, newPace, recordAttempt, roomIn } from '../../src/dispatcher/circuit-breaker.ts'
import {
  afterAttempt,
  attemptEndOf,
  DISABLE_AFTER_MS,
  GAPS_MS,
  healthAfter,
  jitterMs,
} from '../../src/dispatcher/schedule.ts'
import type { WebhookShape } from '../../src/domain/webhook.ts'
import { type Attempt, type AttemptTrigger, NO_HEALTH, type StoredDelivery } from '../../src/records/deliveries.ts'

const T0 = Date.UTC(2026, 10, 21)
const HOUR = 3_600_000
const fresh: StoredDelivery = {
  eventId: 'evt_1',
  type: 'visitor.new',
  status: 'pending',
  tries: 0,
  attemptsMade: 0,
  attempts: [],
  ...{
    nextAttemptAt: T0,
    createdAt: T0,
    reason: null,
    payloadAt: 'p/0',
    payloadId: 'ws/live/-/evt_1',
    payloadUntil: 0,
  },
}
const attempt = (endedAt: number, error: string | null = 'timeout', trigger: AttemptTrigger = 'auto'): Attempt => ({
  n: 1,
  trigger,
  startedAt: endedAt - 10_000,
  durationMs: 10_000,
  statusCode: null,
  error,
})

function run(shape: WebhookShape, id: string): { readonly gaps: number[]; readonly delivery: StoredDelivery } {
  let delivery = fresh
  const gaps: number[] = []
  for (let at = T0; delivery.nextAttemptAt !== null; ) {
    const failed = attempt(at + 10_000)
    delivery = afterAttempt(id, delivery, shape, failed)
    if (delivery.nextAttemptAt === null) break
    gaps.push(delivery.nextAttemptAt - attemptEndOf(failed))
    at = delivery.nextAttemptAt
  }
  return { gaps, delivery }
}

t.test(
  'each shape retries on its schedule, from the end of the failure, never early and at most 15 s late',
  async (t) => {
    const MINUTES = { A: [5, 30, 60, 120, 240, 480, 480], B: [5, 30] } as const
    for (const shape of ['A', 'B'] as const) {
      for (let i = 0; i < 200; i++) {
        const { gaps, delivery } = run(shape, `dlv_${i}`)
        t.equal(gaps.length, MINUTES[shape].length)
        for (const [n, gap] of gaps.entries()) {
          const wanted = (MINUTES[shape][n] ?? 0) * 60_000
          if (gap < wanted || gap > wanted + Math.min(15_000, wanted * 0.02)) t.fail(`${shape} ${n}: ${gap}`)
        }
        t.match(delivery, { status: 'failed', attemptsMade: gaps.length + 1, tries: gaps.length + 1 })
      }
    }
    const late = Array.from({ length: 1_000 }, (_, i) => jitterMs(1_800_000, `dlv_${i}`, 2))
    t.ok(Math.max(...late) > 14_000 && Math.min(...late) < 1_000, 'retries are spread')
    t.equal(jitterMs(300_000, 'dlv_1', 1), jitterMs(300_000, 'dlv_1', 1), 'the same for whoever works it out')
  },
)

t.test('a success ends a delivery at any attempt; one by hand takes none from the schedule', async (t) => {
  const once = afterAttempt('dlv_1', fresh, 'B', attempt(T0))
  t.match(afterAttempt('dlv_1', once, 'B', attempt(T0 + HOUR, null)), {
    status: 'delivered',
    nextAttemptAt: null,
    tries: 2,
  })
  const byHand = afterAttempt('dlv_1', once, 'B', attempt(T0 + 1_000, 'dns', 'manual'))
  t.match(byHand, { status: 'pending', tries: 1, nextAttemptAt: once.nextAttemptAt, attemptsMade: 2 })
  t.match(afterAttempt('dlv_1', byHand, 'B', attempt(T0 + 2_000, null, 'manual')), { status: 'delivered', tries: 1 })
  const { delivery: failed } = run('B', 'dlv_1')
  t.match(afterAttempt('dlv_1', failed, 'B', attempt(T0 + HOUR, 'dns', 'manual')), {
    status: 'failed',
    nextAttemptAt: null,
  })
  t.match(afterAttempt('dlv_1', failed, 'B', attempt(T0 + HOUR, null, 'manual')), { status: 'delivered' })
})

t.test('a webhook ends with the first failure a whole day after the first, not a second before', async (t) => {
  const first = healthAfter(NO_HEALTH, attempt(T0), 0)
  t.match(first, { turn: 'none', health: { failingSince: T0 } })
  t.equal(healthAfter(first.health, attempt(T0 + DISABLE_AFTER_MS - 1_000), 0).turn, 'warn')
  t.equal(healthAfter(first.health, attempt(T0 + DISABLE_AFTER_MS), 0).turn, 'disable')
  const half = healthAfter(first.health, attempt(T0 + 12 * HOUR), 0)
  t.equal(half.turn, 'warn')
  t.equal(healthAfter(half.health, attempt(T0 + 13 * HOUR), 0).turn, 'none', 'warned once')
  t.equal(healthAfter(half.health, attempt(T0 + DISABLE_AFTER_MS), 0).turn, 'disable')
})

t.test('a success, an enabling and two days of silence each forget the failures before', async (t) => {
  const { health } = healthAfter(NO_HEALTH, attempt(T0), 0)
  const well = healthAfter(health, attempt(T0 + 23 * HOUR, null), 0)
  t.match(well.health, { failingSince: null, lastDeliveryAt: T0 + 23 * HOUR })
  t.match(healthAfter(well.health, attempt(T0 + 25 * HOUR), 0), {
    turn: 'none',
    health: { failingSince: T0 + 25 * HOUR },
  })
  t.match(healthAfter(health, attempt(T0 + 25 * HOUR), T0 + HOUR), {
    turn: 'none',
    health: { failingSince: T0 + 25 * HOUR },
  })
  t.match(healthAfter(health, attempt(T0 + 48 * HOUR), 0), { turn: 'none', health: { failingSince: T0 + 48 * HOUR } })
})

t.test('tests and attempts by hand never count', async (t) => {
  const { health } = healthAfter(NO_HEALTH, attempt(T0), 0)
  for (const trigger of ['manual', 'test'] as const) {
    t.match(healthAfter(health, attempt(T0 + 30 * HOUR, 'dns', trigger), 0), { turn: 'none', health })
    t.equal(healthAfter(health, attempt(T0 + HOUR, null, trigger), 0).health.failingSince, T0)
  }
})

t.test(
  'a breaker opens after five outages within a minute, lets one attempt probe, and doubles up to five minutes',
  async (t) => {
    const fail = (pace: ReturnType<typeof newPace>, now: number, outage = true) =>
      recordAttempt(pace, { ok: false, outage, durationMs: 10, now })
    const pace = newPace()
    for (let i = 0; i < 20; i++) fail(pace, i * 100, false)
    t.equal(roomIn(pace, 0, 2_000), 32, 'a receiver that dislikes what it gets is not down')
    for (let i = 0; i < 4; i++) fail(pace, 2_000 + i * 15_001)
    fail(pace, 2_000 + 4 * 15_001)
    t.ok(roomIn(pace, 0, 70_000) > 0, 'five in more than a minute are not enough')
    let now = 62_100
    for (let i = 0; i < 4; i++) fail(pace, now)
    let opened = 30_000
    for (const wanted of [30_000, 60_000, 120_000, 240_000, 300_000, 300_000]) {
      opened = wanted
      t.equal(roomIn(pace, 0, now + opened - 1), 0)
      t.equal(roomIn(pace, 0, now + opened), 1, `one probe after ${opened} ms`)
      t.equal(roomIn(pace, 1, now + opened), 0)
      now += opened
      fail(pace, now)
    }
    t.ok(isSlow(pace))
    recordAttempt(pace, { ok: true, outage: false, durationMs: 10, now: now + 300_000 })
    t.equal(roomIn(pace, 0, now + 300_000), pace.atOnce)
    t.equal(pace.atOnce, 1, 'what it bears is found out anew')
    for (let i = 0; i < 400; i++) recordAttempt(pace, { ok: true, outage: false, durationMs: 3_000, now })
    t.equal(pace.atOnce, 32)
    t.ok(isSlow(pace), 'a receiver that takes more than two seconds')
  },
)

t.test('the schedule of A fits into a day', async (t) => {
  t.equal(
    GAPS_MS.A.reduce((sum, gap) => sum + gap, 0),
    (23 * 60 + 35) * 60_000,
  )
})
