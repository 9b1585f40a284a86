// Deliveries in the kv. Each webhook has a scope of its own with its deliveries, what of them is due when, and how it fares; what
// is sent lies once per event in the scope of a partition; an index says which webhooks have something due.

import { createHash } from 'node:crypto'
import { ALERT_WINDOW_SECONDS } from '../domain/alert.ts'
import type { Env } from '../domain/event.ts'
import { hash32, ulidTime } from '../domain/ids.ts'
import type { EventType } from '../domain/webhook.ts'
import type { Kv, KvEntry, KvKey, Put, Scope } from '../kv/kv.ts'
import { DAY_MS, MINUTE_MS } from '../lib/durations.ts'
import { must } from '../lib/must.ts'
import { scanAll } from './scopes.ts'

export type DeliveryStatus = 'pending' | 'delivered' | 'failed'
export const DELIVERY_STATUSES: readonly DeliveryStatus[] = ['pending', 'delivered', 'failed']
export const ATTEMPT_TRIGGERS = ['auto', 'manual', 'test'] as const
export type AttemptTrigger = (typeof ATTEMPT_TRIGGERS)[number]

export interface Attempt {
  readonly n: number
  readonly trigger: AttemptTrigger
  readonly startedAt: number
  readonly durationMs: number
  readonly statusCode: number | null
  readonly error: string | null
}

export interface StoredDelivery {
  readonly eventId: string
  readonly type: EventType
  readonly status: DeliveryStatus
  /** Attempts of the schedule; manual ones and tests are not counted. */
  readonly tries: number
  /** All of them; the newest ATTEMPTS_KEPT are kept. */
  readonly attemptsMade: number
  readonly attempts: readonly Attempt[]
  /** null: nothing more will happen by itself. */
  readonly nextAttemptAt: number | null
  readonly createdAt: number
  /** Why it failed without an attempt, such as `endpoint_disabled`; else null. */
  readonly reason: string | null
  /** Where its payload lies, and under which id. */
  readonly payloadAt: Scope
  readonly payloadId: string
  /** The payload stays at least until then. */
  readonly payloadUntil: number
}
export const ATTEMPTS_KEPT = 30

/** The bodies of an event, each only where some subscription needs it. */
export interface Payload {
  /** Of shape A, whole. */
  readonly a?: string
  /** Of shape B, behind `{"webhookId":"…",`. */
  readonly b?: string
  /** A message for Slack, and where it goes. */
  readonly slack?: { readonly url: string; readonly body: string }
  /** Of whoever identified: deliveries go on with it. */
  readonly trace?: string
  /** Several webhooks are told by it: none of them knows when the last one has it. */
  readonly ofMany?: true
  /** No body, but the id of one that names the visitor. */
  readonly of?: string
}

/** What can be sent again by hand must still be there. Bodies are kept so long from the beginning: nobody may be there to prolong them. */
export const FAILED_KEPT_MS = 15 * DAY_MS
export const DELIVERED_KEPT_MS = 2 * DAY_MS
/** Of a body that the one webhook has which is told by it. */
export const PAYLOAD_KEPT_MS = 3 * DAY_MS
export const REDELIVER_DAYS_MAX = 14

export const deliveriesScope = (webhookId: string): Scope => `wh/${webhookId}`
export const DELIVERY = 'delivery'
export const deliveryKey = (id: string): KvKey => [DELIVERY, id]
const TIME_DIGITS = 14
const timeText = (ms: number): string => String(ms).padStart(TIME_DIGITS, '0')

/** Attempts of the schedule, by their time, and those asked for by hand. */
export const DUE = 'due'
export const DUE_MANUAL = 'due-manual'
export const dueId = (at: number, deliveryId: string): string => `${timeText(at)}/${deliveryId}`
/** Behind everything that is due at `at` or before. */
export const dueUntil = (at: number): string => `${timeText(at)}/~`
export function readDueDeliveryId(id: string): { readonly at: number; readonly deliveryId: string } {
  return { at: Number(id.slice(0, TIME_DIGITS)), deliveryId: id.slice(TIME_DIGITS + 1) }
}

export const HEALTH: KvKey = ['meta', 'health']
export interface Health {
  /** The first failure since the last success; null: none. */
  readonly failingSince: number | null
  readonly lastAttemptAt: number | null
  readonly lastDeliveryAt: number | null
  /** Whether the warning of half the time was given. */
  readonly warned: boolean
}
export const NO_HEALTH: Health = { failingSince: null, lastAttemptAt: null, lastDeliveryAt: null, warned: false }

/** How many wait: a counter that moves with every delivery that is stored or comes to an end. */
export const PENDING_DELIVERIES: KvKey = ['meta', 'pending']
/** The position that guards what one sender writes against another that believes to hold the same webhook. */
export const SENDER_FENCE = 'sender'

export const STAT = 'stat'
export const STAT_DAYS = 7
export const dayNumberOf = (ms: number): number => Math.floor(ms / DAY_MS)
export const statKey = (day: number, status: 'delivered' | 'failed'): KvKey => [STAT, `${day}/${status}`]

/**
 * Deliveries that came to an end, by the minute, for as long as an alert may look back. Every writer has rows of its own, so that it
 * can write sums without reading.
 */
export const TALLY = 'tally'
const TALLY_KEPT_MS = ALERT_WINDOW_SECONDS.max * 1_000 + 2 * MINUTE_MS
export interface Ended {
  readonly delivered: number
  readonly failed: number
}
const minuteText = (ms: number): string => timeText(Math.floor(ms / MINUTE_MS) * MINUTE_MS)
/** `writer`: unlike that of any other row of the minute. */
export const tallyId = (ms: number, writer: string): string => `${minuteText(ms)}/${writer}`
export const putTally = (id: string, { delivered, failed }: Ended): Put => ({
  key: [TALLY, id],
  value: [delivered, failed],
  ttlMs: TALLY_KEPT_MS,
})
/** In the minutes from that of `from` to that of `to`, both included. */
export async function readTally(kv: Pick<Kv, 'scan'>, webhookId: string, from: number, to: number): Promise<Ended> {
  const bounds = { after: minuteText(from), upTo: `${minuteText(to)}/~` }
  let [delivered, failed] = [0, 0]
  for await (const { value } of scanAll<[number, number]>(kv, deliveriesScope(webhookId), TALLY, bounds)) {
    delivered += value[0]
    failed += value[1]
  }
  return { delivered, failed }
}

/** Senders share the webhooks by shard. */
export const SHARDS = 16
export const shardOf = (webhookId: string): number => hash32(webhookId) % SHARDS
export const shardScope = (shard: number): Scope => `deliver/${shard}`
/** Webhooks with something due, now or later. */
export const NEXT = 'next'
export const nextKey = (webhookId: string): KvKey => [NEXT, webhookId]
export interface Next {
  readonly workspace: string
  readonly env: Env
  /** Nothing is due before. */
  readonly at: number
}

export const PAYLOAD = 'payload'
export const payloadKey = (payloadId: string): KvKey => [PAYLOAD, payloadId]
const nobody = '-'
/** Whom it speaks of comes first, so that it is found when that visitor is erased. */
export const payloadIdOf = (workspace: string, env: Env, visitorId: string | null, eventId: string): string =>
  `${workspace}/${env}/${visitorId ?? nobody}/${eventId}`
/** Whom a payload with this id speaks of; null: nobody who may be erased. */
export function readPayloadWhose(id: string): { workspace: string; env: Env; visitorId: string } | null {
  const [workspace = '', env = '', visitorId = nobody] = id.split('/')
  return visitorId === nobody ? null : { workspace, env: env as Env, visitorId }
}

const CROCKFORD = '0123456789ABCDEFGHJKMNPQRSTVWXYZ'

/** 26 characters like a ULID whose random part is a digest: the same occurrence has the same id, whoever works it out. */
export function derivedUlid(atMs: number, what: string): string {
  let time = ''
  for (let i = 0, rest = atMs; i < 10; i++, rest = Math.floor(rest / 32)) time = CROCKFORD[rest % 32] + time
  const digest = createHash('sha256').update(what).digest()
  let random = ''
  for (let i = 0; i < 16; i++) random += CROCKFORD[(digest[i] as number) & 31]
  return time + random
}

/** When what an id of ours names happened, milliseconds. */
export const readUlidTime = (id: string): number => must(ulidTime(id.slice(-26)), 'an id with a time')

export const deliveryIdOf = (createdAt: number, eventId: string, webhookId: string): string =>
  `dlv_${derivedUlid(createdAt, `${eventId}/${webhookId}`)}`

/** How long a delivery and what it sends must stay, by its status; undefined: until something becomes of it. */
const ttlOf = (status: DeliveryStatus): number | undefined =>
  status === 'pending' ? undefined : status === 'failed' ? FAILED_KEPT_MS : DELIVERED_KEPT_MS

export function putDelivery(id: string, delivery: StoredDelivery): Put {
  const ttlMs = ttlOf(delivery.status)
  return ttlMs === undefined
    ? { key: deliveryKey(id), value: delivery }
    : { key: deliveryKey(id), value: delivery, ttlMs }
}

export async function readStoredDelivery(kv: Pick<Kv, 'get'>, webhookId: string, id: string) {
  const [entry] = await kv.get<StoredDelivery>(deliveriesScope(webhookId), [deliveryKey(id)])
  return entry?.value ?? null
}

export async function readPayload(kv: Pick<Kv, 'get'>, delivery: StoredDelivery): Promise<Payload | null> {
  return (await readPayloads(kv, [delivery])).get(delivery.payloadId) ?? null
}

export type PayloadPlace = Pick<StoredDelivery, 'payloadAt' | 'payloadId'>

/** Those that are still kept, each once, with the scope they lie in. */
export async function readPayloadEntries(
  kv: Pick<Kv, 'get'>,
  places: Iterable<PayloadPlace>,
): Promise<readonly { readonly scope: Scope; readonly entry: KvEntry<Payload> }[]> {
  const byScope = new Map<Scope, Set<string>>()
  for (const { payloadAt, payloadId } of places) {
    byScope.set(payloadAt, (byScope.get(payloadAt) ?? new Set()).add(payloadId))
  }
  const found: { readonly scope: Scope; readonly entry: KvEntry<Payload> }[] = []
  for (const [scope, ids] of byScope) {
    for (const entry of await kv.get<Payload>(scope, [...ids].map(payloadKey))) {
      if (entry !== null) found.push({ scope, entry })
    }
  }
  return found
}

/** The same by their ids. */
export const readPayloads = async (
  kv: Pick<Kv, 'get'>,
  places: Iterable<PayloadPlace>,
): Promise<ReadonlyMap<string, Payload>> =>
  new Map((await readPayloadEntries(kv, places)).map(({ entry: { key, value } }) => [key[1], value]))

export interface StoredDeliveryFilter {
  readonly holds: (delivery: StoredDelivery) => boolean
  /** Milliseconds, inclusive. */
  readonly after?: number
  /** Exclusive. */
  readonly before?: number
}

export interface DeliveryPage {
  readonly deliveries: readonly { readonly id: string; readonly delivery: StoredDelivery }[]
  /** Where the next page begins; null: at the end. */
  readonly next: string | null
}

const SCANNED_PER_PAGE = 500
/** Looked at for one page; what is rare is found page by page. */
const SCANNED_MAX = 10_000

/** Newest first. `before` the id that ended the previous page. */
export async function readDeliveries(
  kv: Pick<Kv, 'scan'>,
  webhookId: string,
  { holds, after, before }: StoredDeliveryFilter,
  limit: number,
  last: string | null,
): Promise<DeliveryPage> {
  const low = `dlv_${derivedUlid(after ?? 0, '').slice(0, 10)}`
  let high = last ?? (before === undefined ? 'dlv_~' : `dlv_${derivedUlid(before, '').slice(0, 10)}`)
  const deliveries: { id: string; delivery: StoredDelivery }[] = []
  for (let scanned = 0; scanned < SCANNED_MAX; scanned += SCANNED_PER_PAGE) {
    const range = { after: low, upTo: high, limit: SCANNED_PER_PAGE + 1, reverse: true }
    const found = await kv.scan<StoredDelivery>(deliveriesScope(webhookId), DELIVERY, range)
    const page = found.filter(({ key }) => key[1] !== last)
    for (const { key, value } of page) {
      if (deliveries.length === limit) return { deliveries, next: deliveries.at(-1)?.id ?? null }
      if (holds(value)) deliveries.push({ id: key[1], delivery: value })
    }
    const end = found.at(-1)?.key[1]
    if (found.length <= SCANNED_PER_PAGE || end === undefined || end === high) return { deliveries, next: null }
    high = end
    last = end
  }
  return { deliveries, next: high }
}

/** The ids of the payloads that are still kept. */
export async function keptPayloads(
  kv: Pick<Kv, 'get'>,
  deliveries: readonly PayloadPlace[],
): Promise<ReadonlySet<string>> {
  const kept = new Set<string>()
  for (let from = 0; from < deliveries.length; from += PAYLOADS_AT_ONCE) {
    for (const id of (await readPayloads(kv, deliveries.slice(from, from + PAYLOADS_AT_ONCE))).keys()) kept.add(id)
  }
  return kept
}
/** In memory: each may be large. */
const PAYLOADS_AT_ONCE = 100

/** Asks for one more attempt of each, now. */
export async function askAgain(
  kv: Pick<Kv, 'commit'>,
  place: { readonly workspace: string; readonly env: Env; readonly webhookId: string },
  deliveryIds: readonly string[],
  nowMs: number,
): Promise<void> {
  const { workspace, env, webhookId } = place
  const scope = deliveriesScope(webhookId)
  for (let from = 0; from < deliveryIds.length; from += ASKED_PER_COMMIT) {
    const some = deliveryIds.slice(from, from + ASKED_PER_COMMIT)
    await kv.commit([{ scope, put: some.map((id) => ({ key: [DUE_MANUAL, dueId(nowMs, id)], value: true })) }])
  }
  const next: Next = { workspace, env, at: nowMs }
  await kv.commit([{ scope: shardScope(shardOf(webhookId)), put: [{ key: nextKey(webhookId), value: next }] }])
}
const ASKED_PER_COMMIT = 1_000

/** Deliveries of a webhook over the last seven days that came to an end, and how it fares. */
export async function readStanding(kv: Pick<Kv, 'get'>, webhookId: string, nowMs: number) {
  const today = dayNumberOf(nowMs)
  const days = Array.from({ length: STAT_DAYS }, (_, i) => today - i)
  const keys = days.flatMap((day): KvKey[] => [statKey(day, 'delivered'), statKey(day, 'failed')])
  const [health, ...counts] = await kv.get(deliveriesScope(webhookId), [HEALTH, ...keys])
  const sum = (odd: number) =>
    counts.reduce((total, entry, i) => (i % 2 === odd ? total + Number(entry?.value ?? 0) : total), 0)
  const [delivered, failed] = [sum(0), sum(1)]
  return {
    health: (health?.value as Health | undefined) ?? NO_HEALTH,
    successRate: delivered + failed === 0 ? 1 : Math.round((delivered / (delivered + failed)) * 10_000) / 10_000,
  }
}
