// The sink role of a process: one sink per partition.

import type { Lifetime } from '../lib/lifetime.ts'
import type { Logger } from '../lib/logger.ts'
import type { Metrics } from '../lib/metrics.ts'
import { runSink, type SinkNeeds } from './sink.ts'

export interface SinkRoleNeeds extends Omit<SinkNeeds, 'report'> {
  readonly partitions: number
  readonly lifetime: Lifetime
  readonly logger: Logger
  readonly metrics: Metrics
  /** Everything up to `seq` of `events/partition` can be read from ClickHouse. */
  readonly onSunk: (partition: number, seq: number) => void
}

export function startSinks(needs: SinkRoleNeeds): void {
  const { lifetime, logger, metrics } = needs
  const report: SinkNeeds['report'] = {
    sunk(partition, seq, rows) {
      needs.onSunk(partition, seq)
      metrics.sunk.inc({ partition }, rows)
    },
    quarantined(partition, reason) {
      metrics.quarantined.inc({ partition })
      logger.error({ partition, reason }, 'ClickHouse refused a row: it is in quarantine')
    },
    failed(partition, error) {
      metrics.sinkFailures.inc({ partition })
      logger.warn({ partition, error }, 'the sink waits')
    },
  }
  for (let partition = 0; partition < needs.partitions; partition++) {
    lifetime.run(`sink/${partition}`, runSink({ ...needs, report }, partition, lifetime.stopping))
  }
}
