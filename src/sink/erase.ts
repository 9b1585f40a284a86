// Executes an erasure in ClickHouse: nothing of the visitor is shown any more, and a tombstone tells a rebuild about it.

import type { ClickHouse } from '../clickhouse/clickhouse.ts'
import { EVENTS_TABLE } from '../events/row.ts'
import { type Erasure, erasedId } from '../records/erasures.ts'
import { QUARANTINE_TABLE } from './insert.ts'

export const ERASURES_TABLE = 'erasures'
const COLUMNS = ['workspace_id', 'env', 'erased_id', 'erasure_id', 'at', 'log_partition'] as const
/** Patches hide rows in milliseconds, where a mutation rewrites the parts they are in. */
const HIDE = "SETTINGS lightweight_delete_mode = 'lightweight_update_force'"

/** Resolves when no query shows rows of the visitor. Twice equals once. */
export async function eraseRows(
  clickhouse: Pick<ClickHouse, 'insert' | 'command'>,
  erasure: Erasure,
  partition: number,
  deployment: string,
): Promise<void> {
  const { workspace, env, visitorId, erasureId, at } = erasure
  await clickhouse.command(
    `DELETE FROM ${EVENTS_TABLE} WHERE workspace_id = {workspace:String} AND env = {env:String}
     AND visitor_hash = cityHash64({visitor:String}) AND visitor_id = {visitor:String} ${HIDE}`,
    { workspace, env, visitor: visitorId },
  )
  await clickhouse.command(`DELETE FROM ${QUARANTINE_TABLE} WHERE position(raw, {visitor:String}) > 0 ${HIDE}`, {
    visitor: visitorId,
  })
  const row = [workspace, env, erasedId(workspace, env, visitorId), erasureId, at, partition]
  await clickhouse.insert(ERASURES_TABLE, COLUMNS, Buffer.from(`${JSON.stringify(row)}\n`), {
    token: `${deployment}/erasure/${erasureId}`,
  })
}
