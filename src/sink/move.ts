// Executes a split in ClickHouse: the moved events read as the new visitor's from then on.

import type { ClickHouse } from '../clickhouse/clickhouse.ts'
import { HOLDER, WITHOUT_HOLDER } from '../events/detail-sql.ts'
import { MOMENTS, momentText } from '../events/moments.ts'
import type { DecidedSplit } from '../events/record.ts'
import { EVENTS_TABLE } from '../events/row.ts'
import { timeOf, visitNumbers } from '../records/splits.ts'
import { QUARANTINE_TABLE } from './insert.ts'
import { REFUSED_OF, REFUSED_VISITOR } from './whose.ts'

/** Where a refused row names whose it was, and the survivor, it names the new visitor: whose erasure takes it. */
const RENAMED = `replaceAll(replaceAll(raw, ${REFUSED_VISITOR}, {to:String}), {visitor:String}, {to:String})`

/**
 * Resolves when no query shows the events as anybody else's. Twice equals once, also after they were moved on. Only events that are
 * in the table are moved: the sink calls this behind the rows that were decided before.
 */
export async function moveRows(clickhouse: Pick<ClickHouse, 'patch'>, split: DecidedSplit): Promise<void> {
  if (split.isRebuilt === true) return
  const { workspace, env, visitorId, to, requestIds, uncounted } = split
  const times = requestIds.map(timeOf)
  await clickhouse.patch(
    EVENTS_TABLE,
    `UPDATE ${EVENTS_TABLE} SET visitor_id = {to:String}, detail = ${WITHOUT_HOLDER}, last_seen_at = ts,
       first_seen_at = fromUnixTimestamp64Milli({first:Int64}),
       total_visits = transform(request_id, {ids:Array(String)}, {visits:Array(UInt32)}, total_visits)
     WHERE workspace_id = {workspace:String} AND env = {env:String} AND ts IN ${MOMENTS}
       AND request_id IN {ids:Array(String)} AND ${HOLDER} = {from:String}`,
    {
      ...{ workspace, env, from: visitorId, to, ids: requestIds, visits: visitNumbers(requestIds, uncounted) },
      ...{ times: times.map(momentText), first: Math.min(...times) },
    },
  )
  await clickhouse.patch(
    QUARANTINE_TABLE,
    `UPDATE ${QUARANTINE_TABLE} SET raw = ${RENAMED}
     WHERE multiSearchAny(raw, {ids:Array(String)}) AND isValidJSON(raw) AND ${REFUSED_OF}`,
    { visitor: visitorId, to, ids: requestIds },
  )
}
