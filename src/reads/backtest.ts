// What a rule would have done to the events of the last days, by itself: its conditions as SQL over events as they were
// decided, lists as they are now.

import type { ClickHouse } from '../clickhouse/clickhouse.ts'
import type { Env, Verdict } from '../domain/event.ts'
import type { ConditionGroup } from '../domain/rule.ts'
import { EVENTS_TABLE } from '../events/row.ts'
import type { Kv } from '../kv/kv.ts'
import type { Clock } from '../lib/clock.ts'
import { DAY_MS } from '../lib/durations.ts'
import { Unavailable } from '../lib/failures.ts'
import { ERASED_ID_SQL, listErasing } from '../records/erasures.ts'
import { listsNamed } from '../rules/leaves.ts'
import { conditionSql } from '../rules/to-sql.ts'
import type { SqlListTable } from '../rules/to-sql-lists.ts'
import { openSqlParams } from '../rules/to-sql-params.ts'
import {
  byDay,
  type CountedGroup,
  estimateFpr,
  type FigureShare,
  type FprEstimate,
  LABELS_MIN,
  labelled,
  quality,
  totals,
  verdictMatrix,
  wronged,
} from './backtest-figures.ts'
import type { RetentionDays } from './event-rows.ts'
import type { ListSnapshots } from './list-snapshots.ts'

export const BACKTEST_DAYS_MAX = 30
export const BACKTEST_SAMPLE_MAX = 100
/** From the first question to ClickHouse to the answer. */
export const BACKTEST_MS_MAX = 30_000

export interface BacktestNeeds {
  readonly clickhouse: Pick<ClickHouse, 'query'>
  readonly kv: Pick<Kv, 'scan' | 'position'>
  readonly snapshots: ListSnapshots
  readonly partitions: number
  readonly clock: Pick<Clock, 'now' | 'monotonic' | 'sleep'>
  /** Older events do not exist for anyone, whether ClickHouse has dropped them yet or not. */
  readonly retentionDays: RetentionDays
}

export interface BacktestQuestion {
  readonly workspace: string
  readonly env: Env
  readonly conditions: ConditionGroup
  /** Of the rule's action; null when there is none. */
  readonly verdict: Verdict | null
  /** False: the plan has no scores, and they are missing as they are for its live rules. */
  readonly scores: boolean
  readonly days: number
  readonly sampleSize: number
}

export interface BacktestResult extends FprEstimate {
  readonly matchCount: number
  readonly totalEvents: number
  readonly matchRate: number
  readonly precision: number | null
  readonly recall: number | null
  readonly labeled: { readonly legitimate: number; readonly fraud: number }
  readonly days: number
  readonly durationMs: number
  readonly listState: 'current'
  readonly impact: Readonly<Record<string, number>>
  readonly byDay: readonly { readonly day: string; readonly total: number; readonly matched: number }[]
  /** Newest first. `timestamp` in milliseconds. */
  readonly sample: readonly { readonly requestId: string; readonly visitorId: string; readonly timestamp: number }[]
}

/** Groups of a count: days, verdicts, labels, matched or not. */
const GROUPS_MAX = (BACKTEST_DAYS_MAX + 1) * 4 * 3 * 2
/** As many tell a share apart to a tenth of a percent, and all of ten million would take longer than everything else. */
const PROXY_EVENTS = 1_000_000
/** What the proxy takes for harmless, in the row's fixed point. */
const HARMLESS = "label != 'fraud' AND verdict IN ('allow', 'none') AND score_suspect < 2000"

/**
 * Fails with Unavailable when ClickHouse cannot answer, when BACKTEST_MS_MAX is over or when `signal` aborts, which also ends
 * what ClickHouse is doing for it.
 */
export async function backtest(
  { clickhouse, kv, snapshots, partitions, clock, retentionDays }: BacktestNeeds,
  question: BacktestQuestion,
  signal: AbortSignal,
): Promise<BacktestResult> {
  const { workspace, env, conditions, verdict, days, sampleSize } = question
  const startedAt = clock.monotonic()
  const nowMs = clock.now()
  const fromMs = nowMs - Math.min(days, retentionDays(workspace)) * DAY_MS
  const [erasing, lists] = await beforeAbort(
    Promise.all([listErasing(kv, partitions, workspace, env), tablesOf(snapshots, question)]),
    signal,
  )

  const literals = snapshots.literals()
  const params = openSqlParams(literals.store)
  const condition = conditionSql(conditions, {
    params,
    scores: question.scores,
    lists: (name) => lists.get(name) ?? null,
  })
  await beforeAbort(literals.load(), signal)
  const unerased = erasing.length === 0 ? '' : ` AND ${ERASED_ID_SQL} NOT IN ${params.add('Array(String)', erasing)}`
  const windowSql = `workspace_id = {workspace:String} AND env = {env:String} AND ts >= fromUnixTimestamp64Milli({from:Int64})${unerased}`
  const windowParams = { ...params.values, workspace, env, from: fromMs }

  const ask = <Row>(sql: string, more: Readonly<Record<string, unknown>> = {}): Promise<Row[]> => {
    const leftMs = BACKTEST_MS_MAX - (clock.monotonic() - startedAt)
    if (leftMs <= 0) throw new Unavailable('the backtest took too long')
    return clickhouse.query<Row>(
      sql,
      { ...windowParams, ...more },
      { signal, timeoutMsMax: leftMs, rowsMax: GROUPS_MAX, background: true },
    )
  }

  // One key of 16 bits, since the engine counts by such a key in an array, and by several columns in a hash table.
  const firstDay = Math.floor(fromMs / DAY_MS)
  const groups = await ask<CountedRow>(
    `SELECT toUInt16((intDiv(toUnixTimestamp64Milli(ts), ${DAY_MS}) - {firstDay:Int64}) * 32
       + CAST(verdict, 'Int8') * 8 + CAST(label, 'Int8') * 2 + (${condition})) AS key, count() AS events
     FROM ${EVENTS_TABLE} WHERE ${windowSql} GROUP BY key`,
    { firstDay },
  ).then((rows) => rows.map((row) => toGroup(row, firstDay)))
  const { part: matchCount, whole: totalEvents } = totals(groups)
  const labels = labelled(groups, wronged(verdict))
  const needsProxy = verdict !== 'allow' && labels.whole < LABELS_MIN && totalEvents > 0
  const [proxy, sample] = await Promise.all([needsProxy ? countHarmless() : null, newest()])

  return {
    matchCount,
    totalEvents,
    matchRate: totalEvents === 0 ? 0 : matchCount / totalEvents,
    ...estimateFpr(labels, proxy),
    ...quality(groups, verdict),
    labeled: { legitimate: labelled(groups, 'legitimate').whole, fraud: labelled(groups, 'fraud').whole },
    days,
    durationMs: Math.round(clock.monotonic() - startedAt),
    listState: 'current',
    impact: verdictMatrix(groups, verdict),
    byDay: byDay(groups, fromMs, nowMs),
    sample,
  }

  /** Harmless events of visitors that came on two days or more; of a long history those of one visitor in so many. */
  async function countHarmless(): Promise<FigureShare> {
    const oneIn = Math.ceil(totalEvents / PROXY_EVENTS)
    const ofThose = oneIn > 1 ? `PREWHERE visitor_hash % {oneIn:UInt32} = 0 WHERE ${windowSql}` : `WHERE ${windowSql}`
    // Who was seen before the day of one of its events came on two days; so did whoever has such an event later.
    const [row] = await ask<{ whole: number; part: number }>(
      `SELECT sum(harmless) AS whole, sum(matched) AS part FROM (
         SELECT countIf(${HARMLESS}) AS harmless, countIf(${HARMLESS} AND ${condition}) AS matched
         FROM ${EVENTS_TABLE} ${ofThose} GROUP BY visitor_hash
         HAVING max(intDiv(toUnixTimestamp64Milli(first_seen_at), ${DAY_MS}) < intDiv(toUnixTimestamp64Milli(ts), ${DAY_MS})))`,
      oneIn > 1 ? { oneIn } : {},
    )
    return row ?? { whole: 0, part: 0 }
  }

  async function newest(): Promise<BacktestResult['sample']> {
    const wanted = Math.min(sampleSize, matchCount)
    if (wanted === 0) return []
    const rows = await ask<{ request_id: string; visitor_id: string; at: number }>(
      `SELECT request_id, visitor_id, toUnixTimestamp64Milli(ts) AS at FROM ${EVENTS_TABLE}
       WHERE ${windowSql} AND toDate(ts) IN {days:Array(Date)} AND ${condition}
       ORDER BY ts DESC, request_id DESC LIMIT {rows:UInt32}`,
      { days: newestDays(groups, wanted), rows: wanted },
    )
    return rows.map((row) => ({ requestId: row.request_id, visitorId: row.visitor_id, timestamp: row.at }))
  }
}

/** The latest days that together have that many matches: only there the newest ones can be. */
function newestDays(groups: readonly CountedGroup[], wanted: number): string[] {
  const matches = new Map<string, number>()
  for (const { day, matched, events } of groups) if (matched) matches.set(day, (matches.get(day) ?? 0) + events)
  const days: string[] = []
  let found = 0
  for (const [day, events] of [...matches].sort(([a], [b]) => (a < b ? 1 : -1))) {
    if (found >= wanted) break
    days.push(day)
    found += events
  }
  return days
}

interface CountedRow {
  readonly key: number
  readonly events: number
}

/** As the table's enums number them. */
const VERDICT_NUMBERS = [null, 'allow', 'challenge', 'block'] as const
const LABEL_NUMBERS = [null, 'fraud', 'legitimate'] as const

const toGroup = ({ key, events }: CountedRow, firstDay: number): CountedGroup => ({
  day: new Date((firstDay + (key >> 5)) * DAY_MS).toISOString().slice(0, 10),
  verdict: VERDICT_NUMBERS[(key >> 3) & 3] ?? null,
  label: LABEL_NUMBERS[(key >> 1) & 3] ?? null,
  matched: (key & 1) === 1,
  events,
})

async function tablesOf(
  snapshots: ListSnapshots,
  { workspace, env, conditions }: BacktestQuestion,
): Promise<ReadonlyMap<string, SqlListTable | null>> {
  const names = [...listsNamed(conditions)]
  const tables = await Promise.all(names.map((name) => snapshots.table(workspace, env, name)))
  return new Map(names.map((name, i) => [name, tables[i] ?? null]))
}

/** Waits no longer than the signal allows; the work itself goes on. */
async function beforeAbort<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  let abort = () => {}
  const aborted = new Promise<never>((_, reject) => {
    abort = () => reject(new Unavailable('the backtest was aborted'))
    if (signal.aborted) abort()
    signal.addEventListener('abort', abort)
  })
  try {
    return await Promise.race([work, aborted])
  } finally {
    signal.removeEventListener('abort', abort)
    aborted.catch(() => {})
    work.catch(() => {})
  }
}
