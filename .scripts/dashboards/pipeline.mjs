// The way of an identification through a process: which stage takes the time, what waits, and what bounds it.
import { increase, lines, max, mean, on, quantile, quantiles, rate, row, sum } from './panels.mjs'

const STAGE = 'fingerpost_decision_stage_duration_seconds'
const FLUSH = 'fingerpost_store_flush_duration_seconds'
const INSERT = 'fingerpost_sink_flush_duration_seconds'
const LOOP = 'nodejs_eventloop_lag'

export const pipeline = {
  uid: 'fingerpost-pipeline',
  title: 'Fingerpost / Pipeline',
  about: 'Accept, decide, store: which stage takes the time, what waits, and what it is bounded by.',
  panels: [
    row('An identification'),
    lines('Time by stage', {
      unit: 's',
      about:
        'Means, one upon the other: reading and stamping, waiting for its decision, the batch, the flush, the answer.',
      isStacked: true,
      of: [[mean(STAGE, 'stage'), '{{stage}}']],
    }),
    lines('p99 by stage', {
      unit: 's',
      about: 'The stage whose line rises first is the one to look at.',
      of: [[quantile(0.99, STAGE, { labels: 'stage' }), '{{stage}}']],
    }),
    lines('Waiting for a decision', {
      unit: 'none',
      about: 'Bounded by ingress.pendingMax; beyond it identifications are refused.',
      width: 8,
      of: [[sum(on('fingerpost_identifications_pending'), 'instance'), '{{instance}}']],
    }),
    lines('Oldest undecided', {
      unit: 's',
      about: 'Grows when a partition has no owner or its owner stands still.',
      alert: 10,
      width: 8,
      of: [[max(on('fingerpost_identifications_oldest_pending_seconds'), 'instance'), '{{instance}}']],
    }),
    lines('Decided by partition', {
      unit: 'cps',
      about: 'A partition is decided by one thread: one that is far above the others bounds the rest.',
      width: 8,
      of: [
        [`topk(16, ${sum(rate('fingerpost_identifications_decided_total'), 'partition')})`, 'partition {{partition}}'],
      ],
    }),
    lines('Dead letters and lost tenures', {
      unit: 'none',
      about: 'Records that could not be decided; partitions that were taken over again.',
      of: [
        [sum(increase('fingerpost_dead_letters_total')), 'dead letters'],
        [sum(increase('fingerpost_engine_tenures_lost_total')), 'tenures lost'],
      ],
    }),
    lines('Recent events', {
      unit: 'none',
      about: 'Events that can be read by id before ClickHouse has them.',
      of: [[sum(on('fingerpost_recent_events'), 'instance'), '{{instance}}']],
    }),
    row('Log and state'),
    lines('Append until durable', {
      unit: 's',
      about: 'What a caller waits for the disk, or for NATS.',
      width: 8,
      of: quantiles('fingerpost_log_append_duration_seconds'),
    }),
    lines('Flush of the stores', {
      unit: 's',
      about: 'p99 of a transaction of the embedded stores; what it takes is the disk’s fsync.',
      width: 8,
      of: [[quantile(0.99, FLUSH, { labels: 'store' }), '{{store}}']],
    }),
    lines('Writes per flush', {
      unit: 'none',
      about: 'The more load, the more writes share a flush: that is how throughput holds on a slow disk.',
      width: 8,
      of: [[mean('fingerpost_store_flush_writes', 'store'), '{{store}}']],
    }),
    lines('Log', {
      unit: 'percentunit',
      about: 'Share of log.bytesMax in use. Grows while ClickHouse is away; at 1 nothing is accepted.',
      alert: 0.75,
      width: 8,
      of: [[`${on('fingerpost_log_bytes')} / (${on('fingerpost_log_bytes_max')} > 0)`, '{{instance}}']],
    }),
    lines('State', {
      unit: 'percentunit',
      about: 'Share of kv.bytesMax in use by visitors, lists and configuration.',
      alert: 0.8,
      width: 8,
      of: [[`${on('fingerpost_kv_bytes')} / (${on('fingerpost_kv_bytes_max')} > 0)`, '{{instance}}']],
    }),
    lines('Free disk', {
      unit: 'bytes',
      about: 'Of the data folder, and the floor at which identifications are refused.',
      width: 8,
      of: [
        [on('fingerpost_disk_free_bytes'), '{{instance}}'],
        [max(on('fingerpost_disk_free_bytes_min')), 'floor'],
      ],
    }),
    lines('Visitors known', {
      unit: 'none',
      about: 'As the last sweep of the state counted them, purge.everySeconds apart.',
      width: 6,
      of: [[max(on('fingerpost_visitors_known')), 'visitors']],
    }),
    lines('Visitors read', {
      unit: 'none',
      about:
        'Of what is decided, how many visitors had to be read first because the engine did not hold them: new ones, those who had been away for one or two minutes, and, where more than engine.visitorsMax of a partition come within a minute, some of these.',
      width: 6,
      of: [
        [
          `${sum(rate('fingerpost_visitor_reads_total'), 'found')} / on () group_left () ${sum(rate('fingerpost_identifications_decided_total'))}`,
          'known: {{found}}',
        ],
      ],
    }),
    lines('Age of the last backup', {
      unit: 's',
      about: 'As far as the data folder of a process knows; nothing where it knows of none.',
      width: 6,
      alert: 7 * 86_400,
      of: [[`time() - max(${on('fingerpost_backup_last_timestamp_seconds')} != 0)`, 'age']],
    }),
    lines('Ids not healed', {
      unit: 'cps',
      about:
        'Visitors that a visit showed to be one device and that stay two, because there were more than engine.healsPerSecondMax. More than none for long: somebody may try it on, or raise the setting.',
      width: 6,
      of: [[sum(rate('fingerpost_heals_dropped_total')), 'dropped']],
    }),
    row('ClickHouse'),
    lines('Answers', {
      unit: 'none',
      about: '1 while ClickHouse answers, 0 while it does not.',
      width: 8,
      of: [[`min(${on('fingerpost_clickhouse_up')}) by (instance)`, '{{instance}}']],
    }),
    lines('Rows inserted', {
      unit: 'rowsps',
      about: 'Follows decisions at a distance of one flush.',
      width: 8,
      of: [
        [sum(rate('fingerpost_sink_rows_total')), 'rows'],
        [sum(rate('fingerpost_identifications_decided_total')), 'decided'],
      ],
    }),
    lines('Oldest unsunk', {
      unit: 's',
      about: 'Age of the oldest event ClickHouse does not have.',
      alert: 120,
      width: 8,
      of: [[max(on('fingerpost_sink_oldest_unsunk_seconds'), 'instance'), '{{instance}}']],
    }),
    lines('Insert', { unit: 's', about: 'Time of an insert that succeeded.', width: 8, of: quantiles(INSERT) }),
    lines('Rows per insert', {
      unit: 'none',
      about: 'Few rows per insert make many parts: raise sink.flushMs.',
      width: 8,
      of: [[mean('fingerpost_sink_flush_rows'), 'rows']],
    }),
    lines('Failed inserts, refused rows', {
      unit: 'none',
      about: 'A failed insert is repeated. A refused row is in the table quarantine, with the reason.',
      width: 8,
      of: [
        [sum(increase('fingerpost_sink_failures_total')), 'failed'],
        [sum(increase('fingerpost_sink_quarantined_total')), 'quarantined'],
      ],
    }),
    lines('Calls of ClickHouse', {
      unit: 's',
      about: 'p99 of all calls, questions of the API included.',
      width: 24,
      of: [
        [quantile(0.99, 'fingerpost_dependency_call_duration_seconds', { matchers: 'dependency="clickhouse"' }), 'p99'],
      ],
    }),
    row('Rules and lists'),
    lines('Revision by thread', {
      unit: 'none',
      about: 'Sum of the revisions a thread decides by: lines that stay apart decide by different rules.',
      width: 8,
      of: [[on('fingerpost_rules_revision'), '{{instance}} shard {{shard}}']],
    }),
    lines('Propagation', {
      unit: 's',
      about: 'From a change of rules until every process decides by it.',
      alert: 1,
      width: 8,
      of: quantiles('fingerpost_rules_propagation_seconds'),
    }),
    lines('Rulesets and lists taken in', {
      unit: 'none',
      about: 'Rulesets loaded, rulesets that could not be loaded, changes of lists, lists read whole.',
      width: 8,
      of: [
        [sum(increase('fingerpost_ruleset_swaps_total')), 'rulesets'],
        [sum(increase('fingerpost_ruleset_failures_total')), 'rulesets failed'],
        [sum(increase('fingerpost_list_deltas_total')), 'changes of lists'],
        [sum(increase('fingerpost_lists_read_total')), 'lists read'],
      ],
    }),
    row('Threads'),
    lines('Utilisation', {
      unit: 'percentunit',
      about: 'Share of its time that a thread was busy. Near 1 it is what bounds throughput.',
      alert: 0.9,
      width: 6,
      of: [[on('fingerpost_thread_utilization_ratio'), '{{instance}} {{shard}}']],
    }),
    lines('Partitions by shard', {
      unit: 'none',
      about:
        'Which threads decide, and how many partitions each. More join while those that do are full and a core is idle.',
      width: 6,
      of: [[on('fingerpost_shard_partitions'), '{{instance}} shard {{shard}}']],
    }),
    lines('Heap', {
      unit: 'percentunit',
      about: 'Share of the heap a thread may use.',
      alert: 0.85,
      width: 6,
      of: [
        [
          `${on('fingerpost_thread_heap_used_bytes')} / ${on('fingerpost_thread_heap_limit_bytes')}`,
          '{{instance}} {{shard}}',
        ],
      ],
    }),
    lines('Event loop of the main thread', {
      unit: 's',
      about: 'How late timers are: the 99th percentile and the worst since the last scrape.',
      width: 6,
      of: [
        [max(on(`${LOOP}_p99_seconds`), 'instance'), '{{instance}} p99'],
        [max(on(`${LOOP}_max_seconds`), 'instance'), '{{instance}} max'],
      ],
    }),
    row('Data about addresses'),
    lines('Age', {
      unit: 's',
      about: 'Of each source, where it is known. Older than a month is stale.',
      width: 6,
      alert: 30 * 86_400,
      of: [[max(on('fingerpost_ip_source_age_seconds'), 'source'), '{{source}}']],
    }),
    lines('Sources that could not be loaded', {
      unit: 'none',
      about: 'What was loaded before stays in use.',
      width: 6,
      of: [[sum(increase('fingerpost_ip_source_failures_total'), 'source'), '{{source}}']],
    }),
    lines('Entries', {
      unit: 'none',
      about: 'Ranges and AS numbers held; 0 where a source is not configured.',
      width: 6,
      of: [[max(on('fingerpost_ip_source_entries'), 'source'), '{{source}}']],
    }),
    lines('A proxy that is not trusted', {
      unit: 'none',
      about:
        '1 while visitors seem to come through a proxy that FINGERPOST_TRUSTED_PROXIES does not name, and have its address.',
      width: 6,
      alert: 1,
      of: [[max(on('fingerpost_untrusted_proxy'), 'instance'), '{{instance}}']],
    }),
  ],
}
