// Brings a database to the schema of this build, and refuses one that a newer build has written.

import { readFileSync } from 'node:fs'
import type { Clock } from '../lib/clock.ts'
import { Unreadable } from '../lib/failures.ts'
import type { ClickHouse } from './clickhouse.ts'
import { engineCode } from './client.ts'

export interface MigrateConfig {
  /** The database the port was opened with; created when missing. */
  readonly database: string
  /** Rows older than this are dropped, week by week; 1 to 3 650. */
  readonly retentionDays: number
  readonly clock: Clock
}

/** The build step copies no .sql, so the file is read where it is written, from build/src/clickhouse/. */
const SCHEMA = new URL('../../../src/clickhouse/schema.sql', import.meta.url)
const UNKNOWN_TABLE = 60
const UNKNOWN_DATABASE = 81
/** Tables whose rows expire together with the events. */
const EXPIRING = { events: 'ts', quarantine: 'at' }

interface Migration {
  readonly version: number
  readonly statements: readonly string[]
}

/** Resolves with the schema version; one query when it is current. Fails with Unreadable on a newer version. */
export async function migrate(clickhouse: ClickHouse, config: MigrateConfig): Promise<number> {
  const { retentionDays } = config
  if (!Number.isInteger(retentionDays) || retentionDays < 1 || retentionDays > 3_650) {
    throw new Error('retentionDays must be an integer from 1 to 3650')
  }
  if (!/^[A-Za-z_][A-Za-z0-9_]{0,63}$/.test(config.database)) throw new Error('database must be a plain name')

  const migrations = readMigrations(retentionDays)
  const newest = migrations.at(-1)?.version ?? 0
  const found = await recorded(clickhouse)
  if (found === null) await clickhouse.command(`CREATE DATABASE IF NOT EXISTS ${config.database}`)
  const version = found?.version ?? 0
  if (version > newest) {
    throw new Unreadable(`the database has schema version ${version}, this build knows ${newest}: run the newer build`)
  }
  for (const migration of migrations) {
    if (migration.version <= version) continue
    for (const statement of migration.statements) await clickhouse.command(statement)
  }
  const retentionChanged = version > 0 && found?.retentionDays !== retentionDays
  if (retentionChanged) {
    for (const [table, column] of Object.entries(EXPIRING)) {
      await clickhouse.command(
        `ALTER TABLE ${table} MODIFY TTL toDateTime(${column}) + INTERVAL ${retentionDays} DAY DELETE SETTINGS materialize_ttl_after_modify = 0`,
      )
    }
  }
  if (version < newest || retentionChanged) {
    const at = config.clock.now()
    const row = Buffer.from(`${JSON.stringify([newest, retentionDays, at])}\n`)
    await clickhouse.insert('schema_versions', ['version', 'retention_days', 'applied_at'], row, {
      token: `schema ${newest} ${retentionDays} ${at}`,
    })
  }
  return newest
}

/** Null when the database has no schema yet. */
async function recorded(clickhouse: ClickHouse): Promise<{ version: number; retentionDays: number } | null> {
  try {
    const [row] = await clickhouse.query<{ version: number; retentionDays: number }>(
      'SELECT max(version) AS version, argMax(retention_days, applied_at) AS retentionDays FROM schema_versions',
    )
    return row ?? null
  } catch (error) {
    const code = engineCode(error)
    if (code === UNKNOWN_TABLE || code === UNKNOWN_DATABASE) return null
    throw error
  }
}

function readMigrations(retentionDays: number): Migration[] {
  const [, ...parts] = readFileSync(SCHEMA, 'utf8').split(/^-- migration (\d+)$/m)
  const migrations: Migration[] = []
  for (let at = 0; at + 1 < parts.length; at += 2) {
    const sql = (parts[at + 1] ?? '').replaceAll('{retentionDays}', String(retentionDays)).replaceAll(/^--.*$/gm, '')
    migrations.push({
      version: Number(parts[at]),
      statements: sql
        .split(';')
        .map((statement) => statement.trim())
        .filter((statement) => statement !== ''),
    })
  }
  return migrations
}
