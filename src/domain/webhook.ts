// Webhooks as the contract has them: two shapes of registration over one record, the event types of each, and the limits.

import type { Verdict } from './event.ts'

/** `whk_` ids are of shape A, `wh_` ids of shape B. */
export type WebhookShape = 'A' | 'B'
export type WebhookStatus = 'active' | 'paused' | 'disabled'
export const WEBHOOK_STATUSES: readonly WebhookStatus[] = ['active', 'paused', 'disabled']

/** What happened, whoever is told of it. Shape B names them so. */
export const EVENT_TYPES = [
  'identification.complete',
  'verdict.allow',
  'verdict.block',
  'verdict.challenge',
  'rule.matched',
  'visitor.new',
  'visitor.returning',
  'visitor.merged',
  'signal.bot.detected',
  'list.entry.added',
  'list.entry.expired',
  'alert.triggered',
] as const
export type EventType = (typeof EVENT_TYPES)[number]
export const ALL_EVENTS = '*'

/** Shape A has names of its own, each for some of the types. */
export const PLAIN_EVENTS = {
  identification: ['identification.complete'],
  rule_match: ['rule.matched'],
  list_update: ['list.entry.added', 'list.entry.expired'],
} as const satisfies Record<string, readonly EventType[]>
export type PlainEvent = keyof typeof PLAIN_EVENTS
export const PLAIN_EVENT_NAMES = Object.keys(PLAIN_EVENTS) as readonly PlainEvent[]

/** The name shape A has for a type; null when it has none. */
export const plainEventOf = (type: EventType): PlainEvent | null =>
  PLAIN_EVENT_NAMES.find((name) => (PLAIN_EVENTS[name] as readonly EventType[]).includes(type)) ?? null

/** The types a webhook is told of, from the names it was registered with. */
export function typesOf(events: readonly string[]): ReadonlySet<EventType> {
  if (events.includes(ALL_EVENTS)) return new Set(EVENT_TYPES)
  const plain = events.flatMap((name) => PLAIN_EVENTS[name as PlainEvent] ?? [])
  return new Set([...plain, ...EVENT_TYPES.filter((type) => events.includes(type))])
}

/** All that are given must hold. */
export interface WebhookFilters {
  readonly verdict?: readonly Verdict[]
  readonly ruleId?: string
  readonly botDetected?: boolean
}

export interface WebhookSecret {
  /** Encrypted under the master key, for this webhook only. */
  readonly sealed: string
  readonly createdAt: number
  /** When a newer one has taken over; null: the newest. */
  readonly expiresAt: number | null
}

export interface Webhook {
  readonly id: string
  readonly shape: WebhookShape
  readonly url: string
  /** As registered: names of the webhook's shape. */
  readonly events: readonly string[]
  readonly filters: WebhookFilters | null
  readonly description: string | null
  readonly status: WebhookStatus
  /** null unless disabled. */
  readonly disabledReason: 'failing_24h' | 'secret_lost' | null
  /** Newest first: one, or two while a rotation has its grace period. */
  readonly secrets: readonly WebhookSecret[]
  /** Milliseconds since the epoch. */
  readonly createdAt: number
  readonly updatedAt: number
  /** When it last became active: what failed before counts no more. */
  readonly enabledAt: number
}

export const URL_CHARS_MAX = 2_048
export const WEBHOOK_DESCRIPTION_CHARS_MAX = 500
export const GRACE_SECONDS_MAX = 7 * 86_400
export const GRACE_SECONDS_DEFAULT = 86_400
export const PAYLOAD_BYTES_MAX = 262_144

const WEBHOOK_ID = /^(?:whk|wh)_[0-9A-Za-z]{20}$/
export const isWebhookId = (text: string): boolean => WEBHOOK_ID.test(text)
export const webhookPrefix = (shape: WebhookShape): string => (shape === 'A' ? 'whk' : 'wh')
