// The sink role of a process: one for the partitions it holds, and what is told of it.

import { decodeEventsRecord } from '../events/record.ts'
import type { Logger } from '../lib/logger.ts'
import type { Metrics } from '../lib/metrics.ts'
import { atZero } from '../lib/prometheus.ts'
import type { Log } from '../log/log.ts'
import { partitionScope, SINK_POSITION } from '../records/partitions.ts'
import type { Hold } from './shared.ts'
import { openSink, type SinkNeeds } from './sink.ts'

export interface SinkRoleNeeds extends Omit<SinkNeeds, 'report'> {
  readonly log: Log
  readonly logger: Logger
  readonly metrics: Metrics
  readonly partitions: number
  /** Everything up to `seq` of `events/partition` can be read from ClickHouse. */
  readonly onSunk: (partition: number, seq: number) => void
}

export interface Sinks {
  /** Sinks a partition until its signal aborts. */
  readonly hold: Hold
  /** How long ago the oldest event was accepted that a partition held here has and ClickHouse has not; 0: there is none. */
  oldestUnsunkMs(): Promise<number>
}

/** Orders among events have no time of their own: of so many in a row none is looked behind. */
const LOOKED_AT = { recordsMax: 16, bytesMax: 1_000_000, waitMsMax: 0 }

export function openSinks(needs: SinkRoleNeeds): Sinks {
  const { log, kv, clock, logger, metrics, partitions } = needs
  const held = new Set<number>()
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
    inserted(rows, seconds) {
      metrics.sinkRows.observe(rows)
      metrics.sinkFlush.observe(seconds)
      metrics.spans?.ended('fingerpost.sink', seconds * 1_000, { 'fingerpost.rows': rows })
    },
  }
  const hold = openSink({ ...needs, report })

  async function oldestOf(partition: number): Promise<number> {
    const sunk = (await kv.position(partitionScope(partition), SINK_POSITION)) ?? 0
    for (const { bytes } of await log.read('events', partition, sunk, LOOKED_AT)) {
      const [oldest] = decodeEventsRecord(bytes).items
      if (oldest !== undefined) return Math.max(0, clock.now() - oldest.acceptedAt)
    }
    return 0
  }

  return {
    async hold(partition, signal) {
      held.add(partition)
      try {
        await hold(partition, signal)
      } finally {
        held.delete(partition)
      }
    },
    oldestUnsunkMs: async () => Math.max(0, ...(await Promise.all([...held].map(oldestOf)))),
  }
}
