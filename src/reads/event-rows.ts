// Rows of events as ClickHouse has them: pages of what meets a filter, newest first, and those with given ids. Nobody reads whom an
// erasure has taken, nor what is past its retention.

import type { ClickHouse } from '../clickhouse/clickhouse.ts'
import type { Env } from '../domain/event.ts'
import { requestTime } from '../domain/ids.ts'
import { MOMENTS, momentText } from '../events/moments.ts'
import { EVENTS_TABLE } from '../events/row.ts'
import type { Kv } from '../kv/kv.ts'
import type { Clock } from '../lib/clock.ts'
import { DAY_MS } from '../lib/durations.ts'
import { listErasing } from '../records/erasures.ts'
import { type EventFilter, type FilterSql, filterSql } from './event-filter.ts'
import { stillNamed, unerased } from './unerased.ts'

/** For how long a workspace keeps its events. */
export type RetentionDays = (workspace: string) => number

export interface EventRowsNeeds {
  readonly clickhouse: Pick<ClickHouse, 'query'>
  readonly kv: Pick<Kv, 'scan' | 'position'>
  readonly partitions: number
  readonly clock: Pick<Clock, 'now'>
  /** Older events do not exist for anyone, whether ClickHouse has dropped them yet or not. */
  readonly retentionDays: RetentionDays
}

export type PageQuestion = [
  workspace: string,
  env: Env,
  filter: EventFilter,
  limit: number,
  /** The last item of the previous page. */
  from: { readonly ts: number; readonly requestId: string } | null,
]

export interface EventRows {
  /** Milliseconds. */
  oldest(workspace: string): number
  /** `select` makes the statement of the FROM and WHERE of the events that meet the terms. */
  ask<Row>(workspace: string, env: Env, terms: FilterSql, select: (from: string) => string): Promise<Row[]>
  page<Row>(
    columns: string,
    ...question: PageQuestion
  ): Promise<{ readonly rows: readonly Row[]; readonly hasMore: boolean }>
  count(workspace: string, env: Env, filter: EventFilter): Promise<number>
  /** In no order; what has no row is left out. */
  named<Row>(columns: string, workspace: string, env: Env, requestIds: readonly string[]): Promise<readonly Row[]>
}

const TENANT = `workspace_id = {workspace:String} AND env = {env:String} AND ts >= fromUnixTimestamp64Milli({oldest:Int64})`

/** What is older than `cts` and `cid` say. The bound on ts alone is redundant and what prunes the parts. */
export const BEHIND =
  ' AND ts <= fromUnixTimestamp64Milli({cts:Int64}) AND (ts, request_id) < (fromUnixTimestamp64Milli({cts:Int64}), {cid:String})'

export function openEventRows({ clickhouse, kv, partitions, clock, retentionDays }: EventRowsNeeds): EventRows {
  const oldest = (workspace: string) => clock.now() - retentionDays(workspace) * DAY_MS

  async function ask<Row>(workspace: string, env: Env, terms: FilterSql, select: (from: string) => string) {
    const leftOut = unerased(await listErasing(kv, partitions, workspace, env))
    return clickhouse.query<Row>(
      select(`FROM ${EVENTS_TABLE}${terms.first} WHERE ${TENANT}${leftOut.sql}${terms.sql}`),
      { workspace, env, oldest: oldest(workspace), ...leftOut.params, ...terms.params },
    )
  }

  /** Whom an event may be of besides is erased from it a little later than its own visitor. */
  async function askable(workspace: string, env: Env, filter: EventFilter): Promise<EventFilter> {
    const { possibleIds } = filter
    if (possibleIds === undefined) return filter
    const erasing = await listErasing(kv, partitions, workspace, env)
    return { ...filter, possibleIds: stillNamed(possibleIds, [workspace, env], erasing) }
  }

  return {
    oldest,
    ask,

    async page<Row>(columns: string, ...[workspace, env, filter, limit, from]: PageQuestion) {
      const { params, ...terms } = filterSql(await askable(workspace, env, filter))
      const values = { ...params, ...(from === null ? {} : { cts: from.ts, cid: from.requestId }), rows: limit + 1 }
      const rows = await ask<Row>(
        workspace,
        env,
        { ...terms, params: values },
        (source) =>
          `SELECT ${columns} ${source}${from === null ? '' : BEHIND} ORDER BY ts DESC, request_id DESC LIMIT {rows:UInt32}`,
      )
      return { rows: rows.slice(0, limit), hasMore: rows.length > limit }
    },

    async count(workspace, env, filter) {
      const select = (source: string) => `SELECT count() AS events ${source}`
      const terms = filterSql(await askable(workspace, env, filter))
      const [row] = await ask<{ events: number }>(workspace, env, terms, select)
      return Number(row?.events ?? 0)
    },

    async named<Row>(columns: string, workspace: string, env: Env, requestIds: readonly string[]) {
      // Of an id whose time is yet to come there is no event, and far enough off it is no moment of ClickHouse either.
      const possible = requestIds.filter((id) => (requestTime(id) ?? 0) <= clock.now() + DAY_MS)
      if (possible.length === 0) return []
      const times = possible.map((id) => momentText(requestTime(id) ?? 0))
      const sql = ` AND ts IN ${MOMENTS} AND request_id IN {ids:Array(String)}`
      const terms = { first: '', sql, params: { times, ids: possible } }
      return ask<Row>(workspace, env, terms, (source) => `SELECT ${columns} ${source}`)
    },
  }
}
