// A crash of the real engine that leaves the token of an insert without its rows, and a power cut that leaves the rows without the
// token: made by hand, since they cannot be hit at will.

import { readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { COLUMNS, EVENTS_TABLE, toRow } from '../../src/events/row.ts'
import { systemClock as clock } from '../../src/lib/clock.ts'
import { ERASURES_TABLE, eraseRows } from '../../src/sink/erase.ts'
import { QUARANTINE_COLUMNS, QUARANTINE_TABLE } from '../../src/sink/insert.ts'
import { insertMissing, insertMissingRow, isRefused } from '../../src/sink/lost.ts'
import { openEngine } from '../helpers/engine.ts'
import { rng, testSeed } from '../helpers/rng.ts'
import { cleanUp } from '../helpers/server.ts'
import { randomEvent } from '../helpers/stored-events.ts'

const TOKEN = 'a range'
const MONDAY = Date.UTC(2026, 9, 5)
const OTHER_WEEK = '2026-10-12'
const DAY_MS = 86_400_000
const ERASED = `pv_${'e'.repeat(20)}`

t.teardown(cleanUp)

t.test('rows whose insert is remembered without them are inserted after all, and none of them twice', async (t) => {
  const engine = await openEngine(t, 3_650)
  let { clickhouse } = engine
  // Two weeks are two parts, and of these one is lost.
  const seed = testSeed()
  t.comment(`seed ${seed}`)
  const r = rng(seed)
  const lines = Array.from({ length: 20 }, (_, i) => {
    const event = randomEvent(r, 'ws', i)
    const visitorId = i === 2 ? ERASED : event.visitorId
    return `${toRow({ ...event, visitorId, timestamp: MONDAY + (i % 2) * 7 * DAY_MS }, 3, 100 + i)}\n`
  })
  const rows = Buffer.from(lines.join(''))
  const insert = () => clickhouse.insert(EVENTS_TABLE, COLUMNS, rows, { token: TOKEN })
  const seqs = async () =>
    (await clickhouse.query<{ seq: number }>(`SELECT log_seq AS seq FROM ${EVENTS_TABLE} ORDER BY seq`)).map(
      ({ seq }) => seq,
    )
  const all = lines.map((_, i) => 100 + i)
  await insert()
  t.same(await seqs(), all)
  const erasure = { workspace: 'ws', env: 'live', visitorId: ERASED, erasureId: 'era_1', at: clock.now() } as const
  await eraseRows(clickhouse, erasure, 3, 'test')
  const kept = all.filter((seq) => seq !== 102)
  t.same(await seqs(), kept)

  const [{ path } = { path: '' }] = await clickhouse.query<{ path: string }>(
    `SELECT path FROM system.parts WHERE active AND table = '${EVENTS_TABLE}' AND rows > 0 AND partition = '${OTHER_WEEK}'`,
  )
  clickhouse = await engine.reopen(() => {
    t.ok(readdirSync(path).length > 0, path)
    rmSync(path, { recursive: true })
  })
  const even = kept.filter((seq) => seq % 2 === 0)
  t.same(await seqs(), even)
  await insert()
  t.same(await seqs(), even, 'a repetition adds nothing')

  await insertMissing(clickhouse, rows, TOKEN)
  t.same(await seqs(), kept, 'and what was erased stays erased')
  await insertMissing(clickhouse, rows, TOKEN)
  t.same(await seqs(), kept)
})

t.test('a refused row and the row of an erasure come back as well when only their tokens are left', async (t) => {
  const engine = await openEngine(t, 3_650)
  let { clickhouse } = engine
  const raw = `["ws","live","${ERASED}"]\n`
  const refused = { raw, token: TOKEN }
  const line = Buffer.from(`${JSON.stringify([clock.now(), EVENTS_TABLE, 3, TOKEN, 'refused', raw])}\n`)
  const row = { table: QUARANTINE_TABLE, columns: QUARANTINE_COLUMNS, line, token: `${TOKEN}/0/bad` }
  const erasure = { workspace: 'ws', env: 'live', visitorId: ERASED, erasureId: 'era_2', at: clock.now() } as const
  const insert = () => clickhouse.insert(row.table, row.columns, row.line, { token: row.token })
  const rowsOf = async (table: string) =>
    (await clickhouse.query<{ rows: number }>(`SELECT count() AS rows FROM ${table}`))[0]?.rows
  await eraseRows(clickhouse, erasure, 3, 'test')
  t.equal(await isRefused(clickhouse, 3, refused), false)
  await insert()
  t.equal(await isRefused(clickhouse, 3, refused), true)

  const parts = await clickhouse.query<{ path: string }>(
    `SELECT path FROM system.parts WHERE active AND rows > 0 AND table IN ('${QUARANTINE_TABLE}', '${ERASURES_TABLE}')`,
  )
  t.equal(parts.length, 2)
  clickhouse = await engine.reopen(() => {
    for (const { path } of parts) rmSync(path, { recursive: true })
  })
  await insert()
  t.equal(await isRefused(clickhouse, 3, refused), false, 'a repetition adds nothing')
  for (let i = 0; i < 2; i++) {
    await insertMissingRow(clickhouse, row, () => isRefused(clickhouse, 3, refused))
    t.equal(await rowsOf(QUARANTINE_TABLE), 1)
  }
  await eraseRows(clickhouse, erasure, 3, 'test')
  t.equal(await rowsOf(ERASURES_TABLE), 0, 'nor does this one')
  t.equal(await isRefused(clickhouse, 3, refused), true, 'what was deleted is not lost')
  for (let i = 0; i < 2; i++) {
    await eraseRows(clickhouse, erasure, 3, 'test', true)
    t.equal(await rowsOf(ERASURES_TABLE), 1)
  }
})

/** As a power cut does: without replicas tokens are written and not flushed. */
function forgetTokens(paths: readonly { readonly path: string }[]): number {
  const logs = new Set(paths.map(({ path }) => join(path, '..', 'deduplication_logs')))
  let forgotten = 0
  for (const folder of logs) {
    for (const name of readdirSync(folder)) {
      rmSync(join(folder, name))
      forgotten += 1
    }
  }
  return forgotten
}

t.test(
  'rows whose insert is forgotten are not inserted twice, and those of it that are missing are inserted',
  async (t) => {
    const engine = await openEngine(t, 3_650)
    let { clickhouse } = engine
    const seed = testSeed()
    t.comment(`seed ${seed}`)
    const r = rng(seed)
    const lines = Array.from(
      { length: 20 },
      (_, i) => `${toRow({ ...randomEvent(r, 'ws', i), timestamp: MONDAY + (i % 2) * 7 * DAY_MS }, 3, 100 + i)}\n`,
    )
    const bytes = (some: readonly string[]) => Buffer.from(some.join(''))
    const insert = (some: readonly string[]) => clickhouse.insert(EVENTS_TABLE, COLUMNS, bytes(some), { token: TOKEN })
    const seqs = async () =>
      (await clickhouse.query<{ seq: number }>(`SELECT log_seq AS seq FROM ${EVENTS_TABLE} ORDER BY seq`)).map(
        ({ seq }) => seq,
      )
    const parts = () =>
      clickhouse.query<{ path: string; partition: string }>(
        `SELECT path, partition FROM system.parts WHERE active AND rows > 0 AND table = '${EVENTS_TABLE}'`,
      )
    const all = lines.map((_, i) => 100 + i)
    await insert(lines)
    let paths = await parts()
    clickhouse = await engine.reopen(() => t.ok(forgetTokens(paths) > 0, 'there were tokens'))
    for (let i = 0; i < 2; i++) {
      await insertMissing(clickhouse, bytes(lines), TOKEN)
      t.same(await seqs(), all, 'all of it was there')
    }

    // One of its two weeks did not come as far.
    paths = await parts()
    clickhouse = await engine.reopen(() => {
      forgetTokens(paths)
      for (const { path } of paths.filter(({ partition }) => partition === OTHER_WEEK))
        rmSync(path, { recursive: true })
    })
    t.equal((await seqs()).length, 10)
    await insertMissing(clickhouse, bytes(lines), TOKEN)
    t.same(await seqs(), all)

    // Two who look at once see the same rows missing: ClickHouse knows the token of a week by itself.
    await insert(lines.filter((_, i) => i % 2 === 1))
    t.same(await seqs(), all)
  },
)
