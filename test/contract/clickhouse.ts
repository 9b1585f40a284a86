// What every ClickHouse must guarantee to its callers, whichever engine stands behind the port.

import { existsSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'
import { BadRow, type ClickHouse } from '../../src/clickhouse/clickhouse.ts'
import { engineCode } from '../../src/clickhouse/client.ts'
import { migrate } from '../../src/clickhouse/migrate.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { Unavailable, Unreadable } from '../../src/lib/failures.ts'
import { must } from '../../src/lib/must.ts'
import { sized } from '../helpers/depth.ts'
import { patchesContract } from './clickhouse-patches.ts'

export interface ClickHouseUnderTest {
  readonly clickhouse: ClickHouse
  /** Ends the engine as a crash would; the port must recover by itself. */
  readonly kill?: () => Promise<void>
  /** Closes the port in good order and opens the same data again. */
  readonly restart?: () => Promise<ClickHouse>
}

/** `door`: what depends on the way to the engine and on its process, where another file holds the same engine to the rest. */
export type Extent = 'whole' | 'door'

const DATABASE = 'fingerpost'
const PARALLEL = sized({ quick: 12, usual: 40, long: 120 })
/** A crash and a new start of the engine. */
const CRASHES = sized({ quick: false, usual: true, long: true })
const COLUMNS = ['id', 'text', 'at']
const TIMEOUT_EXCEEDED = 159
const AT = 1_767_225_600_123

const lines = (rows: readonly unknown[]) => Buffer.from(rows.map((row) => `${JSON.stringify(row)}\n`).join(''))
const rowsFrom = (first: number, count: number) =>
  Array.from({ length: count }, (_, index) => [first + index, `row ${first + index}`, AT])

/** What every caller does: repeats a call whose outcome is unknown. */
async function insist(call: () => Promise<unknown>): Promise<void> {
  const deadline = performance.now() + 90_000
  for (;;) {
    try {
      await call()
      return
    } catch (error) {
      if (!(error instanceof Unavailable) || performance.now() > deadline) throw error
    }
  }
}

/** Runs the suite against what `open` returns; it is opened once and closed at the end. */
export function clickhouseContract(
  t: Test,
  name: string,
  open: () => Promise<ClickHouseUnderTest>,
  extent: Extent = 'whole',
): void {
  t.test(name, async (t) => {
    const opened = await open()
    let { clickhouse } = opened
    const { kill, restart } = opened
    const run = `${process.pid}_${Date.now()}`
    let tables = 0
    t.teardown(async () => {
      for (let table = 1; table <= tables; table++) {
        await clickhouse.command(`DROP TABLE IF EXISTS contract_${run}_${table}`)
      }
      await clickhouse.close()
    })
    await migrate(clickhouse, { database: DATABASE, retentionDays: 90, clock: systemClock })

    const newTable = async () => {
      const table = `contract_${run}_${++tables}`
      await clickhouse.command(
        `CREATE TABLE ${table} (id UInt32, text String, at DateTime64(3, 'UTC')) ENGINE = MergeTree ORDER BY id
         SETTINGS non_replicated_deduplication_window = 100`,
      )
      return table
    }
    const count = async (table: string) =>
      must((await clickhouse.query<{ n: number }>(`SELECT count() AS n FROM ${table}`))[0]).n

    await t.test('an insert is readable when it resolves, values exact', async (t) => {
      const table = await newTable()
      await clickhouse.insert(table, COLUMNS, lines([[7, 'a', AT]]), { token: 'one' })
      const rows = await clickhouse.query(
        `SELECT id, text, toUnixTimestamp64Milli(at) AS ms, toUInt64(9007199254740991) AS large FROM ${table}`,
      )
      t.same(rows, [{ id: 7, text: 'a', ms: AT, large: Number.MAX_SAFE_INTEGER }])
    })

    if (extent === 'whole') {
      await t.test('no patch is lost to a mutation that runs beside it', (t) =>
        patchesContract(t, clickhouse, `contract_${run}_${++tables}`),
      )
    }

    await t.test('the same token twice adds no rows, another token does', async (t) => {
      const table = await newTable()
      const batch = lines(rowsFrom(0, 100))
      await clickhouse.insert(table, COLUMNS, batch, { token: 'range 1-100' })
      await clickhouse.insert(table, COLUMNS, batch, { token: 'range 1-100' })
      t.equal(await count(table), 100)
      await clickhouse.insert(table, COLUMNS, batch, { token: "it's 'another\\' one" })
      t.equal(await count(table), 200)
    })

    await t.test('the same token at the same time adds its rows once', async (t) => {
      const table = await newTable()
      const batch = lines(rowsFrom(0, 500))
      await Promise.all([1, 2, 3].map(() => clickhouse.insert(table, COLUMNS, batch, { token: 'same' })))
      t.equal(await count(table), 500)
    })

    await t.test('hostile values come back as they went in, as rows and as parameters', async (t) => {
      const table = await newTable()
      const hostile = [
        `'`,
        `"`,
        '`',
        '\\',
        `\\'`,
        `''`,
        '\n',
        '\n\n',
        '\r\n\t',
        'a\0b',
        '😀',
        '\u2028',
        '%',
        '%27',
        '{id:UInt32}',
        '--',
        '/*',
        `'; DROP TABLE ${table}; --`,
        `\n\nDROP TABLE ${table}\n`,
        `\\N`,
        '',
        ' ',
        '$1',
        '&database=system',
        'x'.repeat(20_000),
      ]
      await clickhouse.insert(table, COLUMNS, lines(hostile.map((text, id) => [id, text, AT])), { token: 'hostile' })
      const stored = await clickhouse.query<{ text: string }>(`SELECT text FROM ${table} ORDER BY id`)
      t.same(
        stored.map((row) => row.text),
        hostile,
      )
      for (const [id, text] of hostile.entries()) {
        const [row] = await clickhouse.query<{ id: number; given: string; list: string[] }>(
          `SELECT id, {text:String} AS given, {list:Array(String)} AS list FROM ${table} WHERE id = {id:UInt32} AND text = {text:String}`,
          { text, id, list: [text, 'end'] },
        )
        t.same(row, { id, given: text, list: [text, 'end'] }, `value ${id}`)
      }
      t.equal(await count(table), hostile.length)
    })

    await t.test('a bad row is a BadRow and adds no rows of its batch', async (t) => {
      const table = await newTable()
      const bad: unknown[] = [
        ['x', 'a', AT],
        [-1, 'a', AT],
        [1, 'a', 'yesterday'],
        [1, 'a'],
        [1, 'a', AT, 1],
        { id: 1 },
        [1.5, 'a', AT],
      ]
      for (const [index, row] of bad.entries()) {
        const batch = lines([...rowsFrom(0, 200), row, ...rowsFrom(300, 200)])
        await t.rejects(
          clickhouse.insert(table, COLUMNS, batch, { token: `bad ${index}` }),
          BadRow,
          JSON.stringify(row),
        )
      }
      for (const raw of ['nonsense\n', '[1,"a"', `[1,"\\ud800",${AT}]\n`, `[1,"a",${AT}]\n\nDROP TABLE ${table}\n`]) {
        const batch = Buffer.concat([lines(rowsFrom(0, 200)), Buffer.from(raw)])
        await t.rejects(clickhouse.insert(table, COLUMNS, batch, { token: raw }), BadRow, raw)
      }
      t.equal(await count(table), 0)
      await clickhouse.insert(table, COLUMNS, lines(rowsFrom(0, 10)), { token: 'bad 0' })
      t.equal(await count(table), 10, 'a refused token is not used up')
    })

    await t.test('a refusal does not repeat the values of the row', async (t) => {
      const table = await newTable()
      const batch = lines([[1, 'someone@example.com', 'yesterday']])
      const error: Error = await clickhouse.insert(table, COLUMNS, batch, { token: 'private' }).then(
        () => t.fail('accepted'),
        (refused) => refused,
      )
      t.type(error, BadRow)
      t.notMatch(JSON.stringify([error.message, error.stack, error.cause]), /someone|yesterday/)
    })

    await t.test('what is not the fault of a row is Unavailable', async (t) => {
      const table = await newTable()
      const batch = lines(rowsFrom(0, 1))
      await t.rejects(clickhouse.insert(`no_such_${run}`, COLUMNS, batch, { token: 'a' }), Unavailable)
      await t.rejects(clickhouse.insert(table, ['id', 'text', 'nope'], batch, { token: 'b' }), Unavailable)
      await t.rejects(clickhouse.query('SELECT'), Unavailable)
      await t.rejects(clickhouse.query('SELECT {missing:String}'), Unavailable)
      await t.rejects(clickhouse.query('SELECT number FROM numbers(100)', {}, { rowsMax: 10 }), Unavailable)
    })

    await t.test('a query cannot write', async (t) => {
      const table = await newTable()
      await clickhouse.insert(table, COLUMNS, lines(rowsFrom(0, 3)), { token: 'kept' })
      const out = join(tmpdir(), `contract-out-${run}`)
      t.teardown(() => rmSync(out, { force: true }))
      const attempts = [
        `INSERT INTO ${table} (id) SELECT 9`,
        `INSERT INTO ${table} (id) VALUES (9)`,
        `DROP TABLE ${table}`,
        `TRUNCATE TABLE ${table}`,
        `ALTER TABLE ${table} DELETE WHERE 1`,
        `DELETE FROM ${table} WHERE 1`,
        `SELECT 1; DROP TABLE ${table}`,
        `SELECT 1 INTO OUTFILE '${out}'`,
        `CREATE TABLE ${table}_b (id UInt8) ENGINE = Memory`,
        'KILL QUERY WHERE 1',
        'SET readonly = 0',
        `INSERT INTO FUNCTION file('${out}', 'TSV', 'x String') VALUES ('a')`,
        `SELECT 1 SETTINGS readonly = 0`,
      ]
      for (const sql of attempts) await t.rejects(clickhouse.query(sql), Unavailable, sql)
      t.notOk(existsSync(out))
      t.equal(await count(table), 3)
    })

    await t.test('a query cannot read files or the network', async (t) => {
      const secret = join(tmpdir(), `contract-secret-${run}`)
      writeFileSync(secret, 'secret\n')
      t.teardown(() => rmSync(secret))
      const attempts = [
        `SELECT file('${secret}')`,
        `SELECT * FROM file('${secret}', 'TSV', 'x String')`,
        `SELECT FILE ('${secret}')`,
        `SELECT * FROM (SELECT * FROM file('${secret}', 'TSV', 'x String') SETTINGS readonly = 0)`,
        `SELECT \`file\`('${secret}')`,
        `SELECT "f\\x69le"('${secret}')`,
        `SELECT file/**/('${secret}')`,
        `WITH file('${secret}') AS x SELECT x`,
        `SELECT * FROM '${secret}'`,
        `DESCRIBE file('${secret}')`,
        `SELECT * FROM url('http://127.0.0.1:1/', 'TSV', 'x String')`,
        `SELECT * FROM s3('http://127.0.0.1:1/a/b', 'TSV', 'x String')`,
        `SELECT * FROM remote('127.0.0.1:1', system.one)`,
      ]
      for (const sql of attempts) await t.rejects(clickhouse.query(sql), Unavailable, sql)
    })

    await t.test('slow queries end at their limit, and inserts proceed meanwhile', async (t) => {
      const table = await newTable()
      // Inserts that had to wait for the queries would be the later ones every time, those on a busy machine only sometimes.
      let isFree = false
      let inserts = 0
      for (let round = 0; round < 5 && !isFree; round++) {
        let ended = 0
        const slow = Array.from({ length: 6 }, async () => {
          const error = await clickhouse.query('SELECT sleep(3)', {}, { timeoutMsMax: 1_000 }).catch((failed) => failed)
          ended++
          t.type(error, Unavailable)
          return engineCode(error)
        })
        for (let batch = 0; batch < 5; batch++, inserts++) {
          await clickhouse.insert(table, COLUMNS, lines(rowsFrom(inserts * 10, 10)), { token: `meanwhile ${inserts}` })
        }
        isFree = ended < slow.length
        // The port itself gives up those that an engine on a busy machine comes to late.
        const codes = new Set(await Promise.all(slow))
        t.ok(codes.delete(TIMEOUT_EXCEEDED))
        t.same(
          [...codes].filter((code) => code !== null),
          [],
        )
      }
      t.ok(isFree, 'the inserts did not wait for the queries')
      t.equal(await count(table), inserts * 10)
    })

    await t.test('an aborted query fails at once and leaves its place to others', async (t) => {
      const abort = new AbortController()
      const endless = 'SELECT count() FROM numbers(1000000000000) WHERE cityHash64(number) = 1'
      const running = Array.from({ length: 8 }, () =>
        clickhouse.query(endless, {}, { timeoutMsMax: 60_000, signal: abort.signal }).catch((error) => error),
      )
      await systemClock.sleep(100)
      abort.abort()
      for (const result of await Promise.all(running)) t.type(result, Unavailable)
      t.same(await clickhouse.query('SELECT 1 AS one'), [{ one: 1 }])
      await t.rejects(
        clickhouse.query('SELECT 1', {}, { signal: abort.signal }),
        Unavailable,
        'aborted before it began',
      )
    })

    await t.test('parallel queries see their own parameters and limits only', async (t) => {
      const answers = await Promise.all(
        Array.from({ length: PARALLEL }, async (_, index) => {
          const timeoutMsMax = 10_000 + (index % 4) * 1_000
          const [row] = await clickhouse.query<{ n: number; seconds: string }>(
            `SELECT {n:UInt32} AS n, toString(getSetting('max_execution_time')) AS seconds`,
            { n: index },
            { timeoutMsMax },
          )
          return row?.n === index && Number(row.seconds) === timeoutMsMax / 1_000
        }),
      )
      t.notOk(answers.includes(false))
      await t.rejects(clickhouse.query('SELECT {n:UInt32}'), Unavailable, 'no value is left over')
    })

    await t.test('the migration is repeatable, and a newer schema is refused', async (t) => {
      const config = { database: DATABASE, retentionDays: 90, clock: systemClock }
      const version = await migrate(clickhouse, config)
      t.equal(await migrate(clickhouse, { ...config, retentionDays: 30 }), version)
      const ttl =
        "SELECT position(create_table_query, 'toIntervalDay(30)') > 0 AS short FROM system.tables WHERE name = 'events'"
      t.match(await clickhouse.query(`${ttl} AND database = {database:String}`, { database: DATABASE }), [{ short: 1 }])
      const newer = lines([[version + 1, 30, Date.now()]])
      const columns = ['version', 'retention_days', 'applied_at']
      await clickhouse.insert('schema_versions', columns, newer, { token: `newer ${run}` })
      await t.rejects(migrate(clickhouse, config), Unreadable)
      await clickhouse.command(
        'ALTER TABLE schema_versions DELETE WHERE version > {version:UInt32} SETTINGS mutations_sync = 1',
        { version },
      )
      t.equal(await migrate(clickhouse, config), version)
    })

    if (restart && CRASHES) {
      await t.test('a restart keeps rows and remembers tokens', async (t) => {
        const table = await newTable()
        const batch = lines(rowsFrom(0, 50))
        await clickhouse.insert(table, COLUMNS, batch, { token: 'before' })
        const old = clickhouse
        clickhouse = await restart()
        await t.rejects(old.query('SELECT 1'), Unavailable, 'a closed port says so')
        await clickhouse.insert(table, COLUMNS, batch, { token: 'before' })
        t.equal(await count(table), 50)
      })
    }

    if (kill && CRASHES) {
      await t.test('a crash fails the calls in flight, later calls work, no acknowledged row is lost', async (t) => {
        const table = await newTable()
        const repeatedTable = await newTable()
        const known = lines(rowsFrom(0, 1_000))
        await clickhouse.insert(repeatedTable, COLUMNS, known, { token: 'crash' })
        const inFlight = clickhouse.query('SELECT sleep(3)').catch((error) => error)
        const repeated = new Set<number>()
        const inserting = (async () => {
          for (let batch = 0; batch < 30; batch++) {
            const bytes = lines(rowsFrom(batch * 100, 100))
            let calls = 0
            await insist(() => {
              if (calls++ > 0) repeated.add(batch)
              return clickhouse.insert(table, COLUMNS, bytes, { token: `batch ${batch}` })
            })
          }
        })()
        await systemClock.sleep(150)
        await kill()
        t.type(await inFlight, Unavailable)
        await inserting
        await insist(() => clickhouse.insert(repeatedTable, COLUMNS, known, { token: 'crash' }))
        t.equal(await count(repeatedTable), 1_000, 'the same token twice with a crash between adds no rows')
        const found = await clickhouse.query<{ batch: number; n: number }>(
          `SELECT intDiv(id, 100) AS batch, count() AS n FROM ${table} GROUP BY batch ORDER BY batch`,
        )
        const counts = new Map(found.map(({ batch, n }) => [batch, n]))
        t.ok(repeated.size <= 1, 'one insert met the crash')
        for (let batch = 0; batch < 30; batch++) {
          const rows = counts.get(batch) ?? 0
          // Of one that met the crash only the token may be there.
          const isWhole = rows === 100 || (rows === 0 && repeated.has(batch) && clickhouse.tokenFirst)
          if (!isWhole) t.fail(`${rows} rows of insert ${batch}`)
        }
      })
    }
  })
}
