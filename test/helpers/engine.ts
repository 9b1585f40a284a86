// The embedded engine of ClickHouse with the product's tables, in a temporary folder, until the test ends.

import type { Test } from 'tap'
import { type EmbeddedClickHouse, openEmbeddedClickHouse } from '../../src/clickhouse/embedded.ts'
import { migrate } from '../../src/clickhouse/migrate.ts'
import { systemClock as clock } from '../../src/lib/clock.ts'
import { temporaryFolder } from './server.ts'

const DATABASE = 'fingerpost'

export interface Engine {
  readonly clickhouse: EmbeddedClickHouse
  /** Closes it, runs `meanwhile` and opens it on the same folder. */
  reopen(meanwhile: () => void): Promise<EmbeddedClickHouse>
}

export async function openEngine(t: Pick<Test, 'teardown'>, retentionDays = 90): Promise<Engine> {
  const dataDir = temporaryFolder()
  const open = () =>
    openEmbeddedClickHouse({
      dataDir,
      database: DATABASE,
      clock,
      lockWaitMsMax: 10_000,
      log: { info() {}, warn() {} },
    })
  const clickhouse = await open()
  let current = clickhouse
  t.teardown(() => current.close())
  await migrate(clickhouse, { database: DATABASE, retentionDays, clock })
  return {
    clickhouse,
    async reopen(meanwhile) {
      await current.close()
      meanwhile()
      current = await open()
      return current
    },
  }
}
