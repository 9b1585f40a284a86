// What the API shows of alerts and their incidents, and how their endpoints are described.

import { ALERT_METRICS, ALERT_OPERATORS, ALERT_STATUSES } from '../../domain/alert.ts'
import { SIGNAL_NAMES, VERDICTS } from '../../domain/event.ts'
import { oneOf, Type } from '../../domain/schema.ts'
import {
  alertId,
  countOf,
  cursorPage,
  deleted,
  type Fragment,
  moment,
  offsetPage,
  PAGE_MEMBERS,
  type RouteDoc,
  ruleId,
  shared,
  words,
} from '../describe.ts'

const ALERT_ID = 'alr_1qAz3wSx5eDc7rFv9tGb'

export const Alert = shared(
  'Alert',
  Type.Object({
    id: alertId(),
    name: words(),
    metric: oneOf(ALERT_METRICS),
    filters: Type.Object({
      verdict: Type.Optional(oneOf(VERDICTS)),
      ruleId: Type.Optional(ruleId()),
      signal: Type.Optional(oneOf(SIGNAL_NAMES)),
      platform: Type.Optional(words()),
    }),
    operator: oneOf(ALERT_OPERATORS),
    threshold: Type.Number(),
    windowSeconds: countOf(),
    minEvents: countOf(),
    cooldownSeconds: countOf(),
    status: oneOf(ALERT_STATUSES),
    createdAt: moment(),
    updatedAt: moment(),
  }),
)
export const Incident = shared(
  'Incident',
  Type.Object({
    id: words(),
    alertId: alertId(),
    value: Type.Number({ description: 'What the metric was.' }),
    windowStart: moment(),
    windowEnd: moment(),
    triggeredAt: moment(),
  }),
)

const times = { createdAt: '2026-11-01T08:00:00.000Z', updatedAt: '2026-11-20T18:04:05.123Z' }
const body = { name: 'Too many blocked', metric: 'block_rate', operator: 'gt', threshold: 0.2 }
const alert = {
  id: ALERT_ID,
  ...body,
  filters: {},
  windowSeconds: 300,
  minEvents: 0,
  cooldownSeconds: 3_600,
  status: 'active',
  ...times,
}
const incident = {
  id: 'inc_01KAJ6Q3ZV8M4T9XW2C5E7G1HN',
  alertId: ALERT_ID,
  value: 0.31,
  windowStart: '2026-11-20T17:59:00.000Z',
  windowEnd: '2026-11-20T18:04:00.000Z',
  triggeredAt: '2026-11-20T18:04:00.000Z',
}

const MEMBERS: Readonly<Record<string, Fragment>> = {
  name: { description: 'For people.' },
  metric: {
    description:
      'What is watched: a number of events, a share of them or of deliveries, or how long the oldest identification waits.',
  },
  filters: { description: 'Only events that all of these hold for; `signal_rate` needs `signal`.' },
  operator: { description: 'How the metric is compared with the threshold.' },
  threshold: { description: 'Shares are from 0 to 1.' },
  windowSeconds: {
    description:
      'Of how long the metric is taken. Deliveries count by the minute: those that ended in a minute the window touches.',
    default: 300,
  },
  minEvents: { description: 'With fewer events in the window nothing is said.', default: 0 },
  cooldownSeconds: { description: 'At most one incident in so long.', default: 3_600 },
  status: { description: 'A paused alert is not evaluated.', default: 'active' },
}

export const ALERT_DOCS = {
  create: {
    id: 'createAlert',
    summary: 'Create an alert',
    description: 'It is evaluated at least every 30 seconds, and tells webhooks by `alert.triggered`.',
    refusals: ['resource_limit_reached'],
    members: MEMBERS,
    bodyExample: body,
    answers: { 201: { description: 'The alert is created.', schema: Alert, example: alert } },
  },
  list: {
    id: 'listAlerts',
    summary: 'List alerts',
    members: { ...PAGE_MEMBERS, status: { description: 'Only alerts with this status.' } },
    answers: {
      200: { description: 'A page of alerts.', schema: offsetPage(Alert), example: { data: [alert], total: 1 } },
    },
  },
  one: {
    id: 'getAlert',
    summary: 'Read one alert',
    answers: { 200: { description: 'The alert.', schema: Alert, example: alert } },
  },
  update: {
    id: 'updateAlert',
    summary: 'Change an alert',
    description: 'Only the members that are sent change.',
    members: MEMBERS,
    bodyExample: { threshold: 0.3 },
    answers: {
      200: { description: 'The alert as it is now.', schema: Alert, example: { ...alert, threshold: 0.3 } },
    },
  },
  remove: {
    id: 'deleteAlert',
    summary: 'Delete an alert',
    answers: {
      200: {
        description: 'The alert is deleted.',
        schema: deleted('alertId', alertId()),
        example: { deleted: true, alertId: ALERT_ID },
      },
    },
  },
  incidents: {
    id: 'listIncidents',
    summary: 'List the incidents of an alert',
    description: 'Newest first.',
    members: PAGE_MEMBERS,
    answers: {
      200: {
        description: 'A page of incidents.',
        schema: cursorPage(Incident),
        example: { data: [incident], hasMore: false, nextCursor: null },
      },
    },
  },
} as const satisfies Record<string, RouteDoc>
