// A copy of what events tell of visitors, in the order of visitors and not of time: without it every few thousand visitors would
// cost a scan of the whole history. It lives as long as the rebuild.

import type { ClickHouse } from '../clickhouse/clickhouse.ts'
import { GENERATION, HOLDER, RECORDED_FIRST_SEEN, RECORDED_LAST_SEEN, RECORDED_VISITS } from '../events/detail-sql.ts'
import { EVENTS_TABLE } from '../events/row.ts'
import type { Clock } from '../lib/clock.ts'
import type { Progress } from './progress.ts'
import { SCAN } from './rebuild-read.ts'

const NAME = 'rebuild_visits_'
/** Left behind by a rebuild that was killed; a younger one may be in use. */
const LEFTOVER_MS = 86_400_000

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
): Promise<Staging> {
  const drop = (table: string) => clickhouse.command(`DROP TABLE IF EXISTS ${table}`)
  const found = await clickhouse.query<{ name: string }>(
    `SELECT name FROM system.tables WHERE database = currentDatabase() AND startsWith(name, '${NAME}')`,
  )
  for (const { name } of found) {
    const madeAt = Number(name.slice(NAME.length))
    if (madeAt < clock.now() - LEFTOVER_MS) await drop(name)
  }
  const table = `${NAME}${clock.now()}`
  await clickhouse.command(create(table))
  const weeks = await clickhouse.query<{ week: string }>(
    `SELECT DISTINCT toString(toMonday(ts)) AS week FROM ${EVENTS_TABLE} ORDER BY week`,
    {},
    SCAN,
  )
  progress.begin('history', weeks.length)
  for (const { week } of weeks) {
    await clickhouse.command(
      `INSERT INTO ${table} SELECT ${COPIED} FROM ${EVENTS_TABLE}
       WHERE toMonday(ts) = toDate({week:String}) AND evaluation_error = ''`,
      { week },
    )
    progress.advance()
  }
  progress.end(`${weeks.length} weeks`)
  return { table, drop: () => drop(table) }
}
