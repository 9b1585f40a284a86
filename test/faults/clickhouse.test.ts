// A ClickHouse that is away, slow, cut off, full of errors or killed: by the sink's own insert path every row ends up in its
// table exactly once, and whatever fails is Unavailable.

import t, { type Test } from 'tap'
import type { ClickHouse } from '../../src/clickhouse/clickhouse.ts'
import { openHttpClickHouse } from '../../src/clickhouse/client.ts'
import { migrate } from '../../src/clickhouse/migrate.ts'
import { systemClock as clock } from '../../src/lib/clock.ts'
import { Unavailable } from '../../src/lib/failures.ts'
import { insertRows, QUARANTINE_TABLE } from '../../src/sink/insert.ts'
import { startClickHouse } from '../helpers/clickhouse.ts'
import { sized } from '../helpers/depth.ts'
import { pause, until } from '../helpers/processes.ts'
import { type Mode, openProxy } from '../helpers/proxy.ts'
import { rng, testSeed } from '../helpers/rng.ts'

const seed = testSeed()
t.comment(`SEED=${seed}`)
const random = rng(seed)
const BATCHES_MIN = 8
const ROWS = 300
const INSERT_MS_MAX = 1_000
const PATIENT_MS = 60_000
const RETRY_MS = 50
const HOUR_MS = 3_600_000
/** Longer than an insert waits, or twice that. */
const FAULT_MS = sized({ usual: 1_200, long: 2_500 })
const KILLS = sized({ usual: 2, long: 3 })
const CUTS = sized({ usual: 6, long: 12 })

const server = await startClickHouse()
const proxy = await openProxy({ target: { port: server.port } })
const { username, password } = server
/** Past the proxy, to look at what is there. */
const direct = openHttpClickHouse({ url: server.url, username, password, database: 'fingerpost' })
const through = openHttpClickHouse({
  url: `http://127.0.0.1:${proxy.port}`,
  username,
  password,
  database: 'fingerpost',
  insertMsMax: INSERT_MS_MAX,
})
/** Through the proxy as well, and never in a hurry: it fails only where the proxy makes it. */
const patient = openHttpClickHouse({
  url: `http://127.0.0.1:${proxy.port}`,
  username,
  password,
  database: 'fingerpost',
  insertMsMax: PATIENT_MS,
})
t.teardown(async () => {
  await Promise.all([through.close(), patient.close(), direct.close()])
  await proxy.close()
  await server.remove()
})
await migrate(direct, { database: 'fingerpost', retentionDays: 90, clock })

let tables = 0

async function newTable(): Promise<string> {
  const table = `rows_${++tables}`
  await direct.command(
    `CREATE TABLE ${table} (id UInt32, text String) ENGINE = MergeTree ORDER BY id SETTINGS non_replicated_deduplication_window = 1000`,
  )
  return table
}

/** Every fourth batch has a bad row, so that halves and quarantine meet the faults as well. */
const isBad = (batch: number) => batch % 4 === 2

function linesOf(batch: number): Buffer {
  const good = Array.from({ length: isBad(batch) ? 1 : ROWS }, (_, row) => [batch * ROWS + row, `row ${row}`])
  const rows = isBad(batch) ? [...good, [-1, 'bad']] : good
  return Buffer.from(rows.map((row) => `${JSON.stringify(row)}\n`).join(''))
}

function exactlyOnce(batches: number) {
  const bad = Array.from({ length: batches }, (_, batch) => batch).filter(isBad).length
  const rows = (batches - bad) * ROWS + bad
  return { rows, different: rows, quarantined: bad }
}

/** As the sink does it: the same range until it is in, `enough` asked after each. Every failure is told. */
async function sinkAll(
  clickhouse: Pick<ClickHouse, 'insert' | 'query'>,
  table: string,
  tokenOf: (batch: number, attempt: number) => string,
  enough: () => boolean,
  onFailure: () => void = () => undefined,
): Promise<{ readonly batches: number; readonly failures: number }> {
  let failures = 0
  let batches = 0
  for (; batches < BATCHES_MIN || !enough(); batches += 1) {
    for (let attempt = 0; ; attempt += 1) {
      try {
        const context = { at: Date.now(), partition: 0, onQuarantine() {} }
        await insertRows(clickhouse, table, ['id', 'text'], linesOf(batches), tokenOf(batches, attempt), context)
        break
      } catch (error) {
        if (!(error instanceof Unavailable)) throw error
        failures += 1
        onFailure()
        await pause(RETRY_MS)
      }
    }
  }
  return { batches, failures }
}

const countsOf = async (table: string) => {
  const [rows] = await direct.query<{ all: number; different: number }>(
    `SELECT count() AS all, uniqExact(id) AS different FROM ${table}`,
  )
  const [bad] = await direct.query<{ all: number }>(
    `SELECT count() AS all FROM ${QUARANTINE_TABLE} WHERE source = {table:String}`,
    { table },
  )
  return { rows: rows?.all, different: rows?.different, quarantined: bad?.all }
}

/** The whole work under a fault, until `inject` is done and the fault over. `felt` resolves when it has made a call fail. */
async function sinkUnder(t: Test, inject: (felt: () => Promise<unknown>) => Promise<unknown>): Promise<void> {
  const table = await newTable()
  let injected = false
  let failed = 0
  const sinking = sinkAll(
    through,
    table,
    (batch) => `${table}/${batch}`,
    () => injected,
    () => {
      failed += 1
    },
  )
  await inject(() => until('the fault is felt', PATIENT_MS, () => failed > 0))
  injected = true
  const { failures, batches } = await sinking
  proxy.mode({ kind: 'pass' })
  t.ok(failures > 0, 'the fault was felt')
  t.same(await countsOf(table), exactlyOnce(batches))
}

/** A fault that ends. */
const passing = (mode: Mode, msMin: number) => async (felt: () => Promise<unknown>) => {
  await pause(100)
  proxy.mode(mode)
  await pause(msMin)
  await felt()
  proxy.mode({ kind: 'pass' })
}

const atOnce = () => true

t.test('without faults nothing fails', async (t) => {
  const table = await newTable()
  const done = await sinkAll(patient, table, (batch) => `${table}/${batch}`, atOnce)
  t.same(done, { batches: BATCHES_MIN, failures: 0 })
  t.same(await countsOf(table), exactlyOnce(BATCHES_MIN))
})

t.test('a new token for every attempt would double rows: the faults are real', async (t) => {
  const table = await newTable()
  proxy.mode({ kind: 'cutReply', times: 4 })
  const { failures } = await sinkAll(patient, table, (batch, attempt) => `${table}/${batch}/${attempt}`, atOnce)
  t.equal(failures, 4)
  const once = exactlyOnce(BATCHES_MIN)
  t.same(await countsOf(table), { ...once, rows: once.rows + 4 * ROWS })
})

t.test('a server that refuses connections', (t) => sinkUnder(t, passing({ kind: 'refuse' }, 500)))

t.test('500 for half of the requests', (t) =>
  sinkUnder(t, (felt) => {
    proxy.mode({ kind: 'http', status: 500, share: 0.5, seed })
    return felt()
  }),
)

t.test('503 in the place of half of the replies, after the effect', (t) =>
  sinkUnder(t, (felt) => {
    proxy.mode({ kind: 'http', status: 503, share: 0.5, seed, effect: true })
    return felt()
  }),
)

t.test('replies that are cut after the insert took effect', (t) =>
  sinkUnder(t, (felt) => {
    proxy.mode({ kind: 'cutReply', times: 10 })
    return felt()
  }),
)

t.test('requests that are cut on their way', (t) =>
  sinkUnder(t, passing({ kind: 'cutAfter', direction: 'toServer', bytes: 3_000 }, 500)),
)

t.test('a delay of 5 s: given up, repeated, and arriving late', (t) =>
  sinkUnder(t, passing({ kind: 'delay', ms: 5_000 }, FAULT_MS)),
)

t.test('a blackhole, and all that was held arriving at once', (t) =>
  sinkUnder(t, passing({ kind: 'blackhole' }, FAULT_MS)),
)

t.test('a blackhole on the way back only', (t) =>
  sinkUnder(t, passing({ kind: 'blackhole', direction: 'toClient' }, FAULT_MS)),
)

t.test('a server that is killed in the middle of inserts', (t) =>
  sinkUnder(t, async () => {
    for (let kill = 0; kill < KILLS; kill += 1) {
      await pause(20 + random.int(120))
      await server.kill9()
      await pause(100)
      await server.restart()
    }
  }),
)

t.test('a server that is paused', (t) =>
  sinkUnder(t, async (felt) => {
    await pause(100)
    server.pause()
    await pause(FAULT_MS)
    await felt()
    server.resume()
  }),
)

t.test('a cut result is never taken for a shorter one', async (t) => {
  const sql = 'SELECT number, toString(number) AS text FROM numbers(3000)'
  const whole = await through.query(sql)
  t.equal(whole.length, 3_000)
  const length = Buffer.byteLength(whole.map((row) => `${JSON.stringify(row)}\n`).join(''))
  for (let cut = 0; cut < CUTS; cut += 1) {
    const bytes = 1 + random.int(length)
    proxy.mode({ kind: 'cutAfter', direction: 'toClient', bytes })
    await t.rejects(through.query(sql), Unavailable, `after ${bytes} bytes`)
  }
  proxy.mode({ kind: 'pass' })
  t.same(await through.query(sql), whole)
})

t.test('queries and pings in a blackhole end in bounded time', async (t) => {
  proxy.mode({ kind: 'blackhole' })
  const [query, ping] = await Promise.all([
    through.query('SELECT 1', {}, { timeoutMsMax: 100 }).catch((error: unknown) => error),
    through.ping(),
  ])
  t.type(query, Unavailable)
  t.equal(ping, false)
  proxy.mode({ kind: 'pass' })
  await until('the next ping', 60_000, () => through.ping())
  t.same(await through.query('SELECT 1 AS one'), [{ one: 1 }])
})

t.test('closing fails the calls under way at once', async (t) => {
  const url = `http://127.0.0.1:${proxy.port}`
  const closing = openHttpClickHouse({ url, username, password, database: 'fingerpost', insertMsMax: HOUR_MS })
  const table = await newTable()
  proxy.mode({ kind: 'blackhole' })
  const calls = [
    closing.insert(table, ['id', 'text'], linesOf(0), { token: 'closing' }),
    closing.command(`DELETE FROM ${table} WHERE id = 0`),
    closing.query('SELECT 1', {}, { timeoutMsMax: HOUR_MS }),
  ].map((call) => call.catch((error: unknown) => error))
  await pause(100)
  // They would wait longer than this test may take.
  await closing.close()
  for (const failed of await Promise.all(calls)) t.type(failed, Unavailable)
  proxy.mode({ kind: 'pass' })
})

t.test(
  'a connection that idled over a restart of the server does not fail a call as anything but Unavailable',
  async (t) => {
    const queries = () =>
      Promise.all(Array.from({ length: 6 }, () => through.query('SELECT 1 AS one').catch((error: unknown) => error)))
    await queries()
    await server.stop()
    await server.restart()
    for (const answer of await queries()) if (answer instanceof Error) t.type(answer, Unavailable)
    t.same(await through.query('SELECT 1 AS one'), [{ one: 1 }])
  },
)
