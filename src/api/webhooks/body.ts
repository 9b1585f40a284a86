// A registration as a client sent it → one of two shapes: told by the members and names it uses, and refused where they
// contradict each other.

import { invalid } from '../../domain/errors.ts'
import { VERDICTS } from '../../domain/event.ts'
import { oneOf, type Static, strict, Type } from '../../domain/schema.ts'
import {
  ALL_EVENTS,
  EVENT_TYPES,
  PLAIN_EVENT_NAMES,
  URL_CHARS_MAX,
  WEBHOOK_DESCRIPTION_CHARS_MAX,
  WEBHOOK_STATUSES,
  type WebhookFilters,
  type WebhookShape,
} from '../../domain/webhook.ts'
import type { WebhookCommandChanges } from '../../records/webhook-commands.ts'
import type { StoredWebhook } from '../../records/webhooks.ts'

const url = Type.String({ minLength: 1, maxLength: URL_CHARS_MAX })
const events = Type.Array(Type.String({ maxLength: 64 }), { maxItems: 64 })
const description = Type.Union([Type.String({ maxLength: WEBHOOK_DESCRIPTION_CHARS_MAX }), Type.Null()])
const filters = Type.Object(
  {
    verdict: Type.Optional(Type.Array(oneOf(VERDICTS), { minItems: 1, maxItems: 3, uniqueItems: true })),
    ruleId: Type.Optional(Type.String({ pattern: '^rul_[0-9A-Za-z]{20}$', maxLength: 24 })),
    botDetected: Type.Optional(Type.Boolean()),
  },
  strict,
)

export const WebhookCreateBody = Type.Object(
  {
    url,
    events: Type.Optional(events),
    filters: Type.Optional(filters),
    secret: Type.Optional(Type.String({ pattern: '^[\\x20-\\x7e]{16,128}$', maxLength: 128 })),
    description: Type.Optional(description),
    enabled: Type.Optional(Type.Boolean()),
  },
  strict,
)
export const WebhookUpdateBody = Type.Object(
  {
    url: Type.Optional(url),
    events: Type.Optional(events),
    filters: Type.Optional(Type.Union([filters, Type.Null()])),
    description: Type.Optional(description),
    enabled: Type.Optional(Type.Boolean()),
    status: Type.Optional(oneOf(WEBHOOK_STATUSES)),
  },
  strict,
)

const ONLY_A = ['filters', 'secret'] as const
const ONLY_B = ['description', 'enabled'] as const
const BOTH = 'filters and secret belong to one form of registration, description and enabled to another.'

/** The shape that names of events belong to. Throws validation_error. */
function shapeOfEvents(names: readonly string[]): WebhookShape {
  if (names.length === 0) throw invalid('events', 'Must name at least one event.')
  if (new Set(names).size !== names.length) throw invalid('events', 'Must not name an event twice.')
  if (names.every((name) => (PLAIN_EVENT_NAMES as readonly string[]).includes(name))) return 'A'
  if (names.length === 1 && names[0] === ALL_EVENTS) return 'B'
  if (names.every((name) => (EVENT_TYPES as readonly string[]).includes(name))) return 'B'
  throw invalid(
    'events',
    `Must be some of ${PLAIN_EVENT_NAMES.join(', ')}, or some of ${EVENT_TYPES.join(', ')}, or only ${ALL_EVENTS}.`,
  )
}

export interface Registration {
  readonly shape: WebhookShape
  readonly url: string
  readonly events: readonly string[]
  readonly filters: WebhookFilters | null
  /** null: to be made. */
  readonly secret: string | null
  readonly description: string | null
  readonly status: 'active' | 'paused'
}

/** The shape that a body belongs to; null: either. Throws validation_error where it can be neither. */
function shapeOf(body: Static<typeof WebhookUpdateBody> & { readonly secret?: string }): WebhookShape | null {
  const a = ONLY_A.find((name) => body[name] !== undefined)
  const b = ONLY_B.find((name) => body[name] !== undefined)
  if (a !== undefined && b !== undefined) throw invalid(b, BOTH)
  const named = body.events === undefined ? null : shapeOfEvents(body.events)
  if (named === 'A' && b !== undefined) throw invalid(b, `Not together with events such as ${PLAIN_EVENT_NAMES[0]}.`)
  if (named === 'B' && a !== undefined) throw invalid(a, `Not together with events such as ${EVENT_TYPES[0]}.`)
  return named ?? (a !== undefined ? 'A' : b !== undefined ? 'B' : null)
}

export function readRegistration(body: Static<typeof WebhookCreateBody>): Registration {
  const shape = shapeOf(body) ?? 'A'
  const standard = shape === 'A' ? PLAIN_EVENT_NAMES : [ALL_EVENTS]
  return {
    shape,
    url: body.url,
    events: body.events ?? standard,
    filters: filtersOf(body.filters ?? null),
    secret: body.secret ?? null,
    description: body.description ?? null,
    status: body.enabled === false ? 'paused' : 'active',
  }
}

const filtersOf = (filters: WebhookFilters | null): WebhookFilters | null =>
  filters === null || Object.keys(filters).length === 0 ? null : filters

/** What can be told without the webhook that is to be changed. Throws validation_error. */
export function refuseImpossible(body: Static<typeof WebhookUpdateBody>): void {
  shapeOf(body)
  statusOf(body)
}

function statusOf({ status, enabled }: Static<typeof WebhookUpdateBody>): 'active' | 'paused' | undefined {
  if (status === 'disabled') throw invalid('status', 'Must be active or paused.')
  const wanted = enabled === undefined ? undefined : enabled ? 'active' : 'paused'
  if (wanted !== undefined && status !== undefined && wanted !== status) {
    throw invalid('status', 'Contradicts enabled.')
  }
  return status ?? wanted
}

export function readChanges(body: Static<typeof WebhookUpdateBody>, webhook: StoredWebhook): WebhookCommandChanges {
  const { shape } = webhook
  const foreign = (shape === 'A' ? ONLY_B : (['filters'] as const)).find((name) => body[name] !== undefined)
  if (foreign !== undefined) throw invalid(foreign, `This webhook was registered without ${foreign}.`)
  if (body.events !== undefined && shapeOfEvents(body.events) !== shape) {
    throw invalid('events', 'Must be events of the form this webhook was registered in.')
  }
  const status = statusOf(body)
  return {
    ...(body.url === undefined ? {} : { url: body.url }),
    ...(body.events === undefined ? {} : { events: body.events }),
    ...(body.filters === undefined ? {} : { filters: filtersOf(body.filters) }),
    ...(body.description === undefined ? {} : { description: body.description }),
    ...(status === undefined ? {} : { status }),
  }
}
