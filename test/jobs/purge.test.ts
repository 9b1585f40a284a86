// A purge of the real engine: what an erasure was to hide is gone afterwards, also where ClickHouse lost the patch that hid it.

import t from 'tap'
import type { StoredEvent } from '../../src/domain/event.ts'
import { makeRequestId, requestTime } from '../../src/domain/ids.ts'
import { COLUMNS, EVENTS_TABLE, toRow } from '../../src/events/row.ts'
import { runPurge } from '../../src/jobs/purge.ts'
import { systemClock as clock } from '../../src/lib/clock.ts'
import { must } from '../../src/lib/must.ts'
import { readPurge } from '../../src/records/erasure-progress.ts'
import { ERASURES_TABLE, eraseRows } from '../../src/sink/erase.ts'
import { eventually } from '../helpers/client.ts'
import { openPorts, PARTITIONS, prepare, random } from '../helpers/control-plane.ts'
import { openEngine } from '../helpers/engine.ts'
import { rng, testSeed } from '../helpers/rng.ts'
import { cleanUp } from '../helpers/server.ts'
import { randomEvent } from '../helpers/stored-events.ts'

const [ERASED, OTHER] = ['a', 'b'].map((char) => `pv_${char.repeat(20)}`) as [string, string]
const seed = testSeed()
const r = rng(seed)

t.teardown(cleanUp)

function rowOf(workspace: string, visitorId: string, number: number): string {
  const requestId = makeRequestId(clock.now(), random)
  const timestamp = must(requestTime(requestId))
  const event: StoredEvent = {
    ...randomEvent(r, workspace, number),
    requestId,
    visitorId,
    timestamp,
    firstSeenAt: timestamp,
    lastSeenAt: timestamp,
  }
  return `${toRow(event, 0, number)}\n`
}

t.test(
  `events of a visitor that are shown though it was erased are deleted, and nobody else's (seed ${seed})`,
  async (t) => {
    const { clickhouse } = await openEngine(t)
    const ports = await openPorts(t)
    await prepare(ports)
    const insert = (rows: readonly string[], token: string) =>
      clickhouse.insert(EVENTS_TABLE, COLUMNS, Buffer.from(rows.join('')), { token })
    const left = async () =>
      (
        await clickhouse.query<{ name: string }>(
          `SELECT concat(workspace_id, ' ', visitor_id) AS name FROM ${EVENTS_TABLE} ORDER BY name`,
        )
      ).map(({ name }) => name)
    await insert([rowOf('ws_1', ERASED, 1), rowOf('ws_1', OTHER, 2), rowOf('ws_2', ERASED, 3)], 'one')
    const erasure = { workspace: 'ws_1', env: 'live', visitorId: ERASED, erasureId: 'era_1', at: clock.now() } as const
    await eraseRows(clickhouse, erasure, 0, 'test')
    // As if the patch were lost: the engine shows such rows again.
    await insert([rowOf('ws_1', ERASED, 4)], 'two')
    t.same(await left(), [`ws_1 ${ERASED}`, `ws_1 ${OTHER}`, `ws_2 ${ERASED}`])

    const staged = (madeAt: number) =>
      clickhouse.command(`CREATE TABLE rebuild_visits_${madeAt} (visitor_id String) ENGINE = MergeTree ORDER BY ()`)
    await staged(clock.now() - 172_800_000)
    await staged(clock.now() + 3_600_000)

    const stopping = new AbortController()
    const running = runPurge(
      {
        ...ports,
        clickhouse,
        cluster: '',
        clock,
        partitions: PARTITIONS,
        everyMs: 200,
        retention: { eventsDays: 90, fullIpDays: 90 },
        onError: (error) => t.fail(String(error)),
      },
      stopping.signal,
    )
    const purge = await eventually(
      () => readPurge(ports.kv),
      (one) => one !== null,
    )
    stopping.abort()
    await running
    t.not(purge, null)
    const copies = await clickhouse.query(
      "SELECT name FROM system.tables WHERE database = currentDatabase() AND startsWith(name, 'rebuild_visits_')",
    )
    t.equal(copies.length, 1, 'what an ended rebuild has left is gone, and not that of one that runs')
    t.same(await left(), [`ws_1 ${OTHER}`, `ws_2 ${ERASED}`])
    const [held] = await clickhouse.query<{ hidden: number }>(
      `SELECT sum(rows) AS hidden FROM system.parts WHERE database = currentDatabase() AND active
     AND table = '${EVENTS_TABLE}' AND NOT startsWith(name, 'patch-')`,
    )
    t.equal(Number(held?.hidden), 2, 'and their bytes are out of every part')
    const [tombstones] = await clickhouse.query<{ kept: number }>(`SELECT count() AS kept FROM ${ERASURES_TABLE}`)
    t.equal(Number(tombstones?.kept), 1)
  },
)
