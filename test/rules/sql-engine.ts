// The embedded engine with a table of events that went through the row format, asked which of them conditions match.

import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openEmbeddedClickHouse } from '../../src/clickhouse/embedded.ts'
import { migrate } from '../../src/clickhouse/migrate.ts'
import type { StoredEvent } from '../../src/domain/event.ts'
import type { ConditionGroup } from '../../src/domain/rule.ts'
import { COLUMNS, EVENTS_TABLE, toRow } from '../../src/events/row.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { openListSnapshots } from '../../src/reads/list-snapshots.ts'
import type { ListSource } from '../../src/records/list-source.ts'
import { conditionSql } from '../../src/rules/to-sql.ts'
import type { SqlListTable } from '../../src/rules/to-sql-lists.ts'
import { openSqlParams } from '../../src/rules/to-sql-params.ts'

export interface SqlEngine {
  /** Events of one workspace; their place in the array is what `matching` calls them. */
  insert(workspace: string, events: readonly StoredEvent[]): Promise<void>
  /** The places of the events that each rule matches, ascending. */
  matching(
    workspace: string,
    rules: readonly ConditionGroup[],
    options?: { readonly scores?: boolean },
  ): Promise<number[][]>
  close(): Promise<void>
}

export async function openSqlEngine(lists: ListSource, listNames: readonly string[]): Promise<SqlEngine> {
  const folder = mkdtempSync(join(tmpdir(), 'fingerpost-sql-'))
  const quiet = { info() {}, warn() {} }
  const clickhouse = await openEmbeddedClickHouse({
    dataDir: folder,
    database: 'fingerpost',
    clock: systemClock,
    log: quiet,
  })
  await migrate(clickhouse, { database: 'fingerpost', retentionDays: 3_650, clock: systemClock })
  const snapshots = openListSnapshots({
    clickhouse,
    lists,
    clock: systemClock,
    random: (n) => new Uint8Array(randomBytes(n)),
  })
  const tables = new Map<string, SqlListTable | null>()
  for (const name of listNames) tables.set(name, await snapshots.table('ws', 'live', name))

  return {
    async insert(workspace, events) {
      const lines = events.map((event, i) => `${toRow({ ...event, workspace }, 0, i)}\n`)
      await clickhouse.insert(EVENTS_TABLE, COLUMNS, Buffer.from(lines.join('')), { token: `events ${workspace}` })
    },
    async matching(workspace, rules, { scores = true } = {}) {
      const literals = snapshots.literals()
      const params = openSqlParams(literals.store)
      const context = { params, scores, lists: (name: string) => tables.get(name) ?? null }
      const cells = rules.map((rule, i) => `groupArrayIf(log_seq, ${conditionSql(rule, context)}) AS r${i}`)
      await literals.load()
      const [row] = await clickhouse.query<Record<string, number[]>>(
        `SELECT ${cells.join(', ')} FROM ${EVENTS_TABLE} WHERE workspace_id = {workspace:String}`,
        { ...params.values, workspace },
        { timeoutMsMax: 60_000 },
      )
      return rules.map((_, i) => (row?.[`r${i}`] ?? []).toSorted((a, b) => a - b))
    },
    async close() {
      await clickhouse.close()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
