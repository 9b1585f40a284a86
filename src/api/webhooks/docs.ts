// What the API shows of webhooks, and how their endpoints are described.

import { oneOf, Type } from '../../domain/schema.ts'
import { EVENT_TYPES, PLAIN_EVENT_NAMES, WEBHOOK_STATUSES } from '../../domain/webhook.ts'
import {
  deleted,
  type Fragment,
  flag,
  moment,
  offsetPage,
  orNull,
  PAGE_MEMBERS,
  REPLAYED,
  type RouteDoc,
  ruleId,
  share,
  shared,
  webhookId,
  words,
} from '../describe.ts'

const Filters = shared(
  'WebhookFilters',
  Type.Object({
    verdict: Type.Optional(Type.Array(words())),
    ruleId: Type.Optional(ruleId()),
    botDetected: Type.Optional(flag()),
  }),
)
const head = {
  id: webhookId('`whk_…` for one registered in form A, `wh_…` in form B.'),
  url: words(),
  events: Type.Array(words()),
  status: oneOf(WEBHOOK_STATUSES),
  filters: Type.Optional(Filters),
  description: Type.Optional(orNull(words())),
  enabled: Type.Optional(flag('Form B: whether the status is active.')),
}
const listed = {
  ...head,
  createdAt: moment(),
  lastDeliveryAt: orNull(moment()),
  successRate: share('Delivered of finished, over 7 days; 1 when none finished.'),
}
export const ListedWebhook = shared('ListedWebhook', Type.Object(listed))
export const Webhook = shared(
  'Webhook',
  Type.Object({
    ...listed,
    disabledReason: orNull(words()),
    failingSince: orNull(moment('The first failure since the last success.')),
    secretGraceEndsAt: orNull(moment('Until then the secret before the last rotation signs.')),
    updatedAt: moment(),
  }),
)
export const ChangedWebhook = shared('ChangedWebhook', Type.Object({ ...head, updatedAt: moment() }))
const secretWords = words('Shown in this answer only.')
const createdSecret = orNull(
  words('Shown in this answer only; null in a repetition once the webhook no longer signs with it.'),
)
export const CreatedWebhook = shared(
  'CreatedWebhook',
  Type.Object({
    id: webhookId(),
    url: words(),
    events: Type.Optional(Type.Array(words())),
    status: Type.Optional(oneOf(WEBHOOK_STATUSES)),
    enabled: Type.Optional(flag()),
    secret: Type.Optional(createdSecret),
    signingSecret: Type.Optional(createdSecret),
    replayed: REPLAYED,
    createdAt: moment(),
  }),
)
export const RotatedSecret = shared(
  'RotatedSecret',
  Type.Object({
    id: webhookId(),
    secret: Type.Optional(secretWords),
    signingSecret: Type.Optional(secretWords),
    graceEndsAt: orNull(moment('From then on the new secret alone signs; null: at once.')),
  }),
)
const WebhookIps = shared(
  'WebhookIps',
  Type.Object({ ipv4: Type.Array(words()), ipv6: Type.Array(words()), updatedAt: orNull(moment()) }),
)

const id = 'wh_8uJm0kIo2lPq4aSd6fGh'
const url = 'https://shop.example/hooks/fingerpost'
const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw0aBcDeFgHiJ='
const created = '2026-11-01T08:00:00.000Z'
const changed = '2026-11-20T18:04:05.123Z'
const shown = { id, url, events: ['verdict.block', 'visitor.new'], status: 'active', description: null, enabled: true }
const shownListed = { ...shown, createdAt: created, lastDeliveryAt: changed, successRate: 0.998 }

const MEMBERS: Readonly<Record<string, Fragment>> = {
  url: { description: 'Where deliveries go: https, a public host.', format: 'uri' },
  events: {
    description: `Form A: some of ${PLAIN_EVENT_NAMES.join(', ')}. Form B: some of ${EVENT_TYPES.join(', ')}, or only \`*\`.`,
    items: { type: 'string', enum: [...PLAIN_EVENT_NAMES, ...EVENT_TYPES, '*'] },
  },
  filters: { description: 'Form A: only events that all of these hold for.' },
  secret: { description: 'Form A: a secret of your own, 16 to 128 printable ASCII characters.' },
  description: { description: 'Form B: for people.' },
  enabled: { description: 'Form B: false pauses it.' },
  status: { description: '`active` also turns on again what was disabled.' },
}

export const WEBHOOK_DOCS = {
  create: {
    id: 'createWebhook',
    summary: 'Register a webhook',
    description:
      'The body decides the form: names without a dot, `filters` or `secret` make form A, dotted names, `description` or `enabled` form B. The secret is in this answer only.',
    refusals: ['resource_limit_reached'],
    members: MEMBERS,
    bodyExample: { url, events: ['verdict.block', 'visitor.new'] },
    answers: {
      201: {
        description: 'The webhook is registered.',
        schema: CreatedWebhook,
        headers: ['ETag'],
        example: { id, url, events: shown.events, signingSecret: secret, enabled: true, createdAt: created },
      },
    },
  },
  list: {
    id: 'listWebhooks',
    summary: 'List webhooks',
    members: { ...PAGE_MEMBERS, status: { description: 'Only webhooks with this status.' } },
    answers: {
      200: {
        description: 'A page of webhooks.',
        schema: offsetPage(ListedWebhook),
        example: { data: [shownListed], total: 1 },
      },
    },
  },
  one: {
    id: 'getWebhook',
    summary: 'Read one webhook',
    answers: {
      200: {
        description: 'The webhook and how it fares, without its secret.',
        schema: Webhook,
        headers: ['ETag'],
        example: {
          ...shownListed,
          disabledReason: null,
          failingSince: null,
          secretGraceEndsAt: null,
          updatedAt: changed,
        },
      },
    },
  },
  update: {
    id: 'updateWebhook',
    summary: 'Change a webhook',
    description: 'Only the members that are sent change; the form does not.',
    refusals: ['conflict'],
    members: MEMBERS,
    bodyExample: { url },
    answers: {
      200: {
        description: 'The webhook as it is now.',
        schema: ChangedWebhook,
        headers: ['ETag'],
        example: { ...shown, updatedAt: changed },
      },
    },
  },
  remove: {
    id: 'deleteWebhook',
    summary: 'Delete a webhook',
    description: 'Deliveries that wait are cancelled at once.',
    refusals: ['conflict'],
    answers: {
      200: {
        description: 'The webhook is deleted.',
        schema: deleted('webhookId', webhookId()),
        example: { deleted: true, webhookId: id },
      },
    },
  },
  rotate: {
    id: 'rotateWebhookSecret',
    summary: 'Make a new secret',
    description:
      'Until the grace period ends the old secret goes on signing, and `X-Service-Signature-Next` has the signature by the new one.',
    refusals: ['conflict'],
    members: { gracePeriodSeconds: { description: 'How long the old secret goes on.' } },
    bodyExample: { gracePeriodSeconds: 3_600 },
    answers: {
      200: {
        description: 'The new secret, in this answer only.',
        schema: RotatedSecret,
        example: { id, signingSecret: secret, graceEndsAt: changed },
      },
    },
  },
  ips: {
    id: 'getWebhookIps',
    summary: 'Read where deliveries come from',
    description: 'As the operator of the deployment has set it; empty lists promise nothing.',
    answers: {
      200: {
        description: 'Addresses and ranges.',
        schema: WebhookIps,
        example: { ipv4: ['203.0.113.0/28'], ipv6: [], updatedAt: created },
      },
    },
  },
} as const satisfies Record<string, RouteDoc>
