// What only a real ClickHouse server can show: replicated tables, a restricted user's grants, and deduplication windows.
//
// Not part of `npm test`, because it needs the official container, and NOT YET RUN against one: it was written where there was
// none. The part on plain tables passes against the embedded engine's front; that on replicas and on users has never run.
// Start a server that is used for nothing else, then the job:
//
//   docker run --rm -p 8123:8123 -e CLICKHOUSE_PASSWORD=secret -e CLICKHOUSE_DEFAULT_ACCESS_MANAGEMENT=1 \
//     -v $PWD/test/cluster/clickhouse-keeper.xml:/etc/clickhouse-server/config.d/keeper.xml:ro \
//     clickhouse/clickhouse-server:25.8
//   FINGERPOST_TEST_CLICKHOUSE_URL=http://default:secret@127.0.0.1:8123 npm run test:clickhouse-server

import { randomBytes } from 'node:crypto'
import t from 'tap'
import { openHttpClickHouse } from '../../src/clickhouse/client.ts'
import { readClickHouseFacts, refuseUnsafeClickHouse } from '../../src/clickhouse/facts.ts'
import { type HistoryPlace, openHistory } from '../../src/clickhouse/history.ts'
import { systemClock as clock } from '../../src/lib/clock.ts'
import { Unavailable } from '../../src/lib/failures.ts'
import { eraseRows } from '../../src/sink/erase.ts'
import { QUARANTINE_COLUMNS, QUARANTINE_TABLE } from '../../src/sink/insert.ts'
import { clickhouseContract } from '../contract/clickhouse.ts'

const given = process.env.FINGERPOST_TEST_CLICKHOUSE_URL
if (!given) throw new Error('FINGERPOST_TEST_CLICKHOUSE_URL names no server: see the top of this file')
const { username, password, origin } = new URL(given)
const admin = { url: origin, username: username || 'default', password: decodeURIComponent(password) }
const log = { info() {}, warn() {} }
const run = randomBytes(4).toString('hex')
const CLUSTER = 'test'
const VISITOR = 'pv_00000000000000000000'

const root = openHttpClickHouse({ ...admin, database: 'default' })
t.teardown(() => root.close())

async function openIn(place: Extract<HistoryPlace, { url: string }>, retentionDays = 90) {
  const clickhouse = await openHistory({ ...place, retentionDays }, { clock, log })
  t.teardown(() => clickhouse.close())
  return clickhouse
}

function newDatabase(name: string): string {
  const database = `fingerpost_${name}_${run}`
  t.teardown(() => root.command(`DROP DATABASE IF EXISTS ${database} SYNC`))
  return database
}

type Port = Awaited<ReturnType<typeof openIn>>

const rowsOf = (count: number) =>
  Buffer.from(
    Array.from(
      { length: count },
      (_, row) => `${JSON.stringify([Date.now(), 'job', 0, 'token', 'reason', `${row} ${VISITOR}`])}\n`,
    ).join(''),
  )

const countIn = async (clickhouse: Port) => {
  const [row] = await clickhouse.query<{ n: number }>(`SELECT count() AS n FROM ${QUARANTINE_TABLE}`)
  return row?.n
}

/** A repeated token adds nothing, at once, later, and after the server has read the table from disk again. */
async function insertsOnce(clickhouse: Port, database: string): Promise<(number | undefined)[]> {
  const rows = rowsOf(10)
  const insert = () => clickhouse.insert(QUARANTINE_TABLE, QUARANTINE_COLUMNS, rows, { token: `job ${run}` })
  await Promise.all([insert(), insert(), insert()])
  const first = await countIn(clickhouse)
  await insert()
  const again = await countIn(clickhouse)
  await root.command(`DETACH TABLE ${database}.${QUARANTINE_TABLE} SYNC`)
  await root.command(`ATTACH TABLE ${database}.${QUARANTINE_TABLE}`)
  await insert()
  return [first, again, await countIn(clickhouse)]
}

const erase = (clickhouse: Port) =>
  eraseRows(
    clickhouse,
    { workspace: 'ws', env: 'live', visitorId: VISITOR, erasureId: `era_${run}`, at: Date.now() },
    0,
    `job-${run}`,
  )

clickhouseContract(t, 'a real server', async () => ({
  clickhouse: openHttpClickHouse({ ...admin, database: 'fingerpost' }),
}))

t.test('plain tables: facts, windows and erasure', async (t) => {
  const database = newDatabase('plain')
  const clickhouse = await openIn({ ...admin, database })
  const facts = await readClickHouseFacts(clickhouse)
  t.comment(JSON.stringify(facts))
  refuseUnsafeClickHouse(facts)
  t.notOk(facts.tables.some(({ isReplicated }) => isReplicated))
  t.same(await insertsOnce(clickhouse, database), [10, 10, 10])
  await erase(clickhouse)
  t.equal(await countIn(clickhouse), 0, 'no query shows the rows of the visitor')
})

t.test('replicated tables: many processes at once, facts, windows and erasure', async (t) => {
  const database = newDatabase('replicated')
  const place = { ...admin, database, cluster: CLUSTER }
  const [clickhouse] = (await Promise.all(Array.from({ length: 8 }, () => openIn(place)))) as [Port]
  const facts = await readClickHouseFacts(clickhouse)
  t.comment(JSON.stringify(facts))
  t.same(
    facts.tables.map(({ engine, deduplicationWindow, deduplicationSecondsMax }) => [
      engine,
      deduplicationWindow,
      deduplicationSecondsMax,
    ]),
    [10_000, 10_000, 1_000].map((window) => ['ReplicatedMergeTree', window, 604_800]),
  )
  t.same(await insertsOnce(clickhouse, database), [10, 10, 10])
  await erase(clickhouse)
  t.equal(await countIn(clickhouse), 0)
  await openIn(place, 30)
})

t.test('a user with the documented grants can do all of it and nothing else', async (t) => {
  const database = newDatabase('granted')
  const user = `fingerpost_${run}`
  const secret = randomBytes(16).toString('hex')
  await root.command(`CREATE DATABASE ${database}`)
  await root.command(`CREATE TABLE default.other_${run} (x UInt8) ENGINE = MergeTree ORDER BY x`)
  await root.command(`CREATE USER ${user} IDENTIFIED BY '${secret}'`)
  t.teardown(async () => {
    await root.command(`DROP USER IF EXISTS ${user}`)
    await root.command(`DROP TABLE IF EXISTS default.other_${run} SYNC`)
  })
  await root.command(`GRANT SELECT, INSERT, CREATE TABLE, ALTER DELETE, ALTER TTL ON ${database}.* TO ${user}`)

  const place = { url: admin.url, username: user, password: secret, database }
  const clickhouse = await openIn(place)
  await clickhouse.insert(QUARANTINE_TABLE, QUARANTINE_COLUMNS, rowsOf(3), { token: `granted ${run}` })
  await erase(clickhouse)
  t.equal(await countIn(clickhouse), 0)
  await openIn(place, 30)

  const queries = [
    `SELECT * FROM default.other_${run}`,
    "SELECT * FROM file('x', 'TSV', 'x String')",
    "SELECT * FROM url('http://127.0.0.1:8123/', 'TSV', 'x String')",
    "SELECT * FROM remote('127.0.0.1', system.one)",
    'SELECT * FROM system.users',
  ]
  for (const sql of queries) await t.rejects(clickhouse.query(sql), Unavailable, sql)
  const commands = [
    `DROP TABLE ${database}.events`,
    `CREATE DATABASE ${database}_b`,
    `TRUNCATE TABLE ${database}.events`,
  ]
  for (const sql of commands) await t.rejects(clickhouse.command(sql), Unavailable, sql)
})
