// Brings a database to the schema of this build, and refuses one that a newer build has written.

import { readFileSync } from 'node:fs'
import type { Clock } from '../lib/clock.ts'
import { Unreadable } from '../lib/failures.ts'
import type { ClickHouse } from './clickhouse.ts'
import { engineCode } from './client.ts'

export interface MigrateConfig {
  /** The database the port was opened with; created when missing. */
  readonly database: string
  /** Name of a ClickHouse cluster whose replicas all hold the tables; empty: a single server. */
  readonly cluster?: string
  /** Rows older than this are dropped, week by week; 1 to 3 650. */
  readonly retentionDays: number
  readonly clock: Clock
}

const SCHEMA = new URL('./schema.sql', import.meta.url)
const UNKNOWN_TABLE = 60
export const UNKNOWN_DATABASE = 81
/** What a process is told that lost a race to another which migrates at the same time. */
const LOST_RACE: ReadonlySet<number | null> = new Set([
  57, // TABLE_ALREADY_EXISTS
  82, // DATABASE_ALREADY_EXISTS
  253, // REPLICA_ALREADY_EXISTS
  517, // CANNOT_ASSIGN_ALTER
])
/** Saves work and changes nothing else: a server that does not know it does without. */
const OPTIONAL = /\bMODIFY SETTING merge_selector_base\b/
const UNKNOWN_SETTING = 115
const RACES_MAX = 20
const RACE_WAIT_MS = 250
/** Replicas forget tokens by age as well, since 25.10 within an hour. */
const REPLICATED_WINDOW_SECONDS = 604_800
/** Tables whose rows expire together with the events. */
const EXPIRING = { events: 'ts', quarantine: 'at' }

interface Migration {
  readonly version: number
  readonly statements: readonly string[]
}

/**
 * Resolves with the schema version; one query when it is current. Any number of processes may do this at once: each
 * statement can be repeated, and whoever loses a race reads again. Fails with Unreadable on a newer version.
 */
export async function migrate(clickhouse: ClickHouse, config: MigrateConfig): Promise<number> {
  for (let races = 0; ; races += 1) {
    try {
      return await migrateOnce(clickhouse, config)
    } catch (error) {
      if (!LOST_RACE.has(engineCode(error)) || races >= RACES_MAX) throw error
      await config.clock.sleep(RACE_WAIT_MS)
    }
  }
}

async function migrateOnce(clickhouse: ClickHouse, config: MigrateConfig): Promise<number> {
  const { retentionDays } = config
  if (!Number.isInteger(retentionDays) || retentionDays < 1 || retentionDays > 3_650) {
    throw new Error('retentionDays must be an integer from 1 to 3650')
  }
  const migrations = readMigrations(config)
  const newest = migrations.at(-1)?.version ?? 0
  const found = await recorded(clickhouse)
  if (found === 'no database') await createDatabase(clickhouse, config)
  const { version, retentionDays: retentionFound } = typeof found === 'object' ? found : { version: 0 }
  if (version > newest) {
    throw new Unreadable(`the database has schema version ${version}, this build knows ${newest}: run the newer build`)
  }
  for (const migration of migrations) {
    if (migration.version <= version) continue
    for (const statement of migration.statements) await run(clickhouse, statement)
  }
  const retentionChanged = version > 0 && retentionFound !== retentionDays
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

async function run(clickhouse: Pick<ClickHouse, 'command'>, statement: string): Promise<void> {
  try {
    await clickhouse.command(statement)
  } catch (error) {
    if (!OPTIONAL.test(statement) || engineCode(error) !== UNKNOWN_SETTING) throw error
  }
}

/** For whoever has not `migrate` do it. Twice equals once. */
export async function createDatabase(
  clickhouse: Pick<ClickHouse, 'command'>,
  { database, cluster = '' }: Pick<MigrateConfig, 'database' | 'cluster'>,
): Promise<void> {
  if (!/^[A-Za-z_][A-Za-z0-9_]{0,63}$/.test(database)) throw new Error('database must be a plain name')
  await clickhouse.command(`CREATE DATABASE IF NOT EXISTS ${database}${onCluster(cluster)}`)
}

interface Recorded {
  readonly version: number
  readonly retentionDays?: number
}

// A user who may only use a database that was made for it cannot create one, not even one that exists.
async function recorded(clickhouse: ClickHouse): Promise<Recorded | 'no database' | 'no tables'> {
  try {
    const [row] = await clickhouse.query<Recorded>(
      'SELECT max(version) AS version, argMax(retention_days, applied_at) AS retentionDays FROM schema_versions',
    )
    return row ?? 'no tables'
  } catch (error) {
    const code = engineCode(error)
    if (code === UNKNOWN_DATABASE) return 'no database'
    if (code === UNKNOWN_TABLE) return 'no tables'
    throw error
  }
}

function onCluster(cluster: string): string {
  if (cluster === '') return ''
  if (!/^[\w.{}-]{1,64}$/.test(cluster)) throw new Error('the name of a cluster is letters, digits, _, -, . and braces')
  return ` ON CLUSTER '${cluster}'`
}

/** The same table on every replica. Where it lies in the keeper is the servers' default, by the table's UUID. */
function replicated(statement: string, cluster: string): string {
  return (
    statement
      .replace(/^CREATE TABLE IF NOT EXISTS \w+/, (create) => `${create}${onCluster(cluster)}`)
      // Of what changes a table, its settings are the part that replicas do not tell each other.
      .replace(/^ALTER TABLE \w+(?= MODIFY SETTING )/, (alter) => `${alter}${onCluster(cluster)}`)
      .replace(/\bENGINE = MergeTree\b/, 'ENGINE = ReplicatedMergeTree')
      .replace(
        /\bnon_replicated_deduplication_window = (\d+)/,
        `replicated_deduplication_window = $1, replicated_deduplication_window_seconds = ${REPLICATED_WINDOW_SECONDS}`,
      )
  )
}

function readMigrations({ retentionDays, cluster = '' }: MigrateConfig): Migration[] {
  const [, ...parts] = readFileSync(SCHEMA, 'utf8').split(/^-- migration (\d+)$/m)
  const migrations: Migration[] = []
  for (let at = 0; at + 1 < parts.length; at += 2) {
    const sql = (parts[at + 1] ?? '').replaceAll('{retentionDays}', String(retentionDays)).replaceAll(/^--.*$/gm, '')
    const statements = sql
      .split(';')
      .map((statement) => statement.trim())
      .filter((statement) => statement !== '')
    migrations.push({
      version: Number(parts[at]),
      statements: cluster === '' ? statements : statements.map((statement) => replicated(statement, cluster)),
    })
  }
  return migrations
}
