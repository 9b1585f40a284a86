// A deployment of many processes: who holds what, whether load is spread, and how NATS, Redis and ClickHouse answer each of them.
import { increase, lines, max, number, on, quantile, rate, row, sum } from './panels.mjs'

const CALLS = 'fingerpost_dependency_calls_total'
const TOOK = 'fingerpost_dependency_call_duration_seconds'
const HELD = 'fingerpost_engine_partitions_held'
const REVISION = 'fingerpost_rules_revision'

const answers = (dependency, name) =>
  lines(name, {
    unit: 's',
    about: `p50 and p99 of calls of ${name}, as each process sees them: one line apart from the others is that machine’s network.`,
    width: 8,
    of: [0.5, 0.99].map((share) => [
      quantile(share, TOOK, { labels: 'instance', matchers: `dependency="${dependency}"` }),
      `{{instance}} p${share * 100}`,
    ]),
  })

export const cluster = {
  uid: 'fingerpost-cluster',
  title: 'Fingerpost / Cluster',
  about: 'Who holds what, whether load is spread, and how the servers behind it answer.',
  panels: [
    number('Processes', {
      unit: 'none',
      about: 'Processes that answer Prometheus.',
      of: [['sum(up{job="$job",instance=~"$instance"})', 'up']],
    }),
    number('Away', {
      unit: 'none',
      about: 'Processes that cannot be scraped.',
      alert: 1,
      of: [['count(up{job="$job",instance=~"$instance"} == 0) or vector(0)', 'away']],
    }),
    number('Partitions held', {
      unit: 'none',
      about: 'Of data.partitions; fewer means that some wait for an owner.',
      of: [[sum(on(HELD)), 'held']],
    }),
    number('Failed calls', {
      unit: 'cps',
      about: 'Calls of NATS, Redis and ClickHouse that failed.',
      alert: 0.1,
      of: [[sum(rate(CALLS, 'result="failed"')), 'failed']],
    }),
    number('Rules apart', {
      unit: 'none',
      about: '0 when every thread decides by the same rules.',
      alert: 1,
      of: [[`max(${on(REVISION)}) - min(${on(REVISION)})`, 'apart']],
    }),
    number('Decided', {
      unit: 'cps',
      about: 'Decisions of all processes.',
      of: [[sum(rate('fingerpost_identifications_decided_total')), 'decided']],
    }),
    row('Who does what'),
    lines('Partitions by process', {
      unit: 'none',
      about: 'Spread evenly a few seconds after a process came or went.',
      isStacked: true,
      of: [[`${sum(on(HELD), 'instance')} > 0`, '{{instance}}']],
    }),
    lines('Taken over again', {
      unit: 'none',
      about: 'A few when processes come and go; many mean that owners stand still or the network breaks.',
      of: [[sum(increase('fingerpost_engine_tenures_lost_total'), 'instance'), '{{instance}}']],
    }),
    lines('Accepted by process', {
      unit: 'reqps',
      about: 'Calls of /v1/identify: uneven lines are the balancer’s.',
      of: [[`${sum(rate('fingerpost_http_requests_total', 'route="/v1/identify"'), 'instance')} > 0`, '{{instance}}']],
    }),
    lines('Decided by process', {
      unit: 'cps',
      about: 'Follows the partitions held.',
      of: [[`${sum(rate('fingerpost_identifications_decided_total'), 'instance')} > 0`, '{{instance}}']],
    }),
    lines('Busiest thread', {
      unit: 'percentunit',
      about: 'The busiest thread of each process.',
      alert: 0.9,
      width: 8,
      of: [[max(on('fingerpost_thread_utilization_ratio'), 'instance'), '{{instance}}']],
    }),
    lines('CPU', {
      unit: 'none',
      about: 'Cores in use.',
      width: 8,
      of: [[sum(rate('process_cpu_seconds_total'), 'instance'), '{{instance}}']],
    }),
    lines('Memory', {
      unit: 'bytes',
      about: 'Resident set.',
      width: 8,
      of: [[on('process_resident_memory_bytes'), '{{instance}}']],
    }),
    row('NATS, Redis, ClickHouse'),
    lines('Calls', {
      unit: 'cps',
      about: 'By server.',
      of: [[sum(rate(CALLS), 'dependency'), '{{dependency}}']],
    }),
    lines('Failed calls by process', {
      unit: 'cps',
      about: 'One process alone: its network. All of them: the server.',
      of: [[`${sum(rate(CALLS, 'result="failed"'), 'instance, dependency')} > 0`, '{{instance}} {{dependency}}']],
    }),
    answers('nats', 'NATS'),
    answers('redis', 'Redis'),
    answers('clickhouse', 'ClickHouse'),
    row('Lag'),
    lines('Oldest undecided', {
      unit: 's',
      about: 'Seen by who accepted it: what autoscaling of engines goes by.',
      alert: 10,
      width: 8,
      of: [[max(on('fingerpost_identifications_oldest_pending_seconds'), 'instance'), '{{instance}}']],
    }),
    lines('Oldest unsunk', {
      unit: 's',
      about: 'Of the partitions a process holds.',
      alert: 120,
      width: 8,
      of: [[max(on('fingerpost_sink_oldest_unsunk_seconds'), 'instance'), '{{instance}}']],
    }),
    lines('Log', {
      unit: 'percentunit',
      about: 'Share of log.bytesMax in use.',
      alert: 0.75,
      width: 8,
      of: [[`${max(on('fingerpost_log_bytes'))} / (${max(on('fingerpost_log_bytes_max'))} > 0)`, 'log']],
    }),
  ],
}
