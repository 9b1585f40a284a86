// What Prometheus reads: one registry per process, every metric declared here with its unit in its name.

import { Registry } from 'prom-client'
import { addUp, measureProcess, openDeclarations, type Samples } from './prometheus.ts'
import { openRequestMetrics } from './request-metrics.ts'

export interface BuildInfo {
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

/** `build`: null in threads that leave what is said of the process to another one. */
export function openMetrics(build: BuildInfo | null) {
  const registry = new Registry()
  const { counter, gauge } = openDeclarations(registry)
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
  return {
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
    decided: counter('identifications_decided_total', 'Events decided by the engine.', ['partition']),
    dead: counter('dead_letters_total', 'Records that could not be decided.', ['partition']),
    tenuresLost: counter('engine_tenures_lost_total', 'Times a partition had to be taken over again.', ['partition']),
    partitionsHeld: gauge('engine_partitions_held', 'Partitions this process decides.'),
    pending: gauge('identifications_pending', 'Accepted and not decided yet.'),
    sunk: counter('sink_rows_total', 'Rows inserted into ClickHouse.', ['partition']),
    sinkFailures: counter('sink_failures_total', 'Sink attempts that failed and were repeated.', ['partition']),
    quarantined: counter('sink_quarantined_total', 'Rows ClickHouse refused.', ['partition']),
    logBytes: gauge('log_bytes', 'Size of the log.'),
    kvBytes: gauge('kv_bytes', 'Size of the state: visitors, lists, configuration.'),
    rulesetSwaps: counter('ruleset_swaps_total', 'Rulesets loaded by this process.'),
    listDeltas: counter('list_deltas_total', 'Changes to lists taken in by this process.'),
    listsRead: counter('lists_read_total', 'Lists read as a whole by this process.'),
    effectsSkipped: counter(
      'side_effects_skipped_total',
      'Side effects of rules without a value that a list could take, or with a claim where verifiedOnly is set.',
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
    webhookDeliveries: counter('webhook_deliveries_total', 'Deliveries that came to an end.', ['status']),
    webhooksDisabled: counter('webhooks_disabled_total', 'Webhooks disabled because their receiver failed for a day.'),
    webhookOverflows: counter(
      'webhook_backlog_dropped_total',
      'Deliveries that failed because too many waited for their webhook.',
    ),
    webhooksInFlight: gauge('webhooks_in_flight', 'Deliveries under way.'),
    contentType: registry.contentType,
    samples: async (): Promise<Samples> => registry.getMetricsAsJSON(),
    /** With what other threads have counted added up. */
    text: async (others: readonly Samples[]): Promise<string> =>
      addUp([await registry.getMetricsAsJSON(), ...others]).metrics(),
  }
}
