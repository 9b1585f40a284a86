// Executes an erasure in ClickHouse: nothing of the visitor is shown any more, and a tombstone tells a rebuild about it.

import type { ClickHouse } from '../clickhouse/clickhouse.ts'
import { HOLDER, WITHOUT_POSSIBLE } from '../events/detail-sql.ts'
import { MOMENTS, momentText } from '../events/moments.ts'
import type { DecidedErasure } from '../events/record.ts'
import { EVENTS_TABLE } from '../events/row.ts'
import { ERASED_ID_SQL, erasedId, type RecordedErasure } from '../records/erasures.ts'
import { QUARANTINE_TABLE } from './insert.ts'
import { insertMissingRow } from './lost.ts'
import { REFUSED_OF, REFUSED_POSSIBLE, REFUSED_WITHOUT_POSSIBLE } from './whose.ts'

export const ERASURES_TABLE = 'erasures'
const COLUMNS = ['workspace_id', 'env', 'erased_id', 'erasure_id', 'at', 'log_partition'] as const
/** Patches hide rows in milliseconds, where a mutation rewrites the parts they are in. */
export const HIDE = "SETTINGS lightweight_delete_mode = 'lightweight_update_force'"

const RECENT = `FROM ${ERASURES_TABLE} WHERE at >= fromUnixTimestamp64Milli({since:Int64})`
const AGAIN_MAX = 1_000
const AGAIN_MS_MAX = 600_000

type Whose = Pick<RecordedErasure, 'workspace' | 'env' | 'visitorId'>

const OF_VISITOR = `workspace_id = {workspace:String} AND env = {env:String}
  AND visitor_hash = cityHash64({visitor:String}) AND visitor_id = {visitor:String}`

async function hideEvents(
  clickhouse: Pick<ClickHouse, 'patch'>,
  { workspace, env, visitorId: visitor }: Whose,
): Promise<void> {
  const params = { workspace, env, visitor }
  await clickhouse.patch(EVENTS_TABLE, `DELETE FROM ${EVENTS_TABLE} WHERE ${OF_VISITOR} ${HIDE}`, params)
}

/** Of an alias, those that carry a survivor's name. */
async function hideEventsAs(
  clickhouse: Pick<ClickHouse, 'patch'>,
  { workspace, env, visitorId: own }: Whose,
  survivor: string,
): Promise<void> {
  const sql = `DELETE FROM ${EVENTS_TABLE} WHERE ${OF_VISITOR} AND ${HOLDER} = {own:String} ${HIDE}`
  await clickhouse.patch(EVENTS_TABLE, sql, { workspace, env, visitor: survivor, own })
}

const NAMED_AT_ONCE = 1_000
/** Of rows that older builds have written ClickHouse would read the whole detail for this, and they name nobody. */
const SINCE_NAMED = `inserted_at >= (SELECT toDateTime(min(applied_at), 'UTC') - INTERVAL 1 DAY FROM schema_versions WHERE version >= 7)`

/** Takes the visitor out of events of new visitors that may be it. */
async function unnameEvents(
  clickhouse: Pick<ClickHouse, 'patch' | 'query'>,
  { workspace, env, visitorId: possible }: Whose,
): Promise<void> {
  const params = { workspace, env, possible }
  for (;;) {
    const found = await clickhouse.query<{ at: number; id: string }>(
      `SELECT toUnixTimestamp64Milli(ts) AS at, request_id AS id FROM ${EVENTS_TABLE}
       PREWHERE ${SINCE_NAMED} WHERE workspace_id = {workspace:String} AND env = {env:String}
         AND possible_hash = cityHash64({possible:String}) AND possible_visitor_id = {possible:String} LIMIT ${NAMED_AT_ONCE}`,
      params,
    )
    if (found.length === 0) return
    const place = { times: found.map(({ at }) => momentText(Number(at))), ids: found.map(({ id }) => id) }
    await clickhouse.patch(
      EVENTS_TABLE,
      `UPDATE ${EVENTS_TABLE} SET detail = ${WITHOUT_POSSIBLE}
       WHERE workspace_id = {workspace:String} AND env = {env:String} AND ts IN ${MOMENTS}
         AND request_id IN {ids:Array(String)}`,
      { ...params, ...place },
    )
    if (found.length < NAMED_AT_ONCE) return
  }
}

/** The same in rows that were refused. */
async function unnameRefused(clickhouse: Pick<ClickHouse, 'patch'>, possible: string): Promise<void> {
  const sql = `UPDATE ${QUARANTINE_TABLE} SET raw = ${REFUSED_WITHOUT_POSSIBLE} WHERE ${REFUSED_POSSIBLE}`
  await clickhouse.patch(QUARANTINE_TABLE, sql, { possible })
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
  erasure: RecordedErasure & Pick<Partial<DecidedErasure>, 'survivor' | 'former'>,
  partition: number,
  deployment: string,
  isRepeated = false,
): Promise<void> {
  const { workspace, env, visitorId, erasureId, at, survivor, former = [] } = erasure
  await hideEvents(clickhouse, erasure)
  // Visits of an alias carry the name of the survivor it had, whose own erasure another partition may have executed before they came.
  for (const name of survivor === undefined ? [] : [survivor, ...former]) await hideEventsAs(clickhouse, erasure, name)
  // And events of others may name the visitor so.
  const named = survivor === undefined ? [visitorId] : [visitorId, survivor, ...former]
  for (const name of named) await unnameEvents(clickhouse, { workspace, env, visitorId: name })
  const refused = `DELETE FROM ${QUARANTINE_TABLE} WHERE ${REFUSED_OF} ${HIDE}`
  await clickhouse.patch(QUARANTINE_TABLE, refused, { visitor: visitorId })
  for (const name of named) await unnameRefused(clickhouse, name)
  const row = [workspace, env, erasedId(workspace, env, visitorId), erasureId, at, partition]
  const line = Buffer.from(`${JSON.stringify(row)}\n`)
  const token = `${deployment}/erasure/${erasureId}`
  if (!isRepeated) return clickhouse.insert(ERASURES_TABLE, COLUMNS, line, { token })
  await insertMissingRow(clickhouse, { table: ERASURES_TABLE, columns: COLUMNS, line, token }, async () => {
    const [found] = await clickhouse.query<{ rows: number }>(
      `SELECT count() AS rows FROM ${ERASURES_TABLE} WHERE erasure_id = {erasureId:String}`,
      { erasureId },
    )
    return found !== undefined && found.rows > 0
  })
}
