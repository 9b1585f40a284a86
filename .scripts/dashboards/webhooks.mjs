// What receivers of webhooks feel: whether deliveries arrive, how late, and which receivers are to blame for it.
import { increase, lines, max, number, on, quantile, quantiles, rate, sum } from './panels.mjs'

const ATTEMPTS = 'fingerpost_webhook_attempts_total'
const OLDEST = 'fingerpost_webhook_oldest_waiting_seconds'

export const webhooks = {
  uid: 'fingerpost-webhooks',
  title: 'Fingerpost / Webhooks',
  about: 'Whether deliveries arrive and how late. Which webhook it is, GET /v1/webhooks/{id}/deliveries says.',
  panels: [
    number('Delivered', {
      unit: 'cps',
      about: 'Deliveries that arrived.',
      of: [[sum(rate('fingerpost_webhook_deliveries_total', 'status="delivered"')), 'delivered']],
    }),
    number('Failed attempts', {
      unit: 'percentunit',
      about: 'Share of attempts that failed. Receivers fail; more than half of everything is us, or the network.',
      alert: 0.5,
      of: [[`(${sum(rate(ATTEMPTS, 'result!="ok"'))} or vector(0)) / ${sum(rate(ATTEMPTS))}`, 'failed']],
    }),
    number('Waiting', {
      unit: 'none',
      about: 'Deliveries that wait for their turn or their next attempt.',
      of: [[sum(on('fingerpost_webhook_backlog')), 'waiting']],
    }),
    number('Overdue', {
      unit: 's',
      about: 'How long the delivery that has waited longest has been due.',
      alert: 60,
      of: [[max(on(OLDEST)), 'overdue']],
    }),
    number('Attempt p99', {
      unit: 's',
      about: 'Time of an attempt, that of the receiver included.',
      of: [[quantile(0.99, 'fingerpost_webhook_attempt_duration_seconds'), 'p99']],
    }),
    number('Disabled now', {
      unit: 'none',
      about: 'Webhooks that are disabled, by their owners or because their receiver failed for a day.',
      of: [[sum(on('fingerpost_webhooks_disabled')), 'disabled']],
    }),
    lines('Attempts by result', {
      unit: 'cps',
      about: 'http_status: the receiver answered with something else than 2xx. timeout: it did not answer in time.',
      isStacked: true,
      of: [[`${sum(rate(ATTEMPTS), 'result')} > 0`, '{{result}}']],
    }),
    lines('Attempts by trigger', {
      unit: 'cps',
      about: 'auto: by the schedule. Others were asked for.',
      isStacked: true,
      of: [[`${sum(rate(ATTEMPTS), 'trigger')} > 0`, '{{trigger}}']],
    }),
    lines('Time of an attempt', {
      unit: 's',
      about: 'Connection, request and answer of the receiver.',
      of: quantiles('fingerpost_webhook_attempt_duration_seconds'),
    }),
    lines('Deliveries that came to an end', {
      unit: 'cps',
      about: 'failed: no attempt of the schedule got through, or too many waited.',
      isStacked: true,
      of: [[sum(rate('fingerpost_webhook_deliveries_total'), 'status'), '{{status}}']],
    }),
    lines('Backlog', {
      unit: 'none',
      about: 'Deliveries that wait, and those under way.',
      of: [
        [sum(on('fingerpost_webhook_backlog'), 'instance'), '{{instance}} waiting'],
        [sum(on('fingerpost_webhooks_in_flight'), 'instance'), '{{instance}} under way'],
      ],
    }),
    lines('Overdue', {
      unit: 's',
      about: 'Grows when a process cannot keep up with what is due, not when receivers fail.',
      alert: 60,
      of: [[max(on(OLDEST), 'instance'), '{{instance}}']],
    }),
    lines('Dropped and disabled', {
      unit: 'none',
      about: 'Deliveries dropped because too many waited for their webhook; webhooks disabled after a day of failures.',
      of: [
        [sum(increase('fingerpost_webhook_backlog_dropped_total')), 'dropped'],
        [sum(increase('fingerpost_webhooks_disabled_total')), 'disabled'],
      ],
    }),
    lines('Secrets and side effects', {
      unit: 'none',
      about: 'Secrets that the master key does not open; side effects of rules that had no value to put on a list.',
      of: [
        [max(on('fingerpost_secrets_unreadable'), 'instance'), '{{instance}} unreadable secrets'],
        [sum(increase('fingerpost_side_effects_skipped_total')), 'side effects skipped'],
      ],
    }),
  ],
}
