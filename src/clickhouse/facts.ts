// What a ClickHouse server says about how it keeps rows, and which ones would not do what our SQL relies on.

import { Told } from '../lib/failures.ts'
import type { ClickHouse } from './clickhouse.ts'

export interface TableFacts {
  readonly name: string
  readonly engine: string
  readonly isReplicated: boolean
  /** Inserts whose tokens are remembered, so that a repetition adds no rows. */
  readonly deduplicationWindow: number
  /** How long they are remembered; null for as long as there are no newer ones. */
  readonly deduplicationSecondsMax: number | null
  /** Whether rows are flushed to disk before an insert resolves. */
  readonly fsync: boolean
}

export interface ClickHouseFacts {
  readonly version: string
  /** The server's choice for inserts in general; null where there is none. */
  readonly deduplicateInsert: string | null
  readonly tables: readonly TableFacts[]
}

/** The server is there, but rows in it would be doubled, or a statement of ours does not exist in it. */
export class UnsafeClickHouse extends Told {
  override readonly name = 'UnsafeClickHouse'
}

const VERSION_MIN = [25, 8] as const
/** Tables that are only ever inserted into with a token. */
const DEDUPLICATED = ['events', 'quarantine', 'erasures']
/** A batch may be repeated after an outage as long as the log is kept. */
const DEDUPLICATION_SECONDS_MIN = 86_400

export async function readVersion(clickhouse: Pick<ClickHouse, 'query'>): Promise<string> {
  const [row] = await clickhouse.query<{ version: string }>('SELECT version() AS version')
  return row?.version ?? '0'
}

/** Throws UnsafeClickHouse. */
export function refuseOld(version: string): void {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  const [majorMin, minorMin] = VERSION_MIN
  if (major > majorMin || (major === majorMin && minor >= minorMin)) return
  throw new UnsafeClickHouse(
    `ClickHouse is version ${version}; at least ${majorMin}.${minorMin} is needed, which hides the rows of an erased visitor at once by a lightweight update`,
  )
}

/** Of the tables of the port's database; `migrate` has made them. */
export async function readClickHouseFacts(clickhouse: Pick<ClickHouse, 'query'>): Promise<ClickHouseFacts> {
  const tables = await clickhouse.query<{ name: string; engine: string; engine_full: string }>(
    'SELECT name, engine, engine_full FROM system.tables WHERE database = currentDatabase() AND name IN {names:Array(String)} ORDER BY name',
    { names: DEDUPLICATED },
  )
  const [chosen] = await clickhouse.query<{ value: string }>(
    "SELECT toString(getSettingOrDefault('deduplicate_insert', '')) AS value",
  )
  return {
    version: await readVersion(clickhouse),
    deduplicateInsert: chosen?.value || null,
    tables: tables.map(({ name, engine, engine_full }) => {
      const setting = (of: string) => Number(new RegExp(`\\b${of} = (\\d+)`).exec(engine_full)?.[1] ?? 0)
      const isReplicated = engine.startsWith('Replicated') || engine.startsWith('Shared')
      const kind = isReplicated ? 'replicated' : 'non_replicated'
      return {
        name,
        engine,
        isReplicated,
        deduplicationWindow: setting(`${kind}_deduplication_window`),
        deduplicationSecondsMax: isReplicated ? setting('replicated_deduplication_window_seconds') : null,
        fsync: setting('fsync_after_insert') === 1 && setting('fsync_part_directory') === 1,
      }
    }),
  }
}

/** Throws UnsafeClickHouse when repeating an insert could double rows. */
export function refuseUnsafeClickHouse({ deduplicateInsert, tables }: ClickHouseFacts): void {
  if (deduplicateInsert === 'disable') {
    throw new UnsafeClickHouse(
      'ClickHouse has deduplicate_insert = disable for this user: repeated inserts would double rows',
    )
  }
  for (const { name, deduplicationWindow, deduplicationSecondsMax } of tables) {
    const isForgetful = deduplicationSecondsMax !== null && deduplicationSecondsMax < DEDUPLICATION_SECONDS_MIN
    if (deduplicationWindow > 0 && !isForgetful) continue
    throw new UnsafeClickHouse(
      `the table ${name} remembers ${deduplicationWindow} inserts${isForgetful ? ` for ${deduplicationSecondsMax} seconds` : ''}: repeated ones would double rows. Set its deduplication windows as src/clickhouse/schema.sql has them`,
    )
  }
}
