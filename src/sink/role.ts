// The sink role of a process: one for the partitions it holds, and what is told of it.

import type { Logger } from '../lib/logger.ts'
import type { Metrics } from '../lib/metrics.ts'
import { atZero } from '../lib/prometheus.ts'
import type { Hold } from './shared.ts'
import { openSink, type SinkNeeds } from './sink.ts'

export interface SinkRoleNeeds extends Omit<SinkNeeds, 'report'> {
  readonly logger: Logger
  readonly metrics: Metrics
  readonly partitions: number
  /** Everything up to `seq` of `events/partition` can be read from ClickHouse. */
  readonly onSunk: (partition: number, seq: number) => void
}

/** Sinks the partitions it is given. */
export function openSinks(needs: SinkRoleNeeds): Hold {
  const { logger, metrics, partitions } = needs
  const all = { partition: Array.from({ length: partitions }, (_, partition) => partition) }
  for (const counter of [metrics.sunk, metrics.sinkFailures, metrics.quarantined]) atZero(counter, all)
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
  return openSink({ ...needs, report })
}
