// The only place that knows which kind of ClickHouse runs.

import type { Clock } from '../lib/clock.ts'
import type { ClickHouse } from './clickhouse.ts'
import { openHttpClickHouse } from './client.ts'
import { type EmbeddedLogger, openEmbeddedClickHouse } from './embedded.ts'

export type ClickHouseConfig =
  | { readonly mode: 'embedded'; readonly dataDir: string; readonly database?: string }
  | {
      readonly mode: 'http'
      readonly url: string
      readonly username?: string
      readonly password?: string
      readonly token?: string
      readonly database?: string
      /** Name of a ClickHouse cluster whose replicas all hold the tables. */
      readonly cluster?: string
    }

export const DATABASE = 'fingerpost'

/** The port without a schema: run `migrate` before the first insert. */
export async function openClickHouse(
  config: ClickHouseConfig,
  deps: { readonly clock: Clock; readonly log: EmbeddedLogger },
): Promise<ClickHouse> {
  const database = config.database ?? DATABASE
  return config.mode === 'embedded'
    ? openEmbeddedClickHouse({ dataDir: config.dataDir, database, ...deps })
    : openHttpClickHouse({ ...config, database })
}
