// Below /v1/webhooks/{id}: what was delivered and what was not, sending it again, and trying a receiver out.

import type { Bus } from '../../bus/bus.ts'
import type { Attempts } from '../../dispatcher/attempt.ts'
import { bodyFor, renderPayload, shownType } from '../../dispatcher/envelope.ts'
import { sampleOf } from '../../dispatcher/samples.ts'
import { ApiError, invalid } from '../../domain/errors.ts'
import { type RandomBytes, ulid } from '../../domain/ids.ts'
import { oneOf, strict, Type } from '../../domain/schema.ts'
import {
  EVENT_TYPES,
  type EventType,
  PLAIN_EVENT_NAMES,
  PLAIN_EVENTS,
  type PlainEvent,
  typesOf,
} from '../../domain/webhook.ts'
import type { Kv } from '../../kv/kv.ts'
import { openCancel } from '../../lib/cancel.ts'
import type { Clock } from '../../lib/clock.ts'
import { parseDatetime } from '../../lib/datetime.ts'
import { DAY_MS } from '../../lib/durations.ts'
import { must } from '../../lib/must.ts'
import { readLast, writeCursor } from '../../reads/cursor.ts'
import {
  askAgain,
  DELIVERED_KEPT_MS,
  DELIVERY_STATUSES,
  deliveriesScope,
  deliveryIdOf,
  keptPayloads,
  payloadKey,
  putDelivery,
  REDELIVER_DAYS_MAX,
  readDeliveries,
  readPayload,
  readStoredDelivery,
  type StoredDelivery,
  shardOf,
} from '../../records/deliveries.ts'
import { publishHint } from '../../records/hints.ts'
import type { StoredWebhook } from '../../records/webhooks.ts'
import { callerPlaceOf } from '../callers.ts'
import { type ApiRoute, keyed } from '../routes.ts'
import { PAGE_LIMIT, PAGE_LIMIT_DEFAULT } from '../schemas.ts'
import { existingWebhook } from './callers.ts'
import { DELIVERY_DOCS } from './deliveries-docs.ts'
import { presentAttempt, presentDelivery } from './present.ts'

const REDELIVERED_MAX = 10_000
const TEST_DEADLINE_MS = 20_000

export interface WebhookDeliveriesNeeds {
  readonly kv: Kv
  readonly bus: Bus
  readonly clock: Clock
  readonly random: RandomBytes
  readonly attempts: Attempts
}

const time = Type.Optional(Type.String({ minLength: 1, maxLength: 40 }))
const eventType = oneOf([...EVENT_TYPES, ...PLAIN_EVENT_NAMES])
const PageQuery = Type.Object(
  {
    ...{
      status: Type.Optional(oneOf(DELIVERY_STATUSES)),
      eventType: Type.Optional(eventType),
      after: time,
      before: time,
    },
    limit: PAGE_LIMIT,
    cursor: Type.Optional(Type.String({ minLength: 1, maxLength: 200 })),
  },
  strict,
)
const SinceBody = Type.Object({ since: Type.String({ maxLength: 40 }), until: time }, strict)
const TestBody = Type.Object({ eventType: Type.Optional(eventType) }, strict)

function moment(text: string | undefined, field: string): number | undefined {
  if (text === undefined) return undefined
  const at = parseDatetime(text)
  if (at === null || at < 0) throw invalid(field, 'This is no RFC 3339 time.')
  return at
}

export function webhookDeliveryRoutes({ kv, bus, clock, random, attempts }: WebhookDeliveriesNeeds): ApiRoute[] {
  async function existingDelivery(webhook: StoredWebhook, id = ''): Promise<StoredDelivery> {
    const delivery = /^dlv_[0-9A-Z]{26}$/.test(id) ? await readStoredDelivery(kv, webhook.id, id) : null
    if (delivery === null) throw new ApiError('not_found')
    return delivery
  }

  async function again(webhook: StoredWebhook, place: ReturnType<typeof callerPlaceOf>, ids: readonly string[]) {
    if (ids.length === 0) return
    await askAgain(kv, { ...place, webhookId: webhook.id }, ids, clock.now())
    publishHint(bus, 'deliveries.due', { shard: shardOf(webhook.id), webhookIds: [webhook.id] })
  }

  return [
    keyed({
      method: 'GET',
      path: '/v1/webhooks/:webhookId/deliveries',
      access: 'webhooks:read',
      doc: DELIVERY_DOCS.list,
      query: PageQuery,
      async handle({ caller, params, query: { limit = PAGE_LIMIT_DEFAULT, cursor, ...asked } }) {
        const after = moment(asked.after, 'after')
        const before = moment(asked.before, 'before')
        const { tokenSecret } = caller.workspace
        const question = JSON.stringify(['deliveries', params.webhookId, asked])
        const last = cursor === undefined ? null : readLast(tokenSecret, question, cursor)
        const { id, shape } = await existingWebhook(kv, caller, params.webhookId)
        const filter = {
          holds: ({ status, type }: StoredDelivery) =>
            (asked.status === undefined || asked.status === status) &&
            (asked.eventType === undefined || asked.eventType === type || asked.eventType === shownType(shape, type)),
          ...(after === undefined ? {} : { after }),
          ...(before === undefined ? {} : { before }),
        }
        const { deliveries, next } = await readDeliveries(kv, id, filter, limit, last)
        const data = deliveries.map((one) => presentDelivery(id, shape, one.id, one.delivery))
        const nextCursor = next === null ? null : writeCursor(tokenSecret, question, next)
        return { body: { data, hasMore: next !== null, nextCursor } }
      },
    }),

    keyed({
      method: 'GET',
      path: '/v1/webhooks/:webhookId/deliveries/:deliveryId',
      access: 'webhooks:read',
      doc: DELIVERY_DOCS.one,
      async handle({ caller, params }) {
        const webhook = await existingWebhook(kv, caller, params.webhookId)
        const delivery = await existingDelivery(webhook, params.deliveryId)
        const payload = await readPayload(kv, delivery)
        const body = payload === null ? null : bodyFor(webhook, payload)
        return {
          body: {
            ...presentDelivery(webhook.id, webhook.shape, must(params.deliveryId), delivery),
            attempts: delivery.attempts.map(presentAttempt),
            payload: body === null ? null : JSON.parse(body.toString('utf8')),
          },
        }
      },
    }),

    keyed({
      method: 'POST',
      path: '/v1/webhooks/:webhookId/deliveries/:deliveryId/redeliver',
      access: 'webhooks:write',
      doc: DELIVERY_DOCS.redeliver,
      body: Type.Object({}, strict),
      async handle({ caller, params }) {
        const webhook = await existingWebhook(kv, caller, params.webhookId)
        const delivery = await existingDelivery(webhook, params.deliveryId)
        const deliveryId = must(params.deliveryId)
        if ((await readPayload(kv, delivery)) === null) {
          throw new ApiError('conflict', { message: 'The body of this delivery is no longer kept.' })
        }
        await again(webhook, callerPlaceOf(caller), [deliveryId])
        return { status: 202, body: { deliveryId, webhookId: webhook.id, eventId: delivery.eventId, queued: 1 } }
      },
    }),

    keyed({
      method: 'POST',
      path: '/v1/webhooks/:webhookId/redeliver',
      access: 'webhooks:write',
      doc: DELIVERY_DOCS.redeliverSince,
      body: SinceBody,
      async handle({ caller, params, body, aborted }) {
        const now = clock.now()
        const after = must(moment(body.since, 'since'))
        const until = moment(body.until, 'until')
        if (after < now - REDELIVER_DAYS_MAX * DAY_MS) {
          throw invalid('since', `Must be within the last ${REDELIVER_DAYS_MAX} days.`)
        }
        if (until !== undefined && until <= after) throw invalid('until', 'Must be later than since.')
        const webhook = await existingWebhook(kv, caller, params.webhookId)
        const filter = { holds: hasFailed, after, before: until ?? now + 1 }
        const ids: string[] = []
        for (let last: string | null = null; ids.length < REDELIVERED_MAX; ) {
          const page = await readDeliveries(kv, webhook.id, filter, REDELIVERED_MAX - ids.length, last)
          const kept = await keptPayloads(
            kv,
            page.deliveries.map(({ delivery }) => delivery),
          )
          ids.push(...page.deliveries.filter(({ delivery }) => kept.has(delivery.payloadId)).map(({ id }) => id))
          last = page.next
          if (last === null) break
          // Whoever asked has been told to ask again: what is queued now would be queued twice.
          if (aborted()) throw new ApiError('unavailable', { retryAfter: 1 })
        }
        // Oldest first, as they would have gone.
        await again(webhook, callerPlaceOf(caller), ids.reverse())
        return { status: 202, body: { queued: ids.length } }
      },
    }),

    keyed({
      method: 'POST',
      path: '/v1/webhooks/:webhookId/test',
      access: 'webhooks:write',
      doc: DELIVERY_DOCS.test,
      body: TestBody,
      deadlineMs: TEST_DEADLINE_MS,
      async handle({ caller, params, body, whenAborted }) {
        const webhook = await existingWebhook(kv, caller, params.webhookId)
        const type = typeFor(webhook, body.eventType)
        const at = clock.now()
        const occurrence = sampleOf(type, at, ulid(at, random), caller.workspace.plan)
        const { eventId } = occurrence
        const payload = renderPayload(occurrence, caller.workspace.apiVersion, new Set([webhook.shape]))
        const sent = must(bodyFor(webhook, payload), 'a body')
        const leaving = openCancel()
        whenAborted(leaving.cancel)
        const errand = { eventId, type, body: sent, n: 1, trigger: 'test' } as const
        const attempt = await attempts.deliver(webhook, errand, leaving)
        if (attempt === null) throw new ApiError('unavailable', { retryAfter: 1 })
        const scope = deliveriesScope(webhook.id)
        const deliveryId = deliveryIdOf(at, eventId, webhook.id)
        const delivery: StoredDelivery = {
          ...{
            eventId,
            type,
            createdAt: at,
            payloadAt: scope,
            payloadId: eventId,
            payloadUntil: at + DELIVERED_KEPT_MS,
          },
          tries: 0,
          attemptsMade: 1,
          attempts: [attempt],
          status: attempt.error === null ? 'delivered' : 'failed',
          nextAttemptAt: null,
          reason: null,
        }
        const kept = { key: payloadKey(eventId), value: payload, ttlMs: DELIVERED_KEPT_MS }
        await kv.commit([{ scope, put: [putDelivery(deliveryId, delivery), kept] }])
        return {
          body: {
            ...presentDelivery(webhook.id, webhook.shape, deliveryId, delivery),
            attempts: [presentAttempt(attempt)],
            success: attempt.error === null,
            statusCode: attempt.statusCode,
            error: attempt.error,
            durationMs: attempt.durationMs,
            payload: JSON.parse(sent.toString('utf8')),
          },
        }
      },
    }),
  ]
}

/** What was sent as a test is nothing that happened. */
const hasFailed = ({ status, attempts }: StoredDelivery): boolean =>
  status === 'failed' && (attempts.length === 0 || attempts.some(({ trigger }) => trigger !== 'test'))

/** The type a test is of: by default the first that the webhook is told of. Throws validation_error for one its shape has not. */
function typeFor({ shape, events }: StoredWebhook, asked: string | undefined): EventType {
  if (asked === undefined) {
    const [first] = typesOf(events)
    return first ?? 'identification.complete'
  }
  const plain = PLAIN_EVENTS[asked as PlainEvent]?.[0]
  if (shape === 'A' && plain === undefined)
    throw invalid('eventType', `Must be one of: ${PLAIN_EVENT_NAMES.join(', ')}.`)
  if (shape === 'B' && plain !== undefined) throw invalid('eventType', `Must be one of: ${EVENT_TYPES.join(', ')}.`)
  return plain ?? (asked as EventType)
}
