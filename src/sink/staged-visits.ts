// Copies of what events tell of visitors that a rebuild makes in ClickHouse for itself. One that was killed leaves its copy behind,
// where neither an erasure nor retention reaches it.

import type { ClickHouse } from '../clickhouse/clickhouse.ts'

/** The rest of a table's name is when it was made, milliseconds. */
export const STAGED_VISITS = 'rebuild_visits_'

/** Drops those made before `ms`, at once and not when the engine comes to it: a younger one may belong to a rebuild that runs. */
export async function dropStagedVisits(clickhouse: Pick<ClickHouse, 'query' | 'command'>, ms: number): Promise<void> {
  const found = await clickhouse.query<{ name: string }>(
    `SELECT name FROM system.tables WHERE database = currentDatabase() AND startsWith(name, '${STAGED_VISITS}')`,
  )
  for (const { name } of found) {
    if (Number(name.slice(STAGED_VISITS.length)) < ms) await clickhouse.command(`DROP TABLE IF EXISTS ${name} SYNC`)
  }
}
