// What a backtest costs: five kinds of rule over thirty days of history, each beside the bare engine in the same run: a scan of
// the columns that the rule touches, and the rule's condition counted once. With --ingest, also what four of them do to ingest.
// npm run bench -- backtest [--events 1000000] [--runs 7] [--list 100000] [--ingest]

import { randomBytes } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { openEmbeddedClickHouse } from '../src/clickhouse/embedded.ts'
import { migrate } from '../src/clickhouse/migrate.ts'
import type { ConditionGroup, Leaf } from '../src/domain/rule.ts'
import { EVENTS_TABLE } from '../src/events/row.ts'
import { systemClock } from '../src/lib/clock.ts'
import { type BacktestNeeds, backtest } from '../src/reads/backtest.ts'
import { openListSnapshots } from '../src/reads/list-snapshots.ts'
import type { ListSource } from '../src/records/list-source.ts'
import { listsNamed } from '../src/rules/leaves.ts'
import { conditionSql } from '../src/rules/to-sql.ts'
import { openSqlParams } from '../src/rules/to-sql-params.ts'
import { fillHistory } from './backtest-data.ts'
import { benchIngest } from './backtest-ingest.ts'

const { values } = parseArgs({
  args: process.argv.slice(2).filter((arg) => arg !== 'backtest'),
  options: {
    events: { type: 'string', default: '1000000' },
    runs: { type: 'string', default: '7' },
    list: { type: 'string', default: '100000' },
    ingest: { type: 'boolean', default: false },
  },
})
const events = Number(values.events)
const runs = Number(values.runs)
const listEntries = Number(values.list)
const WORKSPACE = 'ws_bench'
const DAYS = 30
const DAY_MS = 86_400_000

const leaf = (field: string, operator: Leaf['operator'], value: Leaf['value']): Leaf => ({ field, operator, value })
const RULES: readonly { readonly name: string; readonly columns: string; readonly conditions: ConditionGroup }[] = [
  {
    name: 'one condition',
    columns: 'score_suspect',
    conditions: { operator: 'AND', rules: [leaf('scores.suspect', 'gte', 80)] },
  },
  {
    name: 'five AND',
    columns: 'score_suspect, sig_vpn, platform, country, total_visits',
    conditions: {
      operator: 'AND',
      rules: [
        leaf('scores.suspect', 'gte', 30),
        leaf('signals.vpn', 'equals', true),
        leaf('device.platform', 'equals', 'Windows'),
        leaf('ip.country', 'in', ['CZ', 'DE', 'FR']),
        leaf('visitor.totalVisits', 'gte', 3),
      ],
    },
  },
  {
    name: 'five OR',
    columns: 'score_suspect, sig_tor, country, total_visits, score_bot',
    conditions: {
      operator: 'OR',
      rules: [
        leaf('scores.suspect', 'gte', 90),
        leaf('signals.tor', 'equals', true),
        leaf('ip.country', 'equals', 'NG'),
        leaf('visitor.totalVisits', 'gte', 39),
        leaf('scores.bot', 'gte', 0.9),
      ],
    },
  },
  {
    name: `in ${listEntries} entries`,
    columns: 'visitor_hash',
    conditions: { operator: 'AND', rules: [leaf('visitorId', 'in', 'known_visitors')] },
  },
  {
    name: 'contains',
    columns: 'email',
    conditions: { operator: 'AND', rules: [leaf('email', 'contains', '@corp')] },
  },
]

const median = (numbers: readonly number[]): number =>
  numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)] as number

async function timed(work: () => Promise<unknown>): Promise<number> {
  const startedAt = performance.now()
  await work()
  return performance.now() - startedAt
}

async function benchRules(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'fingerpost-bench-'))
  const quiet = { info() {}, warn() {} }
  const clickhouse = await openEmbeddedClickHouse({
    dataDir: folder,
    database: 'fingerpost',
    clock: systemClock,
    log: quiet,
  })
  /** CPU of the engine so far, milliseconds. */
  const cpuMs = (): number => {
    const fields = readFileSync(`/proc/${clickhouse.pid()}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? []
    return (Number(fields[11]) + Number(fields[12])) * 10
  }
  try {
    await migrate(clickhouse, { database: 'fingerpost', retentionDays: 90, clock: systemClock })
    const nowMs = Date.now()
    const filling = await timed(() => fillHistory(clickhouse, WORKSPACE, events, nowMs, () => {}))
    console.log(`${events} events made in ${(filling / 1_000).toFixed(1)} s; load ${loadavg()[0]?.toFixed(1)}`)

    const rows = await clickhouse.query<{ visitor_id: string }>(
      `SELECT DISTINCT visitor_id FROM ${EVENTS_TABLE} WHERE visitor_hash % 3 = 0 LIMIT {count:UInt32}`,
      { count: listEntries },
      { rowsMax: listEntries, timeoutMsMax: 60_000 },
    )
    const entries = rows.map((row) => row.visitor_id)
    // What the visitors of a small history do not fill is filled with others.
    while (entries.length < listEntries) entries.push(`pv_${String(entries.length).padStart(20, '0')}`)
    const lists: ListSource = {
      find: async (_workspace, _env, name) => ({
        id: `lst_${name}`,
        name,
        type: 'visitor',
        version: 1,
        entryCount: entries.length,
      }),
      async *values() {
        for (let from = 0; from < entries.length; from += 2_000) yield entries.slice(from, from + 2_000)
      },
    }
    const random = (n: number) => new Uint8Array(randomBytes(n))
    const snapshots = openListSnapshots({ clickhouse, lists, clock: systemClock, random })
    const loading = await timed(() => snapshots.table(WORKSPACE, 'live', 'known_visitors'))
    console.log(`a list of ${entries.length} entries loaded in ${loading.toFixed(0)} ms, once per version`)
    const needs: BacktestNeeds = {
      clickhouse,
      kv: { scan: async () => [], position: async () => 1 },
      snapshots,
      partitions: 1,
      clock: systemClock,
      retentionDays: () => 90,
    }
    const window =
      'workspace_id = {workspace:String} AND env = {env:String} AND ts >= fromUnixTimestamp64Milli({from:Int64})'
    const ask = (sql: string, params: Readonly<Record<string, unknown>> = {}) =>
      clickhouse.query(
        sql,
        { ...params, workspace: WORKSPACE, env: 'live', from: nowMs - DAYS * DAY_MS },
        { timeoutMsMax: 60_000, background: true },
      )

    for (const { name, columns, conditions } of RULES) {
      const params = openSqlParams()
      const tables = new Map(
        await Promise.all(
          [...listsNamed(conditions)].map(
            async (list) => [list, await snapshots.table(WORKSPACE, 'live', list)] as const,
          ),
        ),
      )
      const condition = conditionSql(conditions, { params, scores: true, lists: (list) => tables.get(list) ?? null })
      const scan = () => ask(`SELECT count() FROM ${EVENTS_TABLE} WHERE ${window} AND NOT ignore(${columns})`)
      const count = () => ask(`SELECT countIf(${condition}) FROM ${EVENTS_TABLE} WHERE ${window}`, params.values)
      const question = {
        workspace: WORKSPACE,
        env: 'live',
        conditions,
        verdict: 'block',
        scores: true,
        days: DAYS,
        sampleSize: 10,
      } as const
      let matched = 0
      let basis = ''
      const whole = async () => {
        const result = await backtest(needs, question, new AbortController().signal)
        matched = result.matchCount
        basis = result.fprBasis
      }
      const kinds = { scan, count, whole }
      const wall: Record<keyof typeof kinds, number[]> = { scan: [], count: [], whole: [] }
      const cpu: Record<keyof typeof kinds, number[]> = { scan: [], count: [], whole: [] }
      // In turns, so that a busy moment of the machine falls on all of them; the first round warms up.
      for (let run = 0; run <= runs; run++) {
        for (const kind of ['scan', 'count', 'whole'] as const) {
          const before = cpuMs()
          const ms = await timed(kinds[kind])
          if (run === 0) continue
          wall[kind].push(ms)
          cpu[kind].push(cpuMs() - before)
        }
      }
      const of = (kind: keyof typeof kinds) => `${median(wall[kind]).toFixed(0)} ms (cpu ${median(cpu[kind])})`
      const ratio = (to: 'scan' | 'count') => (median(wall.whole) / median(wall[to])).toFixed(1)
      console.log(
        `${name.padEnd(18)} backtest ${of('whole')} | engine: columns ${of('scan')}, condition ${of('count')} | ` +
          `ratio ${ratio('scan')} and ${ratio('count')} | ${matched} match, basis ${basis}`,
      )
    }
  } finally {
    await clickhouse.close()
    rmSync(folder, { recursive: true, force: true })
  }
}

await benchRules()
if (values.ingest) await benchIngest(events)
