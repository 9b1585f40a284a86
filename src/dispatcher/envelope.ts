// What is sent: the bodies of both shapes, rendered once per event, and the headers, made anew for every attempt.

import { TRACEPARENT, traceparentOf } from '../domain/trace.ts'
import {
  ALL_EVENTS,
  type EventType,
  PAYLOAD_BYTES_MAX,
  plainEventOf,
  type Webhook,
  type WebhookSecret,
  type WebhookShape,
} from '../domain/webhook.ts'
import { signBody, signBodyAlone, signStandard } from '../domain/webhook-signature.ts'
import { isoTime } from '../events/present.ts'
import type { Payload } from '../records/deliveries.ts'

/** Something that subscribers are told of. */
export interface Occurrence {
  /** `evt_` and a ULID. */
  readonly eventId: string
  readonly type: EventType
  /** Milliseconds. */
  readonly at: number
  readonly data: Readonly<Record<string, unknown>>
  /** The data of shape A. */
  readonly plainData: Readonly<Record<string, unknown>>
  /** As domain/trace.ts packs it; absent where nobody traces. */
  readonly trace?: string
}

/** What is left of data that is too long. */
export const ID_MEMBERS = ['requestId', 'visitorId', 'verdict', 'listId', 'test']
/** Room for the first member of shape B, which differs by subscription. */
const HEAD_BYTES = 64

function shrunk(data: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const kept = ID_MEMBERS.filter((name) => Object.hasOwn(data, name)).map((name) => [name, data[name]])
  return { ...Object.fromEntries(kept), truncated: true }
}

function fitting(data: Readonly<Record<string, unknown>>, render: (data: unknown) => string): string {
  const text = render(data)
  return Buffer.byteLength(text) + HEAD_BYTES <= PAYLOAD_BYTES_MAX ? text : render(shrunk(data))
}

/** The bodies that the shapes need. `apiVersion`: of the account, now. */
export function renderPayload(occurrence: Occurrence, apiVersion: string, shapes: ReadonlySet<WebhookShape>): Payload {
  const { eventId, type, at, data } = occurrence
  const event = plainEventOf(type)
  const head = {
    eventId,
    eventType: type,
    apiVersion,
    createdAt: isoTime(at),
    idempotencyKey: `ik_${eventId.slice('evt_'.length)}`,
  }
  return {
    ...(occurrence.trace === undefined ? {} : { trace: occurrence.trace }),
    ...(shapes.has('A') && event !== null
      ? { a: fitting(occurrence.plainData, (shown) => JSON.stringify({ event, timestamp: isoTime(at), data: shown })) }
      : {}),
    ...(shapes.has('B') ? { b: fitting(data, (shown) => JSON.stringify({ ...head, data: shown }).slice(1)) } : {}),
  }
}

export const hasBodyFor = ({ shape }: Pick<Webhook, 'shape'>, { a, b }: Payload): boolean =>
  (shape === 'A' ? a : b) !== undefined

/** The body for one subscription; null when it was not rendered for its shape. */
export function bodyFor(webhook: Pick<Webhook, 'id' | 'shape'>, payload: Payload): Buffer | null {
  if (webhook.shape === 'A') return payload.a === undefined ? null : Buffer.from(payload.a)
  return payload.b === undefined ? null : Buffer.from(`{"webhookId":"${webhook.id}",${payload.b}`)
}

/** The name the webhook's shape has for a type. */
export const shownType = (shape: WebhookShape, type: EventType): string =>
  shape === 'A' ? (plainEventOf(type) ?? ALL_EVENTS) : type

/** The secret that signs now, and the one that will: until a grace period ends the older one signs. */
export interface SigningSecrets {
  readonly main: string
  readonly next: string | null
}

/** Of those that `open` can open; null where it opens none. */
export function secretsAt(
  secrets: readonly WebhookSecret[],
  nowMs: number,
  open: (sealed: string) => string | null,
): SigningSecrets | null {
  const live = secrets
    .filter(({ expiresAt }) => expiresAt === null || expiresAt > nowMs)
    .flatMap(({ sealed }) => open(sealed) ?? [])
  const [newest, older] = live
  if (newest === undefined) return null
  return older === undefined ? { main: newest, next: null } : { main: older, next: newest }
}

export interface Sending {
  readonly shape: WebhookShape
  readonly type: EventType
  readonly eventId: string
  readonly body: Uint8Array
  readonly secrets: SigningSecrets
  /** Of this attempt. */
  readonly nowMs: number
  readonly userAgent: string
  /** As domain/trace.ts packs it; absent where nobody traces. */
  readonly trace?: string
}

export function deliveryHeaders(sending: Sending): Record<string, string> {
  const { shape, type, eventId, body, secrets, nowMs, userAgent, trace } = sending
  const timestamp = Math.floor(nowMs / 1_000)
  const all = secrets.next === null ? [secrets.main] : [secrets.main, secrets.next]
  const standard = all.flatMap((secret) => signStandard(secret, eventId, timestamp, body) ?? [])
  const headers: Record<string, string> = {
    'Content-Type': 'application/json',
    'User-Agent': userAgent,
    'X-Service-Signature': signBody(secrets.main, timestamp, body),
  }
  if (secrets.next !== null) headers['X-Service-Signature-Next'] = signBody(secrets.next, timestamp, body)
  if (shape === 'A') headers['X-Service-Signature-Body'] = signBodyAlone(secrets.main, body)
  headers['X-Service-Event'] = shownType(shape, type)
  headers['X-Service-Delivery'] = eventId
  headers['X-Service-Timestamp'] = String(timestamp)
  headers['webhook-id'] = eventId
  headers['webhook-timestamp'] = String(timestamp)
  if (standard.length > 0) headers['webhook-signature'] = standard.join(' ')
  if (trace !== undefined) headers[TRACEPARENT] = traceparentOf(trace, `${eventId}/${nowMs}`)
  return headers
}
