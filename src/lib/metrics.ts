// What Prometheus reads: one registry per thread, every metric declared here with its unit in its name and with labels whose values
// are few and known. What is of a thread has the label `shard`; what is not is added up over all threads, or is the largest of them.

import { getHeapStatistics } from 'node:v8'
import { Registry } from 'prom-client'
import type { CallFigures } from './measured.ts'
import { addUp, atZero, measureProcess, openDeclarations, type Samples } from './prometheus.ts'
import { openRequestMetrics, SECONDS_BOUNDS } from './request-metrics.ts'
import type { Spans } from './spans.ts'
import { openUtilization } from './utilization.ts'

export interface BuildLabels {
  readonly version: string
  readonly commit: string
  /** Of Node. */
  readonly node: string
  /** uws | node */
  readonly driver: string
  /** embedded | cluster */
  readonly mode: string
}

export type Metrics = ReturnType<typeof openMetrics>

/** Where the time of an identification goes, in order. */
export const STAGES = ['accept', 'queue', 'decide', 'flush', 'answer'] as const

/** What a process calls; ClickHouse may be embedded. */
export type Dependency = 'nats' | 'redis' | 'clickhouse'

/** Why identifications were not accepted that nothing was wrong with. */
export const REFUSALS = ['draining', 'log', 'disk', 'kv', 'pending', 'rate', 'storage'] as const
export type Refusal = (typeof REFUSALS)[number]

const COUNTS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000]

/** Which threads there are besides those of shards. */
export const MAIN = 'main'

/** `build`: null in threads that leave what is said of the process to another one. `shard`: its number, or MAIN. */
export function openMetrics(
  build: BuildLabels | null,
  shard: string = MAIN,
  spans: Spans | null = null,
  utilizationNow: () => number = openUtilization(),
) {
  const registry = new Registry()
  const { counter, tallies, gauge, histogram, histogramOf, histograms } = openDeclarations(registry)
  if (build !== null) {
    measureProcess(registry)
    const labels = ['version', 'commit', 'node', 'driver', 'mode'] as const
    gauge('build_info', 'Always 1; the labels say what runs.', labels).set({ ...build }, 1)
  }
  const requests = openRequestMetrics(registry)
  const ipAge = gauge('ip_source_age_seconds', 'Age of the data about addresses; absent where nobody knows.', [
    'source',
  ])
  const ipEntries = gauge('ip_source_entries', 'Ranges and AS numbers held of a source.', ['source'])
  const utilization = gauge(
    'thread_utilization_ratio',
    'Share of the time in which a thread was busy, since the last scrape.',
    ['shard'],
  )
  const heap = gauge('thread_heap_used_bytes', 'Heap in use by a thread.', ['shard'])
  const heapLimit = gauge('thread_heap_limit_bytes', 'Heap a thread may use.', ['shard'])
  const visit = tallies('identifications_total', 'Identifications decided, by verdict and environment.')
  const visitsOf = (env: 'live' | 'test') => ({
    allow: visit({ verdict: 'allow', env }),
    challenge: visit({ verdict: 'challenge', env }),
    block: visit({ verdict: 'block', env }),
    none: visit({ verdict: 'none', env }),
  })
  const refused = counter(
    'identifications_refused_total',
    'Identifications refused for no fault of theirs, by reason.',
    ['reason'],
  )
  atZero(refused, { reason: REFUSALS })
  const dependencyCalls = tallies('dependency_calls_total', 'Calls of servers, by whether they answered.')
  const visitorReads = tallies(
    'visitor_reads_total',
    'Visitors that an engine had to read because it did not hold them, by whether anybody knows them.',
  )
  const dependencyTook = histogramOf('dependency_call_duration_seconds', 'Time of a call of a server.', SECONDS_BOUNDS)

  /** What a thread knows of itself. */
  function lookAtThread(): void {
    utilization.set({ shard }, utilizationNow())
    const { used_heap_size: used, heap_size_limit: limit } = getHeapStatistics()
    heap.set({ shard }, used)
    heapLimit.set({ shard }, limit)
  }

  return {
    /** null: nobody traces. */
    spans,
    /** What is held of each source at this moment. */
    observeIpSources(states: Readonly<Record<string, { ageSeconds: number | null; entries: number } | null>>): void {
      ipAge.reset()
      ipEntries.reset()
      for (const [source, state] of Object.entries(states)) {
        ipEntries.set({ source }, state?.entries ?? 0)
        if (state !== null && state.ageSeconds !== null) ipAge.set({ source }, state.ageSeconds)
      }
    },
    observeRequest: requests.observe,
    declareRoute: requests.declare,
    stages: histograms(
      'decision_stage_duration_seconds',
      'Where the time of an identification goes: reading and stamping it, waiting for its decision, the batch it is decided in, the flush, the answer.',
      SECONDS_BOUNDS,
      'stage',
      STAGES,
    ),
    visits: { live: visitsOf('live'), test: visitsOf('test') },
    refused,
    decided: counter('identifications_decided_total', 'Events decided by the engine.', ['partition']),
    dead: counter('dead_letters_total', 'Records that could not be decided.', ['partition']),
    tenuresLost: counter('engine_tenures_lost_total', 'Times a partition had to be taken over again.', ['partition']),
    partitionsHeld: gauge('engine_partitions_held', 'Partitions this process decides.'),
    pending: gauge('identifications_pending', 'Accepted and not decided yet.'),
    untrustedProxy: gauge(
      'untrusted_proxy',
      '1 while visitors seem to come through a proxy that is not among the trusted ones, and have its address.',
      [],
      'max',
    ),
    oldestPending: gauge(
      'identifications_oldest_pending_seconds',
      'Age of the oldest that is accepted and not decided yet; 0 when there is none.',
      [],
      'max',
    ),
    sunk: counter('sink_rows_total', 'Rows inserted into ClickHouse.', ['partition']),
    sinkFailures: counter('sink_failures_total', 'Sink attempts that failed and were repeated.', ['partition']),
    quarantined: counter('sink_quarantined_total', 'Rows ClickHouse refused.', ['partition']),
    clickhouseUp: gauge('clickhouse_up', 'Whether ClickHouse answers: 1 or 0.'),
    sinkFlush: histogram(
      'sink_flush_duration_seconds',
      'Time of an insert into ClickHouse that succeeded.',
      SECONDS_BOUNDS,
    ),
    sinkRows: histogram('sink_flush_rows', 'Rows of an insert into ClickHouse.', COUNTS),
    oldestUnsunk: gauge(
      'sink_oldest_unsunk_seconds',
      'Age of the oldest event of the partitions held here that ClickHouse does not have yet; 0 when there is none.',
      [],
      'max',
    ),
    logAppend: histogram('log_append_duration_seconds', 'Time until an append to the log was durable.', SECONDS_BOUNDS),
    storeFlush: histograms(
      'store_flush_duration_seconds',
      'Time of a transaction of the embedded stores with its flush to the disk.',
      SECONDS_BOUNDS,
      'store',
      ['log', 'kv'],
    ),
    storeGroup: histograms(
      'store_flush_writes',
      'Writes that shared a transaction of the embedded stores.',
      COUNTS,
      'store',
      ['log', 'kv'],
    ),
    logBytes: gauge('log_bytes', 'Size of the log.'),
    logBytesMax: gauge('log_bytes_max', 'Size of the log at which nothing is appended any more.'),
    kvBytes: gauge('kv_bytes', 'Size of the state: visitors, lists, configuration.'),
    kvBytesMax: gauge('kv_bytes_max', 'Size of the state at which nothing is accepted any more.'),
    diskFree: gauge('disk_free_bytes', 'Free on the disk of the data folder.'),
    diskFreeMin: gauge('disk_free_bytes_min', 'Free space below which nothing is accepted any more.'),
    lastBackup: gauge(
      'backup_last_timestamp_seconds',
      'When the last backup was made that the data folder of this process knows of, since the epoch; 0 when it knows of none.',
      [],
      'max',
    ),
    visitorsKnown: gauge(
      'visitors_known',
      'Visitors of all partitions as the last sweep of the state counted them; 0 where another process sweeps.',
    ),
    visitorReads: {
      found: visitorReads({ found: 'yes' }),
      absent: visitorReads({ found: 'no' }),
    },
    rulesetSwaps: counter('ruleset_swaps_total', 'Rulesets loaded by this process.'),
    rulesetFailures: counter('ruleset_failures_total', 'Times loading a ruleset failed.'),
    rulesRevision: gauge(
      'rules_revision',
      'Sum of the revisions of all rulesets a thread decides by: the same everywhere when everybody has heard of every change.',
      ['shard'],
    ),
    propagation: histogram(
      'rules_propagation_seconds',
      'Time from a change of rules until every process decided by it, or until nobody waited any longer.',
      SECONDS_BOUNDS,
    ),
    listDeltas: counter('list_deltas_total', 'Changes to lists taken in by this process.'),
    listsRead: counter('lists_read_total', 'Lists read as a whole by this process.'),
    effectsSkipped: counter(
      'side_effects_skipped_total',
      'Side effects of rules without a value that a list could take, about an erased visitor, or with a claim where verifiedOnly is set.',
    ),
    healingsDropped: counter(
      'heals_dropped_total',
      'Visitors a visit showed to be one device that stay two, because there were more than engine.healsPerSecondMax.',
    ),
    unreadableSecrets: gauge(
      'secrets_unreadable',
      'Secrets of webhooks and tokens that the master key of this process did not open at its start.',
    ),
    recent: gauge('recent_events', 'Events that can be read by id before ClickHouse has them.'),
    ipSourceFailures: counter('ip_source_failures_total', 'Data about addresses that could not be loaded.', ['source']),
    webhookAttempts: counter('webhook_attempts_total', 'Attempts at deliveries, by what came of them.', [
      'trigger',
      'result',
    ]),
    webhookDuration: histogram('webhook_attempt_duration_seconds', 'Time of an attempt at a delivery.', SECONDS_BOUNDS),
    webhookDeliveries: counter('webhook_deliveries_total', 'Deliveries that came to an end.', ['status']),
    webhooksDisabled: counter('webhooks_disabled_total', 'Webhooks disabled because their receiver failed for a day.'),
    webhookOverflows: counter(
      'webhook_backlog_dropped_total',
      'Deliveries that failed because too many waited for their webhook.',
    ),
    webhooksInFlight: gauge('webhooks_in_flight', 'Deliveries under way.'),
    webhooksWaiting: gauge('webhook_backlog', 'Deliveries that wait in this process, of the shards it has.'),
    webhookOldest: gauge(
      'webhook_oldest_waiting_seconds',
      'How long the delivery that has waited longest has been due; 0 when there is none.',
      [],
      'max',
    ),
    webhooksDisabledNow: gauge('webhooks_disabled', 'Webhooks of this process’s shards that are disabled now.'),
    shardPartitions: gauge('shard_partitions', 'Partitions a shard decides.', ['shard']),
    shardRestarts: counter('shard_restarts_total', 'Times a thread was lost or hung, and was started anew.', ['shard']),
    /** Opened by whoever calls it: what is not used has no figures. */
    dependency(dependency: Dependency): CallFigures {
      const took = dependencyTook({ dependency })
      const ok = dependencyCalls({ dependency, result: 'ok' })
      const failed = dependencyCalls({ dependency, result: 'failed' })
      return {
        called(seconds, hasFailed) {
          took.observe(seconds)
          if (hasFailed) failed.add(1)
          else ok.add(1)
        },
      }
    },
    contentType: registry.contentType,
    async samples(): Promise<Samples> {
      lookAtThread()
      return registry.getMetricsAsJSON()
    },
    /** With what other threads have counted added up. */
    async text(others: readonly Samples[]): Promise<string> {
      lookAtThread()
      return addUp([await registry.getMetricsAsJSON(), ...others]).metrics()
    },
  }
}
