// The evaluation of alerts over real ports, with figures of the test's own: which of them fire while ClickHouse hangs, and after the
// clock was set back.

import t, { type Test } from 'tap'
import type { Alert, AlertMetric } from '../../src/domain/alert.ts'
import { runAlerts } from '../../src/jobs/alerts.ts'
import { type Clock, systemClock } from '../../src/lib/clock.ts'
import { Unavailable } from '../../src/lib/failures.ts'
import type { MeasureAlert } from '../../src/reads/alert-metrics.ts'
import { alertKey, fire, readFired, readIncidents, type StoredAlert } from '../../src/records/alerts.ts'
import { tenantScope } from '../../src/records/scopes.ts'
import { createWorkspace, openPorts, prepare, random, startOwner, startSubmit } from '../helpers/control-plane.ts'

const WS = 'ws_a'
const COOLDOWN_SECONDS = 60

const alertOf = (id: string, metric: AlertMetric): Alert => ({
  ...{ id, name: id, metric, filters: {}, operator: 'gt', threshold: 0, windowSeconds: 60, minEvents: 0 },
  ...{ cooldownSeconds: COOLDOWN_SECONDS, status: 'active', createdAt: 0, updatedAt: 0 },
})

/** A workspace with these alerts; `run` evaluates them again and again until the work is done. */
async function open(t: Test, alerts: readonly Alert[]) {
  const ports = await openPorts(t)
  await prepare(ports)
  startOwner(t, ports)
  await startSubmit(t, ports)(createWorkspace(WS))
  const put = alerts.map((alert) => ({
    key: alertKey(alert.id),
    value: { ...alert, version: 1 } satisfies StoredAlert,
  }))
  await ports.kv.commit([{ scope: tenantScope(WS, 'live'), put }])
  async function run(measure: MeasureAlert, work: () => Promise<void>, clock: Clock = systemClock): Promise<void> {
    const stopping = new AbortController()
    const onError = (error: unknown) => t.fail(String(error))
    const running = runAlerts({ kv: ports.kv, clock, random, measure, everyMs: 20, onError }, stopping.signal)
    await work()
    stopping.abort()
    await running
  }
  const incidents = async (id: string) => (await readIncidents(ports.kv, WS, 'live', id, 10, null)).incidents.length
  return { kv: ports.kv, run, incidents }
}

const until = async (holds: () => Promise<boolean> | boolean): Promise<void> => {
  while (!(await holds())) await systemClock.sleep(10)
}

t.test('while ClickHouse hangs the other alerts fire, and few questions wait for it', async (t) => {
  const asked: string[] = []
  const ofEvents = Array.from({ length: 30 }, (_, n) => alertOf(`alt_${String(n).padStart(2, '0')}`, 'events'))
  const { run, incidents } = await open(t, [...ofEvents, alertOf('alt_lag', 'ingest_lag_ms')])
  let hang = () => {}
  const hangs = new Promise<never>((_, reject) => {
    hang = () => reject(new Unavailable('ClickHouse does not answer'))
  })
  const measure: MeasureAlert = async (_workspace, _env, { id, metric }) => {
    if (metric === 'ingest_lag_ms') return { value: 1, events: 1 }
    asked.push(id)
    return hangs
  }
  await run(measure, async () => {
    await until(async () => (await incidents('alt_lag')) === 1)
    await systemClock.sleep(100)
    t.ok(asked.length < 10, `${asked.length} questions wait`)
    hang()
  })
  t.equal(await incidents('alt_lag'), 1)
  t.equal(await incidents('alt_00'), 0)
})

t.test('every alert of events is evaluated in each round while ClickHouse answers', async (t) => {
  const ids = Array.from({ length: 9 }, (_, n) => `alt_${n}`)
  const { run, incidents } = await open(
    t,
    ids.map((id) => alertOf(id, 'events')),
  )
  await run(
    async () => ({ value: 1, events: 1 }),
    () => until(async () => (await Promise.all(ids.map(incidents))).every((count) => count === 1)),
  )
  t.same(
    await Promise.all(ids.map(incidents)),
    ids.map(() => 1),
  )
})

t.test(
  'an alert that fired by a clock that was ahead fires again when that is set back, once per cooldown',
  async (t) => {
    const alert = alertOf('alt_1', 'events')
    const { kv, run, incidents } = await open(t, [alert])
    const aheadMs = systemClock.now() + 7_200_000
    const incident = {
      id: 'inc_ahead',
      alertId: alert.id,
      value: 1,
      windowStart: 0,
      windowEnd: aheadMs,
      triggeredAt: aheadMs,
    }
    await fire(kv, WS, 'live', { alert, incident }, await readFired(kv, WS, 'live', alert.id))
    let measured = 0
    const measure: MeasureAlert = async () => {
      measured += 1
      return { value: 1, events: 1 }
    }
    await run(measure, async () => {
      await until(async () => (await incidents(alert.id)) === 2)
      await systemClock.sleep(200)
    })
    t.equal(await incidents(alert.id), 2)
    t.equal(measured, 1, 'it rests for its cooldown')
  },
)
