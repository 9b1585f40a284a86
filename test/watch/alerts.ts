// For each alert what makes it fire, and what is close to that and does not: as `promtool test rules` takes them. A series is written
// as promtool has it: `a+bxn` begins at a and adds b, n times, once a minute.

interface Case {
  readonly fires: Readonly<Record<string, string>>
  readonly quiet: Readonly<Record<string, string>>
}

const TIMES = 25
/** As long as the longest of what alerts wait for. */
const LONG_TIMES = 65
const flat = (value: number, times = TIMES): string => `${value}x${times}`
const growing = (perMinute: number): string => `0+${perMinute}x${TIMES}`
const series = (name: string, bad: string, good: string): Case => ({ fires: { [name]: bad }, quiet: { [name]: good } })
const counter = (name: string): Case => series(name, growing(1), flat(0))

const IDENTIFY = 'fingerpost_http_requests_total{route="/v1/identify",method="POST",code='
const BUCKET = 'fingerpost_http_request_duration_seconds_bucket{route="/v1/identify",le='
const CALL = 'fingerpost_dependency_call_duration_seconds_bucket{dependency="redis",le='

const failing = (share: number): Readonly<Record<string, string>> => ({
  [`${IDENTIFY}"200"}`]: growing(10_000 * (1 - share)),
  [`${IDENTIFY}"503"}`]: growing(10_000 * share),
})

const ratio = (above: string, below: string, bad: number, good: number): Case => ({
  fires: { [above]: flat(bad), [below]: flat(100) },
  quiet: { [above]: flat(good), [below]: flat(100) },
})

export const ALERT_CASES: Readonly<Record<string, Case>> = {
  FingerpostDown: series('up{job="fingerpost"}', flat(0), flat(1)),
  FingerpostErrorsFast: { fires: failing(0.02), quiet: failing(0.01) },
  FingerpostErrorsSlow: { fires: failing(0.004), quiet: failing(0.002) },
  FingerpostIdentifySlow: {
    fires: {
      [`${BUCKET}"0.5"}`]: growing(980),
      [`${BUCKET}"1"}`]: growing(1_000),
      [`${BUCKET}"+Inf"}`]: growing(1_000),
    },
    quiet: {
      [`${BUCKET}"0.5"}`]: growing(995),
      [`${BUCKET}"1"}`]: growing(1_000),
      [`${BUCKET}"+Inf"}`]: growing(1_000),
    },
  },
  FingerpostUndecidedOld: series('fingerpost_identifications_oldest_pending_seconds', flat(11), flat(9)),
  FingerpostUnsunkOld: series('fingerpost_sink_oldest_unsunk_seconds', flat(130), flat(100)),
  FingerpostSinkFailing: series('fingerpost_sink_failures_total{partition="1"}', growing(2), `0x10 1x${TIMES}`),
  FingerpostClickHouseDown: series('fingerpost_clickhouse_up', flat(0), flat(1)),
  FingerpostRowsQuarantined: counter('fingerpost_sink_quarantined_total{partition="0"}'),
  FingerpostDeadLetters: counter('fingerpost_dead_letters_total{partition="0"}'),
  FingerpostPartitionsRetaken: counter('fingerpost_engine_tenures_lost_total{partition="0"}'),
  FingerpostShardRestarted: counter('fingerpost_shard_restarts_total{shard="0"}'),
  FingerpostRefusing: {
    fires: { 'fingerpost_identifications_refused_total{reason="disk"}': growing(60) },
    quiet: { 'fingerpost_identifications_refused_total{reason="draining"}': growing(60) },
  },
  FingerpostDiskLow: ratio('fingerpost_disk_free_bytes', 'fingerpost_disk_free_bytes_min', 150, 250),
  FingerpostLogNearlyFull: ratio('fingerpost_log_bytes', 'fingerpost_log_bytes_max', 80, 70),
  FingerpostStateNearlyFull: ratio('fingerpost_kv_bytes', 'fingerpost_kv_bytes_max', 85, 75),
  FingerpostPropagationSlow: {
    fires: {
      fingerpost_rules_propagation_seconds_count: growing(2),
      'fingerpost_rules_propagation_seconds_bucket{le="1"}': growing(1),
    },
    quiet: {
      fingerpost_rules_propagation_seconds_count: growing(2),
      'fingerpost_rules_propagation_seconds_bucket{le="1"}': growing(2),
    },
  },
  FingerpostRulesDiffer: {
    fires: { 'fingerpost_rules_revision{shard="0"}': flat(7), 'fingerpost_rules_revision{shard="1"}': flat(6) },
    quiet: { 'fingerpost_rules_revision{shard="0"}': flat(7), 'fingerpost_rules_revision{shard="1"}': flat(7) },
  },
  FingerpostRulesetsUnread: counter('fingerpost_ruleset_failures_total'),
  FingerpostWebhooksLate: series('fingerpost_webhook_oldest_waiting_seconds', flat(70), flat(50)),
  FingerpostWebhooksFailing: {
    fires: {
      'fingerpost_webhook_attempts_total{trigger="auto",result="ok"}': growing(4),
      'fingerpost_webhook_attempts_total{trigger="auto",result="timeout"}': growing(6),
    },
    quiet: {
      'fingerpost_webhook_attempts_total{trigger="auto",result="ok"}': growing(6),
      'fingerpost_webhook_attempts_total{trigger="auto",result="timeout"}': growing(4),
    },
  },
  FingerpostDeliveriesDropped: counter('fingerpost_webhook_backlog_dropped_total'),
  FingerpostWebhookDisabled: counter('fingerpost_webhooks_disabled_total'),
  FingerpostUntrustedProxy: series('fingerpost_untrusted_proxy', flat(1), flat(0)),
  FingerpostSecretsUnreadable: series('fingerpost_secrets_unreadable', flat(1), flat(0)),
  FingerpostThreadBusy: series('fingerpost_thread_utilization_ratio{shard="0"}', flat(0.95), flat(0.85)),
  FingerpostHeapNearlyFull: ratio('fingerpost_thread_heap_used_bytes', 'fingerpost_thread_heap_limit_bytes', 90, 80),
  FingerpostDescriptorsNearlyUsedUp: ratio(
    'process_open_fds{job="fingerpost"}',
    'process_max_fds{job="fingerpost"}',
    90,
    70,
  ),
  // promtool's time begins at 0.
  FingerpostBackupOld: series(
    'fingerpost_backup_last_timestamp_seconds',
    `-${8 * 86_400}x${LONG_TIMES}`,
    `-${6 * 86_400}x${LONG_TIMES}`,
  ),
  FingerpostIpDataFailing: counter('fingerpost_ip_source_failures_total{source="geo"}'),
  FingerpostIpDataOld: series(
    'fingerpost_ip_source_age_seconds{source="geo"}',
    flat(31 * 86_400, LONG_TIMES),
    flat(29 * 86_400, LONG_TIMES),
  ),
  FingerpostServerFailing: counter('fingerpost_dependency_calls_total{dependency="redis",result="failed"}'),
  FingerpostServerSlow: {
    fires: { [`${CALL}"0.25"}`]: growing(980), [`${CALL}"0.5"}`]: growing(1_000), [`${CALL}"+Inf"}`]: growing(1_000) },
    quiet: { [`${CALL}"0.25"}`]: growing(995), [`${CALL}"0.5"}`]: growing(1_000), [`${CALL}"+Inf"}`]: growing(1_000) },
  },
}

const input = (values: Readonly<Record<string, string>>) =>
  Object.entries(values).map(([one, text]) => ({ series: one, values: text }))

/** A file for `promtool test rules`. */
export const unitTests = (rulesFile: string) => ({
  rule_files: [rulesFile],
  evaluation_interval: '1m',
  tests: Object.entries(ALERT_CASES).flatMap(([alert, { fires, quiet }]) => {
    const expr = `count(ALERTS{alertname="${alert}",alertstate="firing"})`
    const long = Object.values(fires).some((values) => values.endsWith(`x${LONG_TIMES}`))
    const at = { eval_time: `${long ? LONG_TIMES : TIMES}m`, expr }
    return [
      {
        name: `${alert} fires`,
        interval: '1m',
        input_series: input(fires),
        promql_expr_test: [{ ...at, exp_samples: [{ labels: '{}', value: 1 }] }],
      },
      {
        name: `${alert} is quiet`,
        interval: '1m',
        input_series: input(quiet),
        promql_expr_test: [{ ...at, exp_samples: [] }],
      },
    ]
  }),
})
