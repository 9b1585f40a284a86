// ClickHouse over HTTP with user and password, as a cluster has it: the stand-in server keeps the contract of the port, many
// processes may migrate it at once, and an unfit server is refused.

import t from 'tap'
import type { ClickHouse } from '../../src/clickhouse/clickhouse.ts'
import { openHttpClickHouse } from '../../src/clickhouse/client.ts'
import {
  type ClickHouseFacts,
  readClickHouseFacts,
  refuseOld,
  refuseUnsafeClickHouse,
  UnsafeClickHouse,
} from '../../src/clickhouse/facts.ts'
import { openHistory } from '../../src/clickhouse/history.ts'
import { migrate } from '../../src/clickhouse/migrate.ts'
import { systemClock as clock } from '../../src/lib/clock.ts'
import { Unavailable, Unreadable } from '../../src/lib/failures.ts'
import { type ClickHouseServer, startClickHouse } from '../helpers/clickhouse.ts'
import { sized } from '../helpers/depth.ts'
import { clickhouseContract, type Extent } from './clickhouse.ts'

const log = { info() {}, warn() {} }
const server: ClickHouseServer = await startClickHouse()
t.teardown(() => server.remove())
const { url, username, password } = server
/** The stand-in is the engine of clickhouse.embedded.test.ts. */
const EXTENT = sized<Extent | 'none'>({ quick: 'none', usual: 'door', long: 'whole' })
const openAt = (database: string) => openHttpClickHouse({ url, username, password, database })

if (EXTENT !== 'none') {
  clickhouseContract(
    t,
    'a server over HTTP',
    async () => {
      let clickhouse = openAt('fingerpost')
      return {
        clickhouse,
        async kill() {
          await server.kill9()
          await server.restart()
        },
        async restart() {
          await clickhouse.close()
          await server.stop()
          await server.restart()
          clickhouse = openAt('fingerpost')
          return clickhouse
        },
      }
    },
    EXTENT,
  )
}

t.test('any number of processes may open the history at once', async (t) => {
  const place = { url, username, password, database: 'raced', retentionDays: 90 }
  const ports = await Promise.all(
    Array.from({ length: sized({ usual: 4, long: 8 }) }, () => openHistory(place, { clock, log })),
  )
  t.teardown(() => Promise.all(ports.map((port) => port.close())))
  const [port] = ports as [ClickHouse]
  const tables = await port.query<{ name: string }>(
    'SELECT name FROM system.tables WHERE database = currentDatabase() ORDER BY name',
  )
  t.same(
    tables.map(({ name }) => name),
    ['erasures', 'events', 'list_snapshots', 'quarantine', 'schema_versions'],
  )
  const [first, second] = [await migrateAs(port, 30), await migrateAs(port, 30)]
  t.equal(first, second)
})

const migrateAs = (port: ClickHouse, retentionDays: number) =>
  migrate(port, { database: 'raced', retentionDays, clock })

t.test('a process that loses a race reads again', async (t) => {
  const clickhouse = openAt('lost_race')
  t.teardown(() => clickhouse.close())
  let races = 0
  const loser: ClickHouse = {
    ...clickhouse,
    async command(sql) {
      await clickhouse.command(sql)
      races += 1
      if (races <= 3) throw new Unavailable('clickhouse command failed: 57', { cause: { code: 57 } })
    },
  }
  const version = await migrate(loser, { database: 'lost_race', retentionDays: 90, clock })
  t.ok(races > 3)
  t.equal(await migrate(clickhouse, { database: 'lost_race', retentionDays: 90, clock }), version)
})

t.test('the facts are those of the tables that were made', async (t) => {
  const clickhouse = await openHistory(
    { url, username, password, database: 'facts', retentionDays: 90 },
    { clock, log },
  )
  t.teardown(() => clickhouse.close())
  const facts = await readClickHouseFacts(clickhouse)
  const table = { engine: 'MergeTree', isReplicated: false, deduplicationSecondsMax: null, fsync: true }
  t.match(facts.version, /^\d+\.\d+/)
  t.equal(facts.deduplicateInsert, 'enable')
  t.same(facts.tables, [
    { ...table, name: 'erasures', deduplicationWindow: 10_000 },
    { ...table, name: 'events', deduplicationWindow: 10_000 },
    { ...table, name: 'quarantine', deduplicationWindow: 1_000 },
  ])
  await clickhouse.command('ALTER TABLE events MODIFY SETTING non_replicated_deduplication_window = 0')
  const changed = await readClickHouseFacts(clickhouse)
  t.throws(() => refuseUnsafeClickHouse(changed), UnsafeClickHouse)
  await t.rejects(openHistory({ url, username, password, database: 'facts', retentionDays: 90 }, { clock, log }), {
    name: 'UnsafeClickHouse',
    message: /table events remembers 0 inserts/,
  })
})

t.test('servers that would double rows or are too old are refused, others not', async (t) => {
  for (const version of ['25.8.1.5101', '25.12.1', '26.1', '26.7.2.1']) refuseOld(version)
  for (const version of ['18.16.1', '24.12.9', '25.7.9.1', '0', '']) {
    t.throws(() => refuseOld(version), { name: 'UnsafeClickHouse', message: /25\.8 is needed/ }, version)
  }
  const replicated = { engine: 'ReplicatedMergeTree', isReplicated: true, deduplicationWindow: 10_000, fsync: true }
  const table = { ...replicated, name: 'events', deduplicationSecondsMax: 604_800 }
  const facts: ClickHouseFacts = { version: '26.1', deduplicateInsert: 'enable', tables: [table] }
  refuseUnsafeClickHouse(facts)
  const unsafe = [
    { ...facts, deduplicateInsert: 'disable' },
    { ...facts, tables: [{ ...table, deduplicationSecondsMax: 3_600 }] },
    { ...facts, tables: [{ ...table, deduplicationWindow: 0 }] },
  ]
  for (const each of unsafe) t.throws(() => refuseUnsafeClickHouse(each), UnsafeClickHouse)
})

t.test('the tables of a cluster are replicated ones, and the engine understands the statements', async (t) => {
  const clickhouse = openAt('default')
  t.teardown(() => clickhouse.close())
  const statements: string[] = []
  const recording: ClickHouse = {
    ...clickhouse,
    query: async () => {
      throw new Unavailable('clickhouse query failed: 81', { cause: { code: 81 } })
    },
    insert: async () => undefined,
    command: async (sql) => void statements.push(sql),
  }
  await migrate(recording, { database: 'spread', cluster: '{cluster}', retentionDays: 90, clock })
  t.equal(statements[0], "CREATE DATABASE IF NOT EXISTS spread ON CLUSTER '{cluster}'")
  const settled = statements.filter((statement) => statement.includes(' MODIFY SETTING '))
  t.ok(settled.length > 0)
  for (const statement of settled) t.match(statement, /^ALTER TABLE \w+ ON CLUSTER '\{cluster\}' MODIFY SETTING /)
  const created = statements.slice(1).filter((statement) => !statement.startsWith('ALTER TABLE '))
  t.equal(created.length, 5)
  for (const statement of created) {
    t.match(statement, /^CREATE TABLE IF NOT EXISTS \w+ ON CLUSTER '\{cluster\}'\n/)
    t.match(statement, /\bENGINE = ReplicatedMergeTree\b/)
    t.notMatch(statement, /non_replicated|ENGINE = MergeTree/)
    await clickhouse.command(`EXPLAIN AST ${statement}`)
  }
  t.equal(
    statements.filter((statement) => /replicated_deduplication_window_seconds = 604800/.test(statement)).length,
    4,
  )
  const hostile = { database: 'spread', cluster: "x' ENGINE = Memory", retentionDays: 90, clock }
  await t.rejects(migrate(recording, hostile), /name of a cluster/)
})

t.test('a wrong password is Unavailable; the right one is a token as well', async (t) => {
  const stranger = openHttpClickHouse({ url, username, password: `${password}x`, database: 'default' })
  t.teardown(() => stranger.close())
  await t.rejects(stranger.query('SELECT 1'), Unavailable)
  const bearer = openHttpClickHouse({ url, token: password, database: 'default' })
  t.teardown(() => bearer.close())
  t.same(await bearer.query('SELECT 1 AS one'), [{ one: 1 }])
})

t.test('a schema of a newer build is refused by every process', async (t) => {
  const clickhouse = openAt('raced')
  t.teardown(() => clickhouse.close())
  const row = Buffer.from(`${JSON.stringify([99, 30, Date.now()])}\n`)
  await clickhouse.insert('schema_versions', ['version', 'retention_days', 'applied_at'], row, { token: 'newer' })
  const place = { url, username, password, database: 'raced', retentionDays: 30 }
  await t.rejects(openHistory(place, { clock, log }), Unreadable)
})
