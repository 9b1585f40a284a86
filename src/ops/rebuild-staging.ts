// A copy of what events tell of visitors, in the order of visitors and not of time: without it every few thousand visitors would
// cost a scan of the whole history. It lives as long as the rebuild.

import type { ClickHouse } from '../clickhouse/clickhouse.ts'
import { GENERATION, HOLDER, RECORDED_FIRST_SEEN, RECORDED_LAST_SEEN, RECORDED_VISITS } from '../events/detail-sql.ts'
import { EVENTS_TABLE } from '../events/row.ts'
import type { Clock } from '../lib/clock.ts'
import { DAY_MS } from '../lib/durations.ts'
import { dropStagedVisits, STAGED_VISITS } from '../sink/staged-visits.ts'
import type { Progress } from './progress.ts'
import { SCAN } from './rebuild-read.ts'

/** The same names and types as in `events`, and the generation out of the details. */
const create = (table: string) => `CREATE TABLE ${table} (
  log_partition UInt16, visitor_hash UInt64, workspace_id LowCardinality(String), env Enum8('live' = 1, 'test' = 2),
  visitor_id String, ts DateTime64(3, 'UTC'), first_seen_at DateTime64(3, 'UTC'), last_seen_at DateTime64(3, 'UTC'),
  total_visits UInt32, identity_method LowCardinality(String), generation UInt32,
  verdict Enum8('none' = 0, 'allow' = 1, 'challenge' = 2, 'block' = 3), linked_id String, ip IPv6,
  platform LowCardinality(String), browser LowCardinality(String), gpu LowCardinality(String), log_seq UInt64
) ENGINE = MergeTree ORDER BY (log_partition, visitor_hash)`
/** Visits of one that was merged into another count in its own record, and so do their count and times. */
const COPIED = `log_partition, cityHash64(${HOLDER}), workspace_id, env, ${HOLDER}, ts,
  ${RECORDED_FIRST_SEEN}, ${RECORDED_LAST_SEEN}, ${RECORDED_VISITS},
  identity_method, ${GENERATION}, verdict, linked_id, ip, platform, browser, gpu, log_seq`

export interface Staging {
  readonly table: string
  drop(): Promise<void>
}

/**
 * Copies week by week, so that no statement takes long. Two rebuilds at once have a table each. An event that could not be
 * decided has a visitor nobody was given, and is left out.
 */
export async function stageVisits(
  clickhouse: Pick<ClickHouse, 'query' | 'command'>,
  clock: Pick<Clock, 'now'>,
  progress: Progress,
  stopping: AbortSignal,
): Promise<Staging> {
  const drop = (table: string) => clickhouse.command(`DROP TABLE IF EXISTS ${table} SYNC`)
  await dropStagedVisits(clickhouse, clock.now() - DAY_MS)
  const table = `${STAGED_VISITS}${clock.now()}`
  await clickhouse.command(create(table))
  try {
    await copyVisits(clickhouse, table, progress, stopping)
  } catch (error) {
    await drop(table)
    throw error
  }
  return { table, drop: () => drop(table) }
}

async function copyVisits(
  clickhouse: Pick<ClickHouse, 'query' | 'command'>,
  table: string,
  progress: Progress,
  stopping: AbortSignal,
): Promise<void> {
  const weeks = await clickhouse.query<{ week: string }>(
    `SELECT DISTINCT toString(toMonday(ts)) AS week FROM ${EVENTS_TABLE} ORDER BY week`,
    {},
    SCAN,
  )
  progress.begin('history', weeks.length)
  for (const { week } of weeks) {
    stopping.throwIfAborted()
    await clickhouse.command(
      `INSERT INTO ${table} SELECT ${COPIED} FROM ${EVENTS_TABLE}
       WHERE toMonday(ts) = toDate({week:String}) AND evaluation_error = ''`,
      { week },
    )
    progress.advance()
  }
  progress.end(`${weeks.length} weeks`)
}
