// What a monitored rule would have changed is counted over the events that the workspace still keeps.

import t from 'tap'
import type { StoredEvent } from '../../src/domain/event.ts'
import { COLUMNS, EVENTS_TABLE, toRow } from '../../src/events/row.ts'
import { DAY_MS } from '../../src/lib/durations.ts'
import { must } from '../../src/lib/must.ts'
import { openMonitor } from '../../src/reads/monitor.ts'
import { readRule } from '../../src/records/rules.ts'
import {
  createRule,
  createWorkspace,
  openPorts,
  PARTITIONS,
  prepare,
  startOwner,
  startSubmit,
} from '../helpers/control-plane.ts'
import { openEngine } from '../helpers/engine.ts'
import { rng, testSeed } from '../helpers/rng.ts'
import { randomEvent } from '../helpers/stored-events.ts'

const WS = 'ws_monitor'
const RULE_ID = `rul_${'a'.repeat(20)}`

t.test('events past the retention of the workspace are not counted', async (t) => {
  const ports = await openPorts(t)
  await prepare(ports)
  startOwner(t, ports)
  const submit = startSubmit(t, ports)
  await submit(createWorkspace(WS))
  t.ok((await submit(createRule(WS, RULE_ID, { status: 'monitor' }))).ok)
  const rule = must(await readRule(ports.kv, WS, 'live', RULE_ID))
  const { clickhouse } = await openEngine(t, 3_650)
  const nowMs = rule.createdAt + 80 * DAY_MS
  const lines = [1, 20, 60].map((daysAgo, i) => {
    const event = randomEvent(rng(testSeed()), WS, i)
    const at: StoredEvent = {
      ...event,
      ...{ env: 'live', timestamp: nowMs - daysAgo * DAY_MS, evaluationError: null, rulesRevision: rule.version },
    }
    return `${toRow(at, 0, i)}\n`
  })
  await clickhouse.insert(EVENTS_TABLE, COLUMNS, Buffer.from(lines.join('')), { token: 'events' })
  const needs = { clickhouse, kv: ports.kv, clock: { now: () => nowMs }, partitions: PARTITIONS }
  const counted = (keptDays: number, days: number) =>
    openMonitor({ ...needs, retentionDays: () => keptDays })(WS, 'live', rule, days)
  t.match(await counted(90, 90), { evaluated: 3, since: rule.createdAt })
  t.match(await counted(30, 90), { evaluated: 2, since: nowMs - 30 * DAY_MS })
  t.match(await counted(30, 7), { evaluated: 1, since: nowMs - 7 * DAY_MS })
})
