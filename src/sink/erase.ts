// Executes an erasure in ClickHouse: nothing of the visitor is shown any more, and a tombstone tells a rebuild about it.

import type { ClickHouse } from '../clickhouse/clickhouse.ts'
import type { DecidedErasure } from '../events/record.ts'
import { COLUMNS as EVENT_COLUMNS, EVENTS_TABLE } from '../events/row.ts'
import { ERASED_ID_SQL, type Erasure, erasedId } from '../records/erasures.ts'
import { QUARANTINE_TABLE } from './insert.ts'
import { insertLostRow } from './lost.ts'

export const ERASURES_TABLE = 'erasures'
const COLUMNS = ['workspace_id', 'env', 'erased_id', 'erasure_id', 'at', 'log_partition'] as const
/** Patches hide rows in milliseconds, where a mutation rewrites the parts they are in. */
export const HIDE = "SETTINGS lightweight_delete_mode = 'lightweight_update_force'"

const RECENT = `FROM ${ERASURES_TABLE} WHERE at >= fromUnixTimestamp64Milli({since:Int64})`
const AGAIN_MAX = 1_000
const AGAIN_MS_MAX = 600_000

const placeIn = (column: (typeof EVENT_COLUMNS)[number]): number => EVENT_COLUMNS.indexOf(column) + 1
/** Whose a refused row is. That it names the visitor is not enough: others were compared with it. */
const REFUSED_OF = `position(raw, {visitor:String}) > 0 AND (
  NOT isValidJSON(raw) OR JSONExtractString(raw, ${placeIn('visitor_id')}) = {visitor:String} OR
  JSONExtractString(JSONExtractString(raw, ${placeIn('detail')}), 'own') = {visitor:String})`

type Whose = Pick<Erasure, 'workspace' | 'env' | 'visitorId'>

async function hideEvents(
  clickhouse: Pick<ClickHouse, 'patch'>,
  { workspace, env, visitorId: visitor }: Whose,
): Promise<void> {
  await clickhouse.patch(
    EVENTS_TABLE,
    `DELETE FROM ${EVENTS_TABLE} WHERE workspace_id = {workspace:String} AND env = {env:String}
     AND visitor_hash = cityHash64({visitor:String}) AND visitor_id = {visitor:String} ${HIDE}`,
    { workspace, env, visitor },
  )
}

/**
 * Hides events of visitors that were erased at `since` or later, milliseconds, and are shown all the same: how many visitors. A patch
 * that is written while ClickHouse rewrites the part it is for may be lost with the part.
 */
export async function hideAgain(clickhouse: Pick<ClickHouse, 'query' | 'patch'>, since: number): Promise<number> {
  const [erased] = await clickhouse.query<{ recent: number }>(`SELECT count() AS recent ${RECENT}`, { since })
  if (erased === undefined || erased.recent === 0) return 0
  const shown = await clickhouse.query<Whose>(
    `SELECT DISTINCT workspace_id AS workspace, env, visitor_id AS visitorId FROM ${EVENTS_TABLE}
     WHERE workspace_id IN (SELECT workspace_id ${RECENT}) AND ${ERASED_ID_SQL} IN (SELECT erased_id ${RECENT})
     LIMIT ${AGAIN_MAX}`,
    { since },
    { background: true, timeoutMsMax: AGAIN_MS_MAX },
  )
  for (const whose of shown) await hideEvents(clickhouse, whose)
  return shown.length
}

/** Resolves when no query shows rows of the visitor. Twice equals once. `isRepeated`: it may have been done halfway before. */
export async function eraseRows(
  clickhouse: Pick<ClickHouse, 'insert' | 'patch' | 'query'>,
  erasure: Erasure & Pick<Partial<DecidedErasure>, 'survivor' | 'former'>,
  partition: number,
  deployment: string,
  isRepeated = false,
): Promise<void> {
  const { workspace, env, visitorId, erasureId, at, survivor, former = [] } = erasure
  // Visits of an alias carry the name of the survivor it had, whose own erasure another partition may have executed before they came.
  for (const visitor of survivor === undefined ? [visitorId] : [visitorId, survivor, ...former]) {
    await hideEvents(clickhouse, { workspace, env, visitorId: visitor })
    await clickhouse.patch(QUARANTINE_TABLE, `DELETE FROM ${QUARANTINE_TABLE} WHERE ${REFUSED_OF} ${HIDE}`, { visitor })
  }
  const row = [workspace, env, erasedId(workspace, env, visitorId), erasureId, at, partition]
  const line = Buffer.from(`${JSON.stringify(row)}\n`)
  const token = `${deployment}/erasure/${erasureId}`
  await clickhouse.insert(ERASURES_TABLE, COLUMNS, line, { token })
  if (!isRepeated) return
  await insertLostRow(clickhouse, { table: ERASURES_TABLE, columns: COLUMNS, line, token }, async () => {
    const [found] = await clickhouse.query<{ rows: number }>(
      `SELECT count() AS rows FROM ${ERASURES_TABLE} WHERE erasure_id = {erasureId:String}`,
      { erasureId },
    )
    return found !== undefined && found.rows > 0
  })
}
