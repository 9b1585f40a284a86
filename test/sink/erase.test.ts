// Erasing rows in the real engine: what is the visitor's is gone, and what only names it stays.

import t from 'tap'
import { COLUMNS } from '../../src/events/row.ts'
import { systemClock as clock } from '../../src/lib/clock.ts'
import { unerased } from '../../src/reads/unerased.ts'
import { erasedId } from '../../src/records/erasures.ts'
import { eraseRows } from '../../src/sink/erase.ts'
import { QUARANTINE_COLUMNS, QUARANTINE_TABLE } from '../../src/sink/insert.ts'
import { openEngine } from '../helpers/engine.ts'
import { cleanUp } from '../helpers/server.ts'

t.teardown(cleanUp)

const [ERASED, OTHER, ALIAS] = ['a', 'b', 'c'].map((char) => `pv_${char.repeat(20)}`) as [string, string, string]

/** A row of events as it was refused. */
function refused(visitorId: string, detail: object): string {
  const cells: unknown[] = COLUMNS.map(() => '')
  cells[COLUMNS.indexOf('visitor_id')] = visitorId
  cells[COLUMNS.indexOf('detail')] = JSON.stringify(detail)
  return `${JSON.stringify(cells)}\n`
}

t.test('an erasure takes refused rows of the visitor, and none of those who were compared with it', async (t) => {
  const { clickhouse } = await openEngine(t)
  const raws = {
    own: refused(ERASED, { v: 1 }),
    'an alias’s under the name of its survivor': refused(OTHER, { v: 1, own: ERASED }),
    'cut off': refused(ERASED, { v: 1 }).slice(0, -20),
    'compared with it': refused(OTHER, { v: 1, x: [[ERASED, 0.4]] }),
    another: refused(ALIAS, { v: 1 }),
  }
  const lines = Object.entries(raws).map(([name, raw]) =>
    JSON.stringify([clock.now(), 'events', 0, 'token', name, raw]),
  )
  await clickhouse.insert(QUARANTINE_TABLE, QUARANTINE_COLUMNS, Buffer.from(`${lines.join('\n')}\n`), { token: 'one' })
  const erasure = { workspace: 'ws', env: 'live', visitorId: ERASED, erasureId: 'era_1', at: clock.now() } as const
  await eraseRows(clickhouse, erasure, 0, 'test')
  const left = await clickhouse.query<{ reason: string }>(`SELECT reason FROM ${QUARANTINE_TABLE} ORDER BY reason`)
  t.same(
    left.map(({ reason }) => reason),
    ['another', 'compared with it'],
  )
})

t.test('reads leave out an erased visitor by the hash it is announced by, and nobody else', async (t) => {
  const { clickhouse } = await openEngine(t)
  const { sql, params } = unerased([erasedId('ws', 'live', ERASED), erasedId('ws', 'test', OTHER)])
  const rows = await clickhouse.query<{ visitor_id: string }>(
    `SELECT visitor_id FROM (SELECT 'ws' AS workspace_id, 'live' AS env, arrayJoin({ids:Array(String)}) AS visitor_id)
     WHERE true${sql} ORDER BY visitor_id`,
    { ids: [ERASED, OTHER, ALIAS], ...params },
  )
  t.same(
    rows.map(({ visitor_id }) => visitor_id),
    [OTHER, ALIAS],
  )
})
