// Messages that rules send to Slack. They travel like deliveries, in a queue per address, so that one address that hangs holds up
// nobody; the address is a secret and stays with the payload.

import { createHash } from 'node:crypto'
import type { DecidedItem } from '../events/packed-items.ts'
import type { Scope } from '../kv/kv.ts'
import { deliveryIdOf, derivedUlid, payloadIdOf } from '../records/deliveries.ts'
import { newDelivery, type OutboxEntries } from './match.ts'

const PREFIX = 'slk_'
export const isSlackQueue = (webhookId: string): boolean => webhookId.startsWith(PREFIX)

export const slackQueueOf = (workspace: string, env: string, url: string): string =>
  PREFIX + createHash('sha256').update(`${workspace}/${env}/${url}`).digest('hex').slice(0, 32)

export function slackNotices(
  outbox: OutboxEntries,
  { workspace, env, requestId, visitorId, acceptedAt, effects = [] }: DecidedItem,
  { payloadAt, nowMs }: { readonly payloadAt: Scope; readonly nowMs: number },
): void {
  for (const effect of effects) {
    if (effect.type !== 'slack') continue
    const what = `${workspace}/${env}/${requestId}/slack/${effect.ruleId}/${effect.index}`
    const eventId = `evt_${derivedUlid(acceptedAt, what)}`
    const webhookId = slackQueueOf(workspace, env, effect.url)
    const occurrence = { eventId, type: 'rule.matched', at: acceptedAt, data: {}, plainData: {} } as const
    const slack = { url: effect.url, body: JSON.stringify({ text: effect.message }) }
    const payloadId = payloadIdOf(workspace, env, visitorId, eventId)
    outbox.payloads.push({
      scope: payloadAt,
      id: payloadId,
      payload: { slack },
      about: { workspace, env, visitorId },
    })
    outbox.deliveries.push({
      workspace,
      env,
      webhookId,
      id: deliveryIdOf(acceptedAt, eventId, webhookId),
      webhook: null,
      delivery: newDelivery({ occurrence }, { at: payloadAt, id: payloadId }, nowMs),
    })
  }
}
