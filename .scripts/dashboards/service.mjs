// What users of the service feel: how much is asked, how fast it is answered, what fails, and whether what was accepted is decided and kept.
import { increase, lines, max, number, on, quantile, quantiles, rate, row, sum } from './panels.mjs'

const REQUESTS = 'fingerpost_http_requests_total'
const TOOK = 'fingerpost_http_request_duration_seconds'
const IDENTIFY = 'route="/v1/identify"'

export const service = {
  uid: 'fingerpost-service',
  title: 'Fingerpost / Service',
  about: 'What users of the service feel. Begin here; Pipeline says which stage is to blame.',
  panels: [
    number('Identifications', {
      unit: 'reqps',
      about: 'Answered calls of /v1/identify a second, refusals and errors included.',
      of: [[sum(rate(REQUESTS, IDENTIFY)), 'calls']],
    }),
    number('Errors', {
      unit: 'percentunit',
      about: 'Share of identifications answered with 5xx. The objective is one in a thousand over a month.',
      alert: 0.001,
      of: [
        [`(${sum(rate(REQUESTS, `${IDENTIFY},code=~"5.."`))} or vector(0)) / ${sum(rate(REQUESTS, IDENTIFY))}`, '5xx'],
      ],
    }),
    number('p99', {
      unit: 's',
      about: 'One identification in a hundred takes longer.',
      alert: 0.5,
      of: [[quantile(0.99, TOOK, { matchers: IDENTIFY }), 'p99']],
    }),
    number('Oldest undecided', {
      unit: 's',
      about: 'Age of the oldest identification that is accepted and has no decision.',
      alert: 10,
      of: [[max(on('fingerpost_identifications_oldest_pending_seconds')), 'age']],
    }),
    number('Oldest unsunk', {
      unit: 's',
      about: 'How far ClickHouse is behind. Nothing is lost while the log has room.',
      alert: 120,
      of: [[max(on('fingerpost_sink_oldest_unsunk_seconds')), 'age']],
    }),
    number('Processes', {
      unit: 'none',
      about: 'Processes that answer Prometheus.',
      of: [['sum(up{job="$job",instance=~"$instance"})', 'up']],
    }),
    lines('Requests by route', {
      unit: 'reqps',
      about: 'The busiest eight.',
      isStacked: true,
      of: [[`topk(8, ${sum(rate(REQUESTS), 'route')} > 0)`, '{{route}}']],
    }),
    lines('Answers of identify by code', {
      unit: 'reqps',
      about: '202: accepted, the decision comes later. 429: a rate of a key. 503: refused, see the reasons below.',
      isStacked: true,
      of: [[`${sum(rate(REQUESTS, IDENTIFY), 'code')} > 0`, '{{code}}']],
    }),
    lines('Time of an identification', {
      unit: 's',
      about: 'From its first byte to its answer.',
      alert: 0.5,
      of: quantiles(TOOK, { matchers: IDENTIFY }),
    }),
    lines('p99 by route', {
      unit: 's',
      about: 'The slowest eight. Questions of the history go to ClickHouse.',
      of: [[`topk(8, ${quantile(0.99, TOOK, { labels: 'route' })} > 0)`, '{{route}}']],
    }),
    lines('Decisions by verdict', {
      unit: 'cps',
      about: 'none: no rule matched. A jump of block is a rule or an attack.',
      isStacked: true,
      of: [[`${sum(rate('fingerpost_identifications_total'), 'verdict, env')}`, '{{verdict}} ({{env}})']],
    }),
    lines('Refused, by reason', {
      unit: 'cps',
      about: 'Identifications refused for no fault of theirs: RUNBOOKS.md, FingerpostRefusing.',
      of: [[sum(rate('fingerpost_identifications_refused_total'), 'reason'), '{{reason}}']],
    }),
    lines('Server errors by route', {
      unit: 'cps',
      about: 'Answers of 500 and more, of any route.',
      of: [[`${sum(rate(REQUESTS, 'code=~"5.."'), 'route, code')} > 0`, '{{route}} {{code}}']],
    }),
    lines('Firing alerts', {
      unit: 'none',
      about: 'Each has a runbook.',
      of: [
        [
          'count by (alertname, severity) (ALERTS{alertstate="firing",alertname=~"Fingerpost.+"})',
          '{{alertname}} ({{severity}})',
        ],
      ],
    }),
    row('Processes'),
    lines('CPU', {
      unit: 'none',
      about: 'Cores in use.',
      width: 8,
      of: [[sum(rate('process_cpu_seconds_total'), 'instance'), '{{instance}}']],
    }),
    lines('Memory', {
      unit: 'bytes',
      about: 'Resident set. What LMDB has mapped counts while the machine has room for it.',
      width: 8,
      of: [[on('process_resident_memory_bytes'), '{{instance}}']],
    }),
    lines('Descriptors', {
      unit: 'percentunit',
      about: 'Share of the descriptors a process may open. At the limit it accepts nobody.',
      alert: 0.8,
      width: 8,
      of: [[`${on('process_open_fds')} / ${on('process_max_fds')}`, '{{instance}}']],
    }),
    lines('Versions', {
      unit: 'none',
      about: 'Processes by what they run: more than one line is a roll-out under way.',
      of: [
        [
          `count by (version, commit, node, driver, mode) (${on('fingerpost_build_info')})`,
          '{{version}} {{commit}}, Node {{node}}, {{driver}}, {{mode}}',
        ],
      ],
    }),
    lines('Threads lost', {
      unit: 'none',
      about: 'Threads that were lost or hung and were started anew.',
      of: [[sum(increase('fingerpost_shard_restarts_total'), 'instance, shard'), '{{instance}} shard {{shard}}']],
    }),
  ],
}
