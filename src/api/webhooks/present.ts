// Webhooks and their deliveries as the contract shows them: each shape with its own members, never with a secret.

import { shownType } from '../../dispatcher/envelope.ts'
import type { WebhookShape } from '../../domain/webhook.ts'
import { isoTime } from '../../events/present.ts'
import type { WebhookHead } from '../../records/commands.ts'
import type { Attempt, Health, StoredDelivery } from '../../records/deliveries.ts'

const timeOrNull = (ms: number | null) => (ms === null ? null : isoTime(ms))

/** Of shape B: whether it is on, and its description. */
const ownMembers = ({ shape, status, description, filters }: WebhookHead) =>
  shape === 'A' ? { filters: filters ?? {} } : { description, enabled: status === 'active' }

export interface PresentedStanding {
  readonly health: Health
  readonly successRate: number
}

export const presentListedWebhook = (webhook: WebhookHead, { health, successRate }: PresentedStanding) => ({
  id: webhook.id,
  url: webhook.url,
  events: webhook.events,
  status: webhook.status,
  ...ownMembers(webhook),
  createdAt: isoTime(webhook.createdAt),
  lastDeliveryAt: timeOrNull(health.lastDeliveryAt),
  successRate,
})

export const presentWebhook = (webhook: WebhookHead, standing: PresentedStanding, graceEndsAt: number | null) => ({
  ...presentListedWebhook(webhook, standing),
  disabledReason: webhook.disabledReason,
  failingSince: timeOrNull(standing.health.failingSince),
  secretGraceEndsAt: timeOrNull(graceEndsAt),
  updatedAt: isoTime(webhook.updatedAt),
})

export const presentChangedWebhook = (webhook: WebhookHead) => ({
  id: webhook.id,
  url: webhook.url,
  events: webhook.events,
  status: webhook.status,
  ...ownMembers(webhook),
  updatedAt: isoTime(webhook.updatedAt),
})

export const presentAuditedWebhook = (webhook: WebhookHead) => ({
  ...presentChangedWebhook(webhook),
  disabledReason: webhook.disabledReason,
  createdAt: isoTime(webhook.createdAt),
})

/** The only answer besides that of a rotation that holds the secret. */
export const presentCreatedWebhook = (webhook: WebhookHead, secret: string) => {
  const { id, url, events, status } = webhook
  const createdAt = isoTime(webhook.createdAt)
  if (webhook.shape === 'A') return { id, url, status, secret, createdAt }
  return { id, url, events, signingSecret: secret, enabled: status === 'active', createdAt }
}

export function presentDelivery(webhookId: string, shape: WebhookShape, id: string, delivery: StoredDelivery) {
  const last = delivery.attempts.at(-1)
  return {
    deliveryId: id,
    webhookId,
    eventId: delivery.eventId,
    eventType: shownType(shape, delivery.type),
    status: delivery.status,
    attempts: delivery.attemptsMade,
    lastStatusCode: last?.statusCode ?? null,
    lastError: delivery.reason ?? last?.error ?? null,
    nextAttemptAt: timeOrNull(delivery.nextAttemptAt),
    createdAt: isoTime(delivery.createdAt),
  }
}

export const presentAttempt = ({ n, trigger, startedAt, durationMs, statusCode, error }: Attempt) => ({
  n,
  trigger,
  startedAt: isoTime(startedAt),
  durationMs,
  statusCode,
  error,
})
