// The sink role of a process: the sink of each partition it holds.

import type { Logger } from '../lib/logger.ts'
import type { Metrics } from '../lib/metrics.ts'
import { runSink, type SinkNeeds } from './sink.ts'

export interface SinkRoleNeeds extends Omit<SinkNeeds, 'report'> {
  readonly logger: Logger
  readonly metrics: Metrics
  /** Everything up to `seq` of `events/partition` can be read from ClickHouse. */
  readonly onSunk: (partition: number, seq: number) => void
}

/** Sinks a partition until `signal` aborts. */
export type RunSink = (partition: number, signal: AbortSignal) => Promise<void>

export function openSinks(needs: SinkRoleNeeds): RunSink {
  const { logger, metrics } = needs
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
  return (partition, signal) => runSink({ ...needs, report }, partition, signal)
}
