// Erasing rows in the real engine: what is the visitor's is gone, and what only names it stays.

import { randomBytes } from 'node:crypto'
import t from 'tap'
import { makeRequestId } from '../../src/domain/ids.ts'
import type { DecidedSplit } from '../../src/events/record.ts'
import { COLUMNS, EVENTS_TABLE } from '../../src/events/row.ts'
import { systemClock as clock } from '../../src/lib/clock.ts'
import { unerased } from '../../src/reads/unerased.ts'
import { erasedId } from '../../src/records/erasures.ts'
import { eraseRows } from '../../src/sink/erase.ts'
import { QUARANTINE_COLUMNS, QUARANTINE_TABLE } from '../../src/sink/insert.ts'
import { isRefused } from '../../src/sink/lost.ts'
import { moveRows } from '../../src/sink/move.ts'
import { openEngine } from '../helpers/engine.ts'
import { cleanUp } from '../helpers/server.ts'

t.teardown(cleanUp)

const [ERASED, OTHER, ALIAS] = ['a', 'b', 'c'].map((char) => `pv_${char.repeat(20)}`) as [string, string, string]

/** A row of events as it was refused. */
function refused(visitorId: string, detail: object, requestId = '', seq = 0): string {
  const cells: unknown[] = COLUMNS.map(() => '')
  cells[COLUMNS.indexOf('request_id')] = requestId
  cells[COLUMNS.indexOf('visitor_id')] = visitorId
  cells[COLUMNS.indexOf('detail')] = JSON.stringify(detail)
  cells[COLUMNS.indexOf('log_seq')] = seq
  return `${JSON.stringify(cells)}\n`
}

/** Cells that are not said are empty. */
function stored(visitorId: string, detail: object, url: string): string {
  const row = { workspace_id: 'ws', env: 'live', ts: clock.now(), visitor_id: visitorId, url }
  return JSON.stringify([...Object.values(row), JSON.stringify(detail)])
}

t.test('an erasure takes refused rows of the visitor, and its name out of those that may be it', async (t) => {
  const { clickhouse } = await openEngine(t)
  const raws = {
    own: refused(ERASED, { v: 1 }),
    'an alias’s under the name of its survivor': refused(OTHER, { v: 1, own: ERASED }),
    'cut off': refused(ERASED, { v: 1 }).slice(0, -20),
    'compared with it': refused(OTHER, { v: 1, x: [[ERASED, 0.4]] }),
    'may be it': refused(OTHER, { v: 1, may: [ERASED, 4_321], s: {} }),
    'may be another': refused(OTHER, { v: 1, may: [ALIAS, 4_321] }),
    another: refused(ALIAS, { v: 1 }),
  }
  const lines = Object.entries(raws).map(([name, raw]) =>
    JSON.stringify([clock.now(), 'events', 0, 'token', name, raw]),
  )
  await clickhouse.insert(QUARANTINE_TABLE, QUARANTINE_COLUMNS, Buffer.from(`${lines.join('\n')}\n`), { token: 'one' })
  const erasure = { workspace: 'ws', env: 'live', visitorId: ERASED, erasureId: 'era_1', at: clock.now() } as const
  await eraseRows(clickhouse, erasure, 0, 'test')
  await eraseRows(clickhouse, erasure, 0, 'test')
  const left = await clickhouse.query(`SELECT reason, raw FROM ${QUARANTINE_TABLE} ORDER BY reason`)
  const unnamed = refused(OTHER, { v: 1, s: {} })
  t.same(left, [
    { reason: 'another', raw: raws.another },
    { reason: 'compared with it', raw: raws['compared with it'] },
    { reason: 'may be another', raw: raws['may be another'] },
    { reason: 'may be it', raw: unnamed },
  ])
  t.ok(await isRefused(clickhouse, 0, { raw: raws['may be it'], token: 'token' }), 'a repeated insert finds it')
})

t.test('a refused row is the new visitor’s behind a split, and a repeated insert still finds it', async (t) => {
  const { clickhouse } = await openEngine(t)
  const [moved, other] = [makeRequestId(clock.now(), randomBytes), makeRequestId(clock.now(), randomBytes)]
  const raws = {
    own: refused(ERASED, { v: 1 }, moved, 7),
    'an alias’s under the name of its survivor': refused(OTHER, { v: 1, own: ERASED }, moved, 8),
    'not moved': refused(ERASED, { v: 1 }, other, 9),
  }
  const lines = Object.entries(raws).map(([name, raw]) =>
    JSON.stringify([clock.now(), 'events', 3, 'token', name, raw]),
  )
  await clickhouse.insert(QUARANTINE_TABLE, QUARANTINE_COLUMNS, Buffer.from(`${lines.join('\n')}\n`), { token: 'one' })
  const split = { workspace: 'ws', env: 'live', visitorId: ERASED, to: ALIAS, requestIds: [moved] } as const
  await moveRows(clickhouse, split as unknown as DecidedSplit)
  await moveRows(clickhouse, split as unknown as DecidedSplit)
  for (const raw of Object.values(raws)) t.ok(await isRefused(clickhouse, 3, { raw, token: 'token' }))
  const erasure = { workspace: 'ws', env: 'live', erasureId: 'era_1', at: clock.now() } as const
  const left = async () =>
    (await clickhouse.query<{ reason: string }>(`SELECT reason FROM ${QUARANTINE_TABLE} ORDER BY reason`)).map(
      ({ reason }) => reason,
    )
  for (const visitorId of [ERASED, OTHER]) await eraseRows(clickhouse, { ...erasure, visitorId }, 3, 'test')
  t.same(await left(), ['an alias’s under the name of its survivor', 'own'])
  await eraseRows(clickhouse, { ...erasure, visitorId: ALIAS }, 3, 'test')
  t.same(await left(), [])
})

t.test('an alias’s erasure takes its events under each name they carry, and none of the survivors’', async (t) => {
  const { clickhouse } = await openEngine(t)
  const lines = [
    stored(ALIAS, { v: 1 }, 'own name'),
    stored(OTHER, { v: 1, own: ALIAS }, 'survivor’s name'),
    stored(ERASED, { v: 1, own: ALIAS }, 'former survivor’s name'),
    stored(OTHER, { v: 1 }, 'survivor’s'),
  ]
  const columns = ['workspace_id', 'env', 'ts', 'visitor_id', 'url', 'detail']
  await clickhouse.insert(EVENTS_TABLE, columns, Buffer.from(`${lines.join('\n')}\n`), { token: 'one' })
  const erasure = { workspace: 'ws', env: 'live', visitorId: ALIAS, erasureId: 'era_1', at: clock.now() } as const
  await eraseRows(clickhouse, { ...erasure, survivor: OTHER, former: [ERASED] }, 3, 'test')
  const left = await clickhouse.query<{ url: string }>(`SELECT url FROM ${EVENTS_TABLE}`)
  t.same(
    left.map(({ url }) => url),
    ['survivor’s'],
  )
})

t.test(
  'an erasure takes the visitor out of events of others that may be of it, also as the survivor it had',
  async (t) => {
    const { clickhouse } = await openEngine(t)
    const third = `pv_${'d'.repeat(20)}`
    const lines = [
      stored(third, { s: {}, may: [ERASED, 4_321], v: 1 }, 'may be it'),
      stored(third, { s: {}, may: [OTHER, 6_543] }, 'may be its survivor'),
      stored(third, { s: {}, may: [ALIAS, 2_000] }, 'may be another'),
      stored(third, { s: {} }, 'is new'),
    ].map((line, i) => JSON.stringify([...JSON.parse(line), `req_${i}`]))
    const columns = ['workspace_id', 'env', 'ts', 'visitor_id', 'url', 'detail', 'request_id']
    await clickhouse.insert(EVENTS_TABLE, columns, Buffer.from(`${lines.join('\n')}\n`), { token: 'one' })
    const columnsOf = () =>
      clickhouse.query<Record<string, unknown>>(
        `SELECT url, possible_visitor_id AS id, possible_confidence AS parts, possible_hash != 0 AS hashed, detail
       FROM ${EVENTS_TABLE} ORDER BY request_id`,
      )
    t.match(await columnsOf(), [
      { id: ERASED, parts: 4_321, hashed: 1 },
      { id: OTHER, parts: 6_543, hashed: 1 },
      { id: ALIAS, parts: 2_000, hashed: 1 },
      { id: '', parts: 0, hashed: 0 },
    ])
    const erasure = { workspace: 'ws', env: 'live', visitorId: ERASED, erasureId: 'era_1', at: clock.now() } as const
    await eraseRows(clickhouse, { ...erasure, survivor: OTHER }, 3, 'test')
    t.same(await columnsOf(), [
      { url: 'may be it', id: '', parts: 0, hashed: 0, detail: '{"s":{},"v":1}' },
      { url: 'may be its survivor', id: '', parts: 0, hashed: 0, detail: '{"s":{}}' },
      { url: 'may be another', id: ALIAS, parts: 2_000, hashed: 1, detail: `{"s":{},"may":["${ALIAS}",2000]}` },
      { url: 'is new', id: '', parts: 0, hashed: 0, detail: '{"s":{}}' },
    ])
  },
)

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
