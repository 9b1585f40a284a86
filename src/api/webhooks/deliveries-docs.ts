// What the API shows of deliveries to webhooks, and how their endpoints are described.

import { oneOf, Type } from '../../domain/schema.ts'
import { EVENT_TYPES, PLAIN_EVENT_NAMES } from '../../domain/webhook.ts'
import { DELIVERY_STATUSES } from '../../records/deliveries.ts'
import {
  count,
  cursorPage,
  deliveryId,
  eventId,
  flag,
  moment,
  orNull,
  PAGE_MEMBERS,
  type RouteDoc,
  shared,
  webhookId,
  words,
} from '../describe.ts'

const eventType = () => oneOf([...EVENT_TYPES, ...PLAIN_EVENT_NAMES])
const statusCode = orNull(Type.Integer({ description: 'null: no answer came.' }))
const members = {
  deliveryId: deliveryId(),
  webhookId: webhookId(),
  eventId: eventId(),
  eventType: eventType(),
  status: oneOf(DELIVERY_STATUSES),
  lastStatusCode: statusCode,
  lastError: orNull(words('Such as timeout, dns or tls_untrusted.')),
  nextAttemptAt: orNull(moment('null: nothing more happens by itself.')),
  createdAt: moment(),
}
export const Delivery = shared('Delivery', Type.Object({ ...members, attempts: count('How many were made.') }))
const Attempt = shared(
  'DeliveryAttempt',
  Type.Object({
    n: count(),
    trigger: oneOf(['auto', 'manual', 'test']),
    startedAt: moment(),
    durationMs: Type.Number({ minimum: 0 }),
    statusCode,
    error: orNull(words()),
  }),
)
const Payload = Type.Unsafe<unknown>({ description: 'The body that is sent; null: no longer kept.' })
export const DeliveryInFull = shared(
  'DeliveryInFull',
  Type.Object({ ...members, attempts: Type.Array(Attempt), payload: Payload }),
)
export const TestedDelivery = shared(
  'TestedDelivery',
  Type.Object({
    ...members,
    attempts: Type.Array(Attempt),
    success: flag('Whether the receiver answered with 2xx in time.'),
    statusCode,
    error: orNull(words()),
    durationMs: Type.Number({ minimum: 0 }),
    payload: Payload,
  }),
)
export const Queued = shared(
  'QueuedDeliveries',
  Type.Object({
    deliveryId: Type.Optional(deliveryId()),
    webhookId: Type.Optional(webhookId()),
    eventId: Type.Optional(eventId()),
    queued: count(),
  }),
)

const ULID = '01KAJ6Q3ZV8M4T9XW2C5E7G1HN'
const shown = {
  deliveryId: `dlv_${ULID}`,
  webhookId: 'wh_8uJm0kIo2lPq4aSd6fGh',
  eventId: `evt_${ULID}`,
  eventType: 'verdict.block',
  status: 'delivered',
  lastStatusCode: 204,
  lastError: null,
  nextAttemptAt: null,
  createdAt: '2026-11-20T18:04:05.123Z',
}
const attempt = { n: 1, trigger: 'auto', startedAt: '2026-11-20T18:04:05.150Z', durationMs: 41 }
const succeeded = { statusCode: 204, error: null }
const payload = {
  eventId: shown.eventId,
  eventType: 'verdict.block',
  apiVersion: '2026-11-01',
  createdAt: shown.createdAt,
  data: { verdict: 'block' },
}

export const DELIVERY_DOCS = {
  list: {
    id: 'listDeliveries',
    summary: 'List deliveries',
    description: 'Newest first.',
    members: {
      ...PAGE_MEMBERS,
      status: { description: 'Only deliveries with this status.' },
      eventType: { description: 'Only deliveries of this type of event.' },
    },
    answers: {
      200: {
        description: 'A page of deliveries.',
        schema: cursorPage(Delivery),
        example: { data: [{ ...shown, attempts: 1 }], hasMore: false, nextCursor: null },
      },
    },
  },
  one: {
    id: 'getDelivery',
    summary: 'Read one delivery',
    answers: {
      200: {
        description: 'The delivery with its attempts and its body.',
        schema: DeliveryInFull,
        example: { ...shown, attempts: [{ ...attempt, ...succeeded }], payload },
      },
    },
  },
  redeliver: {
    id: 'redeliver',
    summary: 'Send one delivery again',
    description:
      'One attempt with the same event id and body, whatever became of the delivery before. A body that is no longer kept is a `conflict`.',
    refusals: ['conflict'],
    answers: {
      202: {
        description: 'The attempt is queued.',
        schema: Queued,
        example: { deliveryId: shown.deliveryId, webhookId: shown.webhookId, eventId: shown.eventId, queued: 1 },
      },
    },
  },
  redeliverSince: {
    id: 'redeliverSince',
    summary: 'Send failed deliveries again',
    description: 'Those that failed since a time within the last 14 days and whose bodies are kept, at most 10,000.',
    members: {
      since: { description: 'Created at or after.', format: 'date-time' },
      until: { description: 'Created before.', format: 'date-time' },
    },
    bodyExample: { since: '2026-11-20T00:00:00Z' },
    answers: { 202: { description: 'The attempts are queued.', schema: Queued, example: { queued: 12 } } },
  },
  test: {
    id: 'testWebhook',
    summary: 'Try a webhook out',
    description: 'Sends a made-up event now and tells what came of it. It counts for nothing.',
    members: { eventType: { description: 'Default: the first type the webhook is told of.' } },
    bodyExample: {},
    answers: {
      200: {
        description: 'What the receiver answered, success or not.',
        schema: TestedDelivery,
        example: {
          ...shown,
          attempts: [{ ...attempt, trigger: 'test', ...succeeded }],
          success: true,
          ...succeeded,
          durationMs: 41,
          payload,
        },
      },
    },
  },
} as const satisfies Record<string, RouteDoc>
