// What is held of a visitor beside its events: how it is recognised, its accounts and addresses, what was delivered, corrected and noted
// about it. For the export that answers whom the data is about.

import type { ClickHouse } from '../clickhouse/clickhouse.ts'
import type { Env } from '../domain/event.ts'
import { homePartition } from '../domain/ids.ts'
import { EVENTS_TABLE } from '../events/row.ts'
import { VALUE_NAMES } from '../identity/profile.ts'
import { unpackVisitor } from '../identity/visitor-record.ts'
import type { Kv } from '../kv/kv.ts'
import { CORRECTION_OF, type Correction, correctionKey } from '../records/aliases.ts'
import { readAudit, type StoredAuditEntry } from '../records/audit.ts'
import {
  type DeliveryStatus,
  deliveriesScope,
  deliveryIdOf,
  deliveryKey,
  PAYLOAD,
  readUlidTime,
  type StoredDelivery,
} from '../records/deliveries.ts'
import { partitionScope, visitorKey } from '../records/partitions.ts'
import { scanAll, tenantScope, under } from '../records/scopes.ts'
import { unpackHeldVisitor } from '../records/visitors.ts'
import { readWebhooks } from '../records/webhooks.ts'
import { addressText } from '../rules/to-sql-address.ts'

/** A record by which visits are recognised as the visitor's. */
export interface PersonalRecognition {
  readonly visitorId: string
  /** Of the latest look and of earlier ones: hashes under which it is found. */
  readonly matchKeys: readonly string[]
  readonly platform: string | null
  readonly browser: string | null
  /** What is compared, by name: numbers, and hashes of texts. */
  readonly attributes: Readonly<Record<string, number>>
  /** Of storage tokens: the newest one given out, and the newest one that came back. */
  readonly generation: number
  readonly confirmedGeneration: number
  readonly tokenVisits: number
  readonly privateVisits: number
  /** What the engine counts of it, packed; empty when nothing. */
  readonly counters: Uint8Array
}

/** Something events say, and when they did. Milliseconds. */
export interface PersonalSaid {
  readonly value: string
  readonly firstAt: number
  readonly lastAt: number
  readonly events: number
}

export interface PersonalDelivery {
  readonly webhookId: string
  readonly deliveryId: string
  readonly type: string
  readonly status: DeliveryStatus
  readonly attempts: number
  readonly createdAt: number
}

export interface PersonalData {
  readonly recognition: readonly PersonalRecognition[]
  readonly accounts: readonly PersonalSaid[]
  readonly emails: readonly PersonalSaid[]
  readonly addresses: readonly PersonalSaid[]
  /** Whose bodies are kept. */
  readonly deliveries: readonly PersonalDelivery[]
  readonly corrections: readonly Correction[]
  readonly audit: readonly StoredAuditEntry[]
  /** Of which of them there is more than the newest ITEMS_MAX. */
  readonly truncated: readonly ('accounts' | 'emails' | 'addresses' | 'deliveries' | 'audit')[]
}

export interface PersonalReadsNeeds {
  readonly kv: Pick<Kv, 'get' | 'scan'>
  readonly clickhouse: Pick<ClickHouse, 'query'>
  readonly partitions: number
}

/** `visitorIds`: the visitor and who was merged into it. Fails with Unavailable when a store cannot answer. */
export type ReadPersonal = (workspace: string, env: Env, visitorIds: readonly string[]) => Promise<PersonalData>

/** Of each list. */
const ITEMS_MAX = 1_000
/** So many are read: one more tells that there is more. */
const ITEMS_READ = ITEMS_MAX + 1

export function openPersonalReads({ kv, clickhouse, partitions }: PersonalReadsNeeds): ReadPersonal {
  async function recognitionOf(workspace: string, env: Env, visitorId: string): Promise<PersonalRecognition[]> {
    const scope = partitionScope(homePartition(visitorId, partitions))
    const [entry] = await kv.get<Uint8Array>(scope, [visitorKey(workspace, env, visitorId)])
    if (!entry) return []
    const { keys, earlierKeys, state, counters } = unpackHeldVisitor(entry.value)
    const { profile, generation, confirmedGeneration, tokenVisits, privateVisits } = unpackVisitor(state)
    const values = VALUE_NAMES.map((name, i) => [name, profile?.values[i] ?? null] as const)
    const attributes = Object.fromEntries(values.filter((one): one is [(typeof one)[0], number] => one[1] !== null))
    return [
      {
        visitorId,
        matchKeys: [...keys, ...earlierKeys],
        attributes,
        platform: profile?.os ?? null,
        browser: profile?.family ?? null,
        generation,
        confirmedGeneration,
        tokenVisits,
        privateVisits,
        counters,
      },
    ]
  }

  async function said(
    workspace: string,
    env: Env,
    visitorIds: readonly string[],
    sql: string,
  ): Promise<PersonalSaid[]> {
    return await clickhouse.query<PersonalSaid>(
      `SELECT ${sql} AS value, toUnixTimestamp64Milli(min(ts)) AS firstAt, toUnixTimestamp64Milli(max(ts)) AS lastAt,
         count() AS events FROM ${EVENTS_TABLE}
       WHERE workspace_id = {workspace:String} AND env = {env:String} AND
         visitor_hash IN (SELECT cityHash64(arrayJoin({visitorIds:Array(String)}))) AND
         visitor_id IN {visitorIds:Array(String)} AND ${sql} != ''
       GROUP BY value ORDER BY lastAt DESC, value LIMIT ${ITEMS_READ}`,
      { workspace, env, visitorIds },
    )
  }

  async function deliveriesOf(workspace: string, env: Env, visitorId: string): Promise<PersonalDelivery[]> {
    const scope = partitionScope(homePartition(visitorId, partitions))
    const prefix = `${workspace}/${env}/${visitorId}`
    const eventIds: string[] = []
    for await (const { key } of scanAll(kv, scope, PAYLOAD, under(prefix)))
      eventIds.push(key[1].slice(prefix.length + 1))
    const newest = eventIds.slice(-ITEMS_READ)
    const found: PersonalDelivery[] = []
    for (const { id: webhookId } of await readWebhooks(kv, workspace, env)) {
      const ids = newest.map((eventId) => deliveryIdOf(readUlidTime(eventId), eventId, webhookId))
      const entries = await kv.get<StoredDelivery>(deliveriesScope(webhookId), ids.map(deliveryKey))
      for (const [i, entry] of entries.entries()) {
        if (entry === null) continue
        const { type, status, attemptsMade, createdAt } = entry.value
        found.push({ webhookId, deliveryId: ids[i] ?? '', type, status, attempts: attemptsMade, createdAt })
      }
    }
    return found.sort((a, b) => b.createdAt - a.createdAt).slice(0, ITEMS_READ)
  }

  async function correctionsOf(workspace: string, env: Env, visitorId: string): Promise<Correction[]> {
    const scope = tenantScope(workspace, env)
    const seqs: number[] = []
    for await (const { key } of scanAll(kv, scope, CORRECTION_OF, under(visitorId))) {
      seqs.push(Number(key[1].slice(visitorId.length + 1)))
    }
    const entries = await kv.get<Correction>(scope, seqs.map(correctionKey))
    return entries.flatMap((entry) => (entry === null ? [] : [entry.value]))
  }

  async function auditOf(workspace: string, env: Env, visitorId: string): Promise<StoredAuditEntry[]> {
    const entries: StoredAuditEntry[] = []
    const filter = { resource: 'visitor', id: visitorId } as const
    await readAudit(kv, workspace, env, filter, ITEMS_READ, null, (entry) => entries.push(entry) < ITEMS_READ)
    return entries
  }

  return async (workspace, env, visitorIds) => {
    const ofEach = async <T>(read: (workspace: string, env: Env, visitorId: string) => Promise<T[]>): Promise<T[]> =>
      (await Promise.all(visitorIds.map((id) => read(workspace, env, id)))).flat()
    const bySeq = new Map((await ofEach(correctionsOf)).map((one) => [one.seq, one]))
    const lists = {
      accounts: await said(workspace, env, visitorIds, 'linked_id'),
      emails: await said(workspace, env, visitorIds, 'email'),
      addresses: await said(workspace, env, visitorIds, addressText('ip')),
      deliveries: await ofEach(deliveriesOf),
      audit: await ofEach(auditOf),
    }
    const names = Object.keys(lists) as (keyof typeof lists)[]
    return {
      recognition: await ofEach(recognitionOf),
      accounts: lists.accounts.slice(0, ITEMS_MAX),
      emails: lists.emails.slice(0, ITEMS_MAX),
      addresses: lists.addresses.slice(0, ITEMS_MAX),
      deliveries: lists.deliveries.slice(0, ITEMS_MAX),
      corrections: [...bySeq.values()],
      audit: lists.audit.slice(0, ITEMS_MAX),
      truncated: names.filter((name) => lists[name].length > ITEMS_MAX),
    }
  }
}
