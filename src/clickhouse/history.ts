// The column store with the schema of this build, in an engine of our own or on a server: what the product calls its history.

import type { Clock } from '../lib/clock.ts'
import type { ClickHouse } from './clickhouse.ts'
import { engineCode } from './client.ts'
import type { EmbeddedLogger } from './embedded.ts'
import { readClickHouseFacts, readVersion, refuseOld, refuseUnsafeClickHouse } from './facts.ts'
import { createDatabase, migrate, UNKNOWN_DATABASE } from './migrate.ts'
import { DATABASE, openClickHouse } from './open.ts'

export type HistoryPlace =
  /** The folder of an embedded engine. */
  | { readonly dataDir: string }
  /** A server. */
  | {
      readonly url: string
      readonly username?: string
      readonly password?: string
      readonly token?: string
      readonly database: string
      /** Name of a ClickHouse cluster whose replicas all hold the tables; empty: a single server. */
      readonly cluster?: string
    }

export type HistoryConfig = HistoryPlace & { readonly retentionDays: number }

/**
 * Resolves when inserts and queries are possible. Fails with Unavailable when a server does not answer, with Unreadable on a
 * newer schema, with UnsafeClickHouse on a server that is too old or would double rows.
 */
export async function openHistory(
  config: HistoryConfig,
  deps: { readonly clock: Clock; readonly log: EmbeddedLogger },
): Promise<ClickHouse> {
  const { retentionDays } = config
  if ('dataDir' in config) {
    const clickhouse = await openClickHouse({ mode: 'embedded', dataDir: config.dataDir }, deps)
    return closedOnFailure(clickhouse, async () => {
      await migrate(clickhouse, { database: DATABASE, retentionDays, clock: deps.clock })
    })
  }
  const clickhouse = await openClickHouse({ mode: 'http', ...config }, deps)
  return closedOnFailure(clickhouse, async () => {
    const schema = { database: config.database, cluster: config.cluster ?? '', retentionDays, clock: deps.clock }
    refuseOld(await versionOf(clickhouse, () => createDatabase(clickhouse, schema)))
    await migrate(clickhouse, schema)
    refuseUnsafeClickHouse(await readClickHouseFacts(clickhouse))
  })
}

/** A server refuses every query in a database that is not there. */
async function versionOf(clickhouse: ClickHouse, create: () => Promise<void>): Promise<string> {
  try {
    return await readVersion(clickhouse)
  } catch (error) {
    if (engineCode(error) !== UNKNOWN_DATABASE) throw error
  }
  await create()
  return readVersion(clickhouse)
}

async function closedOnFailure(clickhouse: ClickHouse, prepare: () => Promise<void>): Promise<ClickHouse> {
  try {
    await prepare()
  } catch (error) {
    await clickhouse.close()
    throw error
  }
  return clickhouse
}
