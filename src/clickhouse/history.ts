// The embedded engine with the schema of this build: what the product calls its history.

import type { Clock } from '../lib/clock.ts'
import type { ClickHouse } from './clickhouse.ts'
import type { Logger } from './embedded.ts'
import { migrate } from './migrate.ts'
import { DATABASE, openClickHouse } from './open.ts'

export interface HistoryConfig {
  readonly dataDir: string
  readonly retentionDays: number
}

/** Resolves when inserts and queries are possible. Fails with Unreadable on a newer schema. */
export async function openHistory(
  { dataDir, retentionDays }: HistoryConfig,
  deps: { readonly clock: Clock; readonly log: Logger },
): Promise<ClickHouse> {
  const clickhouse = await openClickHouse({ mode: 'embedded', dataDir }, deps)
  try {
    await migrate(clickhouse, { database: DATABASE, retentionDays, clock: deps.clock })
  } catch (error) {
    await clickhouse.close()
    throw error
  }
  return clickhouse
}
