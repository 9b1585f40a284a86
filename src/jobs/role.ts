// The jobs role of a process: leased work that nobody waits for, each kind done by one process at a time.

import type { Bus } from '../bus/bus.ts'
import type { ClickHouse } from '../clickhouse/clickhouse.ts'
import type { Kv } from '../kv/kv.ts'
import type { Clock } from '../lib/clock.ts'
import type { Logger } from '../lib/logger.ts'
import type { Metrics } from '../lib/metrics.ts'
import { must } from '../lib/must.ts'
import type { Log } from '../log/log.ts'
import { openAlertMetrics } from '../reads/alert-metrics.ts'
import { DISPATCHER_POSITION } from '../records/partitions.ts'
import { runAlerts } from './alerts.ts'
import { type ListJobNeeds, runListJob } from './lists.ts'
import { type PurgeNeeds, runPurge } from './purge.ts'
import { runSweep, type SweepNeeds } from './sweep.ts'
import { runTrim } from './trim.ts'

export interface JobsRoleNeeds extends Omit<ListJobNeeds, 'onError'> {
  readonly clickhouse: ClickHouse
  readonly alertsEveryMs: number
  readonly purge: Pick<PurgeNeeds, 'everyMs' | 'cluster' | 'retention'>
  readonly visitorsDays: SweepNeeds['visitorsDays']
  readonly log: Log
  readonly kv: Kv
  readonly bus: Bus
  readonly clock: Clock
  readonly logger: Logger
  readonly metrics: Pick<Metrics, 'visitorsKnown'>
  readonly partitions: number
  /** How long records stay in the log at least, milliseconds. */
  readonly keepMs: number
  /** Takes on the names that are this process's share. */
  readonly own: (names: readonly string[], hold: (name: string, signal: AbortSignal) => Promise<void>) => void
}

const TRIM_EVERY_MS = 5_000

export function startJobs(needs: JobsRoleNeeds): void {
  const { logger, metrics } = needs
  const onError = (what: string) => (error: unknown) => logger.error({ error }, what)
  const trimming = {
    ...needs,
    followers: [DISPATCHER_POSITION],
    everyMs: TRIM_EVERY_MS,
    onError: onError('trimming the log failed'),
  }
  const listing = { ...needs, onError: onError('expiring entries of lists failed') }
  const alerting = {
    ...needs,
    measure: openAlertMetrics(needs),
    everyMs: needs.alertsEveryMs,
    onError: onError('evaluating an alert failed'),
  }
  const purging = { ...needs, ...needs.purge, onError: onError('removing what was deleted failed') }
  const sweeping = {
    ...needs,
    everyMs: needs.purge.everyMs,
    onError: onError('sweeping the state failed'),
    onVisitors: (count: number | null) => metrics.visitorsKnown.set(count ?? 0),
  }
  const jobs: Readonly<Record<string, (signal: AbortSignal) => Promise<void>>> = {
    trim: (signal) => runTrim(trimming, signal),
    lists: (signal) => runListJob(listing, signal),
    alerts: (signal) => runAlerts(alerting, signal),
    purge: (signal) => runPurge(purging, signal),
    sweep: (signal) => runSweep(sweeping, signal),
  }
  needs.own(Object.keys(jobs), (name, signal) => must(jobs[name], 'a job')(signal))
}
