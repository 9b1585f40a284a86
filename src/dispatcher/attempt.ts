// One attempt at one delivery: signed afresh, posted, and told as the attempt it was.

import { TRACEPARENT } from '../domain/trace.ts'
import type { EventType, Webhook } from '../domain/webhook.ts'
import type { Cancel } from '../lib/cancel.ts'
import type { Clock } from '../lib/clock.ts'
import { type Sealer, sealedBy } from '../lib/sealed.ts'
import type { Spans } from '../lib/spans.ts'
import type { Attempt, AttemptTrigger } from '../records/deliveries.ts'
import { openAddress } from '../records/slack-addresses.ts'
import { bodyFor, deliveryHeaders, secretsAt } from './envelope.ts'
import type { Poster } from './post.ts'
import type { Job, WebhookQueue } from './webhook-queue.ts'

export interface AttemptNeeds {
  readonly poster: Poster
  readonly sealer: Sealer
  readonly clock: Clock
  readonly userAgent: string
  readonly spans: Spans | null
}

export interface DueAttempt {
  readonly eventId: string
  readonly type: EventType
  readonly body: Buffer
  readonly n: number
  readonly trigger: AttemptTrigger
  /** Absent where nobody traces. */
  readonly trace?: string
}

export interface Attempts {
  /** Whether an attempt there could begin now: not while as many connections are being opened as may be. */
  hasRoom(url: string): boolean
  /** null: it was cancelled. Throws Unreadable at once when the webhook's secret cannot be opened. */
  deliver(webhook: Webhook, due: DueAttempt, cancel: Cancel): Promise<Attempt | null>
  /** A message for Slack, unsigned: the address is the secret. */
  deliverToSlack(
    url: string,
    body: Buffer,
    due: Pick<DueAttempt, 'n' | 'trigger'>,
    cancel: Cancel,
  ): Promise<Attempt | null>
}

/** Opened secrets that are kept, so that not every attempt decrypts. */
const OPENED_MAX = 4_096
const ADDRESSES_MAX = 4_096

/** The newest `countMax` answers of `make`, by its first argument. */
function kept<T>(countMax: number, make: (name: string, context: string) => T): (name: string, context?: string) => T {
  const known = new Map<string, T>()
  return (name, context = '') => {
    const found = known.get(name)
    if (found !== undefined) return found
    const made = make(name, context)
    const [oldest] = known.keys()
    if (known.size >= countMax && oldest !== undefined) known.delete(oldest)
    known.set(name, made)
    return made
  }
}

export function openAttempts({ poster, sealer, clock, userAgent, spans }: AttemptNeeds): Attempts {
  const open = kept(OPENED_MAX, (sealed, context) => sealer.open(sealed, context))
  const addressOf = kept(ADDRESSES_MAX, (url) => new URL(url))

  function post(
    url: string,
    headers: Readonly<Record<string, string>>,
    body: Buffer,
    { n, trigger }: Pick<DueAttempt, 'n' | 'trigger'>,
    cancel: Cancel,
  ): Promise<Attempt | null> {
    const startedAt = clock.now()
    return poster.post(addressOf(url), headers, body, cancel).then((posted) => {
      if (posted === null) return null
      const { statusCode, error, durationMs } = posted
      return { n, trigger, startedAt, durationMs: Math.round(durationMs), statusCode, error }
    })
  }

  return {
    hasRoom: (url) => poster.hasRoom(addressOf(url).origin),
    deliver(webhook, due, cancel) {
      const nowMs = clock.now()
      const secrets = secretsAt(webhook.secrets, nowMs, (sealed) =>
        sealedBy(sealed) === sealer.keyId ? open(sealed, webhook.id) : null,
      )
      if (secrets === null) {
        return Promise.resolve(unopened(due, nowMs))
      }
      const { eventId, type, body, trace } = due
      const traced = trace === undefined ? {} : { trace }
      const sending = { shape: webhook.shape, type, eventId, body, secrets, nowMs, userAgent, ...traced }
      const headers = deliveryHeaders(sending)
      if (spans === null) return post(webhook.url, headers, body, due, cancel)
      const span = spans.begin('fingerpost.webhook', trace)
      headers[TRACEPARENT] = span.traceparent
      return post(webhook.url, headers, body, due, cancel).then((attempt) => {
        const { statusCode = null, error = null } = attempt ?? {}
        const status = statusCode === null ? {} : { 'http.response.status_code': statusCode }
        span.end({ 'fingerpost.webhook_id': webhook.id, 'fingerpost.event_id': eventId, ...status }, error !== null)
        return attempt
      })
    },
    deliverToSlack(address, body, due, cancel) {
      const url = openAddress(sealer, address)
      if (url === null) return Promise.resolve(unopened(due, clock.now()))
      return post(url, { 'Content-Type': 'application/json', 'User-Agent': userAgent }, body, due, cancel)
    },
  }
}

export const SECRET_LOST = 'secret_lost'

/** An attempt that nobody can make: the secret was sealed under a key that was given up. */
const unopened = ({ n, trigger }: Pick<DueAttempt, 'n' | 'trigger'>, startedAt: number): Attempt => ({
  n,
  trigger,
  startedAt,
  durationMs: 0,
  statusCode: null,
  error: SECRET_LOST,
})

/** The attempt that a job of a queue asks for; null: not made, or its outcome does not matter any more. */
export function attemptAt(attempts: Attempts, queue: WebhookQueue, job: Job): Promise<Attempt | null> | null {
  const { manual, delivery, payload } = job
  const { ending } = queue
  if (ending.isCancelled) return null
  const trigger = manual ? 'manual' : 'auto'
  const n = delivery.attemptsMade + 1
  if (payload.slack !== undefined) {
    return attempts.deliverToSlack(payload.slack.url, Buffer.from(payload.slack.body), { n, trigger }, ending)
  }
  const { webhook } = queue
  if (webhook === null || (!manual && queue.status !== 'active')) return null
  const body = bodyFor(webhook, payload)
  if (body === null) return null
  const trace = payload.trace === undefined ? {} : { trace: payload.trace }
  return attempts.deliver(
    webhook,
    { eventId: delivery.eventId, type: delivery.type, body, n, trigger, ...trace },
    ending,
  )
}
