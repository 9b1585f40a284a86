// Who is told of an occurrence, and what has to be stored for that: one payload, and a delivery for each.

import type { Env } from '../domain/event.ts'
import type { WebhookFilters } from '../domain/webhook.ts'
import type { Scope } from '../kv/kv.ts'
import { deliveryIdOf, FAILED_KEPT_MS, type Payload, payloadIdOf, type StoredDelivery } from '../records/deliveries.ts'
import type { StoredWebhook } from '../records/webhooks.ts'
import { renderPayload } from './envelope.ts'
import type { Matchable } from './occurrences.ts'
import type { Subscription, Tenant } from './subscriptions.ts'

export interface NewPayload {
  readonly scope: Scope
  readonly id: string
  readonly payload: Payload
  /** Somebody's who may be erased. */
  readonly about: { readonly workspace: string; readonly env: Env; readonly visitorId: string } | null
}

export interface NewDelivery {
  readonly workspace: string
  readonly env: Env
  readonly webhookId: string
  readonly id: string
  readonly delivery: StoredDelivery
  /** null: a queue for Slack. */
  readonly webhook: StoredWebhook | null
}

export interface OutboxEntries {
  readonly payloads: NewPayload[]
  readonly deliveries: NewDelivery[]
}

/** A filter on what the occurrence does not have is not met. */
function passes(filters: WebhookFilters | null, { verdict, ruleId, botDetected }: Matchable): boolean {
  if (filters === null) return true
  if (filters.verdict !== undefined && (verdict === null || !filters.verdict.includes(verdict))) return false
  if (filters.ruleId !== undefined && filters.ruleId !== ruleId) return false
  return filters.botDetected === undefined || filters.botDetected === botDetected
}

const isSubscribed = ({ webhook, types }: Subscription, found: Matchable): boolean =>
  webhook.status !== 'disabled' && types.has(found.occurrence.type) && passes(webhook.filters, found)

/** `named`: webhooks that are told whatever they subscribed to. */
export function outboxEntriesOf(
  outbox: OutboxEntries,
  tenant: Tenant,
  found: Matchable,
  at: { readonly payloadAt: Scope; readonly nowMs: number; readonly visitorId: string | null },
  named: ReadonlySet<string> = new Set(),
): void {
  const { eventId, at: createdAt } = found.occurrence
  const { workspace, env } = tenant
  const mine: StoredWebhook[] = []
  for (const subscription of tenant.subscriptions.values()) {
    const { webhook } = subscription
    const isNamed = named.has(webhook.id) && webhook.status !== 'disabled'
    if (isNamed || isSubscribed(subscription, found)) mine.push(webhook)
  }
  if (mine.length === 0) return
  const payloadId = payloadIdOf(workspace.id, env, at.visitorId, eventId)
  const delivery = newDelivery(found, { at: at.payloadAt, id: payloadId }, at.nowMs)
  for (const webhook of mine) {
    const id = deliveryIdOf(createdAt, eventId, webhook.id)
    outbox.deliveries.push({ workspace: workspace.id, env, webhookId: webhook.id, id, delivery, webhook })
  }
  const rendered = renderPayload(found.occurrence, workspace.apiVersion, new Set(mine.map(({ shape }) => shape)))
  const payload: Payload = mine.length === 1 ? rendered : { ...rendered, ofMany: true }
  const about = at.visitorId === null ? null : { workspace: workspace.id, env, visitorId: at.visitorId }
  outbox.payloads.push({ scope: at.payloadAt, id: payloadId, payload, about })
}

export const newDelivery = (
  { occurrence: { eventId, type, at: createdAt } }: Pick<Matchable, 'occurrence'>,
  payload: { readonly at: Scope; readonly id: string },
  nowMs: number,
): StoredDelivery => ({
  eventId,
  type,
  status: 'pending',
  tries: 0,
  attemptsMade: 0,
  attempts: [],
  nextAttemptAt: nowMs,
  createdAt,
  reason: null,
  payloadAt: payload.at,
  payloadId: payload.id,
  payloadUntil: nowMs + FAILED_KEPT_MS,
})
