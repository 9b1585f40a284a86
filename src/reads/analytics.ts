// Counts of a range of events: by verdict, platform, country or time, and by signal with what changed. Always from the rows
// themselves, so that what is erased is gone from here as well (service-api.md Analytics).

import type { ClickHouse } from '../clickhouse/clickhouse.ts'
import { type Env, SIGNAL_NAMES, type SignalName, type Verdict } from '../domain/event.ts'
import { EVENTS_TABLE } from '../events/row.ts'
import type { Kv } from '../kv/kv.ts'
import type { Clock } from '../lib/clock.ts'
import { DAY_MS } from '../lib/durations.ts'
import { listErasing } from '../records/erasures.ts'
import { bucketOf, bucketsIn, type TimeUnit, trendOf } from './analytics-figures.ts'
import { rateOf } from './backtest-figures.ts'
import type { RetentionDays } from './event-rows.ts'
import { SIGNAL_COLUMNS } from './signal-columns.ts'
import { unerased } from './unerased.ts'

export interface AnalyticsNeeds {
  readonly clickhouse: Pick<ClickHouse, 'query'>
  readonly kv: Pick<Kv, 'scan' | 'position'>
  readonly partitions: number
  readonly clock: Pick<Clock, 'now'>
  /** Older events do not exist for anyone, whether ClickHouse has dropped them yet or not. */
  readonly retentionDays: RetentionDays
}

export const EVENT_GROUPS = ['verdict', 'platform', 'country', 'hour', 'day', 'week'] as const
export type EventGroup = (typeof EVENT_GROUPS)[number]
export const SIGNAL_GROUPS = ['signal', 'day', 'week'] as const

export interface TimeRange {
  readonly workspace: string
  readonly env: Env
  /** Milliseconds; the first inclusive, the second exclusive. */
  readonly from: number
  readonly to: number
  readonly abort: AbortSignal
}

export interface CountedEvents {
  readonly total: number
  /** By `key`, the name of the group: a text, or the first millisecond of an hour, day or week. */
  readonly groups: readonly { readonly key: string | number; readonly count: number }[]
}

export interface CountedSignal {
  readonly signal: SignalName
  /** First millisecond of the day or week; null when the whole range was counted. */
  readonly bucket: number | null
  readonly count: number
  /** Of the events of its bucket. */
  readonly rate: number
  /** In the time before, as long. */
  readonly previousRate: number
  readonly trend: 'up' | 'stable' | 'down'
}

export interface CountedSignals {
  readonly total: number
  readonly signals: readonly CountedSignal[]
}

export interface Analytics {
  /** Fail with Unavailable when ClickHouse cannot answer or `abort` does. */
  events(range: TimeRange, by: EventGroup | null, verdict: Verdict | null): Promise<CountedEvents>
  signals(range: TimeRange, by: 'day' | 'week' | null, only: SignalName | null): Promise<CountedSignals>
}

const GROUPS_MAX = 250
const OTHER = 'other'
const ANSWER_MS_MAX = 10_000
/** More than there are countries and verdicts; platforms beyond are folded here and counted by ClickHouse. */
const ROWS_MAX = 5_000
const KEYS: Readonly<Record<EventGroup, string>> = {
  verdict: 'toString(verdict)',
  platform: "if(platform = '', 'unknown', platform)",
  country: "if(country = '', 'unknown', country)",
  hour: 'toUnixTimestamp(toStartOfHour(ts))',
  day: 'toUnixTimestamp(toStartOfDay(ts))',
  week: "toUnixTimestamp(toStartOfDay(toMonday(ts), 'UTC'))",
}
const isTime = (by: EventGroup): by is TimeUnit => by === 'hour' || by === 'day' || by === 'week'
/** One for all of them: the name is taken from the table, the place from here. */
const SIGNAL_COUNTS = SIGNAL_NAMES.map((name, i) => `countIf(${SIGNAL_COLUMNS[name]}) AS s${i}`).join(', ')

export function openAnalytics({ clickhouse, kv, partitions, clock, retentionDays }: AnalyticsNeeds): Analytics {
  /** Fixed text and typed parameters: no byte of a value ever becomes SQL. */
  async function ask<Row>(
    { workspace, env, from, to, abort }: TimeRange,
    sql: (window: string) => string,
    more: Readonly<Record<string, unknown>> = {},
  ): Promise<Row[]> {
    const leftOut = unerased(await listErasing(kv, partitions, workspace, env))
    const oldest = clock.now() - retentionDays(workspace) * DAY_MS
    const window = `workspace_id = {workspace:String} AND env = {env:String}
      AND ts >= fromUnixTimestamp64Milli({from:Int64}) AND ts < fromUnixTimestamp64Milli({to:Int64})${leftOut.sql}`
    const params = { workspace, env, from: Math.max(from, oldest), to, ...leftOut.params, ...more }
    return clickhouse.query<Row>(sql(window), params, { signal: abort, timeoutMsMax: ANSWER_MS_MAX, rowsMax: ROWS_MAX })
  }

  return {
    async events(range, by, verdict) {
      const only = verdict === null ? '' : ' AND verdict = {verdict:String}'
      const more = verdict === null ? {} : { verdict }
      if (by === null) {
        const [row] = await ask<{ events: number }>(
          range,
          (window) => `SELECT count() AS events FROM ${EVENTS_TABLE} WHERE ${window}${only}`,
          more,
        )
        return { total: row?.events ?? 0, groups: [] }
      }
      const rows = await ask<{ key: string | number; events: number }>(
        range,
        (window) =>
          `SELECT ${KEYS[by]} AS key, count() AS events FROM ${EVENTS_TABLE} WHERE ${window}${only}
           GROUP BY key ORDER BY events DESC, key LIMIT ${ROWS_MAX}`,
        more,
      )
      const total = rows.reduce((sum, { events }) => sum + events, 0)
      if (!isTime(by)) return { total, groups: folded(rows.map(({ key, events }) => ({ key, count: events }))) }
      const counts = new Map(rows.map(({ key, events }) => [Number(key) * 1_000, events]))
      return { total, groups: bucketsIn(range, by).map((key) => ({ key, count: counts.get(key) ?? 0 })) }
    },

    async signals(range, by, only) {
      const { from, to } = range
      const names = only === null ? SIGNAL_NAMES : [only]
      // What comes before is counted along: the whole range once more, or the bucket before the first.
      const first = by === null ? from : bucketOf(from, by)
      const before = by === null ? from - (to - from) : bucketOf(first - 1, by)
      const key = by === null ? 'ts >= fromUnixTimestamp64Milli({first:Int64})' : KEYS[by]
      const rows = await ask<Record<string, number>>(
        { ...range, from: before },
        (window) =>
          `SELECT ${key} AS key, count() AS events, ${SIGNAL_COUNTS} FROM ${EVENTS_TABLE}
           WHERE ${window} AND (ts >= fromUnixTimestamp64Milli({begin:Int64}) OR ts < fromUnixTimestamp64Milli({first:Int64}))
           GROUP BY key`,
        { first, begin: from },
      )
      const counted = new Map(rows.map((row) => [by === null ? Number(row.key) : Number(row.key) * 1_000, row]))
      const [keys, previous] =
        by === null ? [[1], (_: number) => 0] : [bucketsIn(range, by), (bucket: number) => bucketOf(bucket - 1, by)]
      const share = (bucket: number, name: SignalName) => ({
        part: Number(counted.get(bucket)?.[`s${SIGNAL_NAMES.indexOf(name)}`] ?? 0),
        whole: Number(counted.get(bucket)?.events ?? 0),
      })
      const total = keys.reduce((sum, bucket) => sum + Number(counted.get(bucket)?.events ?? 0), 0)
      const signals = keys.flatMap((bucket) =>
        names.map((signal) => {
          const [now, then] = [share(bucket, signal), share(previous(bucket), signal)]
          const figures = { count: now.part, rate: rateOf(now), previousRate: rateOf(then), trend: trendOf(now, then) }
          return { signal, bucket: by === null ? null : bucket, ...figures }
        }),
      )
      return { total, signals }
    },
  }
}

/** The largest as they are, all smaller ones as one. */
function folded(groups: CountedEvents['groups']): CountedEvents['groups'] {
  if (groups.length <= GROUPS_MAX) return groups
  const rest = groups.slice(GROUPS_MAX).reduce((sum, { count }) => sum + count, 0)
  return [...groups.slice(0, GROUPS_MAX), { key: OTHER, count: rest }]
}
