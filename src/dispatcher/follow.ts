// Follows one partition of the `events` topic: what happened becomes payloads and deliveries, and only when those are written does
// the position move on. Whoever reads a record again comes to the same ids and finds them there.

import type { Env, StoredEvent, Verdict } from '../domain/event.ts'
import type { DecidedItem } from '../events/packed-items.ts'
import { decodeEventsRecord, type EventsRecord } from '../events/record.ts'
import { fromRow, type RowCell } from '../events/row.ts'
import { unpackVisitor } from '../identity/visitor-record.ts'
import type { Kv } from '../kv/kv.ts'
import { type Clock, nextBeat } from '../lib/clock.ts'
import { Conflict, Unavailable } from '../lib/failures.ts'
import type { Log, Seq } from '../log/log.ts'
import type { Aliasing } from '../records/aliases.ts'
import { PAYLOAD_KEPT_MS } from '../records/deliveries.ts'
import { DISPATCHER_POSITION, ENGINE_POSITION, partitionScope } from '../records/partitions.ts'
import { unpackHeldVisitor } from '../records/visitors.ts'
import { forgetVisitor } from './forget.ts'
import type { Listeners } from './listening.ts'
import { type OutboxEntries, outboxEntriesOf } from './match.ts'
import { addMentions } from './mentions.ts'
import { mergeOccurrence, occurrencesOf } from './occurrences.ts'
import { type PassOnNeeds, passOn } from './pass-on.ts'
import { slackNotices } from './slack.ts'
import type { Subscriptions, Tenant } from './subscriptions.ts'
import { withoutErased } from './without-erased.ts'

export interface FollowNeeds extends PassOnNeeds {
  readonly log: Pick<Log, 'read' | 'last'>
  readonly kv: Pick<Kv, 'get' | 'scan' | 'commit' | 'position'>
  readonly clock: Clock
  readonly subscriptions: Subscriptions
  readonly listening: Listeners
  readonly report: (error: unknown) => void
}

const BATCH = { recordsMax: 64, bytesMax: 4_000_000 } as const
/** For records while none come. */
const IDLE_MS = 5_000
const RETRY_MS = 500
/** Records of which nobody was told anything are followed by more of the kind: they gather instead of waking for each. */
const PAUSE_MS = 25
/** How far behind the position may be where nobody was told anything: reading those records again does nothing. */
const POSITION_MS_MAX = 1_000

/** Until `signal` aborts; failures are reported and the same records are tried again. */
export async function followEvents(needs: FollowNeeds, partition: number, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    try {
      await followNext(needs, partition, signal)
    } catch (error) {
      if (!(error instanceof Conflict)) needs.report(error)
      await needs.clock.sleep(RETRY_MS, signal)
    }
  }
}

async function followNext(needs: FollowNeeds, partition: number, signal: AbortSignal): Promise<void> {
  const { log, kv, clock } = needs
  const scope = partitionScope(partition)
  let stored = await firstPosition(needs, partition)
  let position = stored
  let storedAt = clock.monotonic()

  async function store(): Promise<void> {
    const guard = { source: DISPATCHER_POSITION, expect: stored, next: position }
    const [moved] = await kv.commit([{ scope, guard }])
    if (moved !== true) throw new Conflict('another dispatcher follows this partition')
    stored = position
    storedAt = clock.monotonic()
  }

  while (!signal.aborted) {
    const waitMsMax = position === stored ? IDLE_MS : POSITION_MS_MAX
    const records = await log.read('events', partition, position, { ...BATCH, waitMsMax }, signal)
    // Behind a failover the kv may be without the deliveries, and the position, that were stored last.
    if (position === stored && (await kv.position(scope, DISPATCHER_POSITION)) !== stored) {
      throw new Conflict('the kv has the dispatcher at another position')
    }
    const told: OutboxEntries = { payloads: [], deliveries: [] }
    const decoded = records.map(({ bytes }) => decodeEventsRecord(bytes))
    const tenants: Tenants = new Map()
    for (const record of decoded) {
      await tellOf(needs, partition, record, tenants, told)
      if (record.aliasing !== undefined) await tellOfMerge(needs, partition, record.aliasing, told)
    }
    const erasures = decoded.flatMap(({ erasure }) => erasure ?? [])
    const isQuiet = told.payloads.length === 0 && erasures.length === 0
    if (!isQuiet) {
      const kept = await withoutErased(kv, told)
      await passOn(needs, kept, clock.now(), erasures.length === 0)
      // Last, so that what was stored above of the same visitor goes as well.
      for (const erasure of erasures) {
        await forgetVisitor(kv, scope, erasure)
        const { survivor, former = [] } = erasure
        // Events of this partition may name a survivor whose own erasure another partition has.
        const names = survivor === undefined ? [] : [survivor, ...former]
        for (const visitorId of names) await forgetVisitor(kv, scope, { ...erasure, visitorId }, 'mentions')
      }
    }
    position = records.at(-1)?.seq ?? position
    const isDue = records.length === 0 || !isQuiet || clock.monotonic() - storedAt >= POSITION_MS_MAX
    if (isDue && position !== stored) await store()
    if (isQuiet && records.length > 0 && records.length < BATCH.recordsMax) await nextBeat(clock, PAUSE_MS, signal)
  }
  if (position !== stored) await store()
}

/** A partition that is owned and was never followed is from before there were webhooks: what comes from now on is told. */
async function firstPosition({ kv, log }: FollowNeeds, partition: number): Promise<Seq> {
  const scope = partitionScope(partition)
  const position = await kv.position(scope, DISPATCHER_POSITION)
  if (position !== null) return position
  if ((await kv.position(scope, ENGINE_POSITION)) === null) {
    throw new Unavailable(`partition ${partition} has no position in the kv: run rebuild`)
  }
  const next = await log.last('events', partition)
  const [done] = await kv.commit([{ scope, guard: { source: DISPATCHER_POSITION, expect: null, next } }])
  if (done !== true) throw new Conflict('another dispatcher has begun')
  return next
}

/** As they were looked up for the records of one read. */
type Tenants = Map<string, Tenant | null>

async function tellOf(
  needs: FollowNeeds,
  partition: number,
  record: EventsRecord,
  tenants: Tenants,
  told: OutboxEntries,
): Promise<void> {
  async function tenantOf(workspace: string, env: Env): Promise<Tenant | null> {
    const name = `${workspace}/${env}`
    const known = tenants.get(name)
    if (known !== undefined) return known
    const tenant = await needs.subscriptions.tenant(workspace, env)
    tenants.set(name, tenant)
    return tenant
  }
  let at = 0
  let latest: DecidedItem | null = null
  let tenant: Tenant | null = null
  for (const item of record.items) {
    const rowAt = at
    at += item.rowBytes
    // Most are of the environment of the one before.
    if (item.workspace !== latest?.workspace || item.env !== latest.env) {
      tenant = await tenantOf(item.workspace, item.env)
      latest = item
    }
    if (tenant === null) continue
    const row = record.rows.subarray(rowAt, at)
    const from = told.payloads.length
    try {
      tellOfItem(needs, partition, item, row, tenant, told)
      addMentions(told, from)
    } catch (error) {
      // One event that cannot be read must not stand before all that follow.
      needs.report(error)
    }
  }
}

/** Of one long past, which was ordered once more when a store was lost, everybody has heard. */
async function tellOfMerge(
  { subscriptions, listening, clock }: FollowNeeds,
  partition: number,
  merge: Aliasing,
  told: OutboxEntries,
): Promise<void> {
  const nowMs = clock.now()
  const { workspace, env, visitorId } = merge
  if (visitorId === merge.survivor || merge.at < nowMs - PAYLOAD_KEPT_MS) return
  const tenant = await subscriptions.tenant(workspace, env)
  const isHeard = listening.isHeard(workspace, env)
  if (tenant === null || (!isHeard && !tenant.types.has('visitor.merged'))) return
  const one = mergeOccurrence(merge)
  const from = told.payloads.length
  if (isHeard) listening.publish(tenant, one.occurrence)
  outboxEntriesOf(told, tenant, one, { payloadAt: partitionScope(partition), nowMs, visitorId })
  addMentions(told, from)
}

const utf8 = new TextDecoder()

function tellOfItem(
  { clock, listening }: FollowNeeds,
  partition: number,
  item: DecidedItem,
  row: Uint8Array,
  tenant: Tenant,
  told: OutboxEntries,
): void {
  const { effects = [] } = item
  const named = new Map<string, Set<string>>()
  for (const effect of effects) {
    if (effect.type !== 'webhook') continue
    named.set(effect.ruleId, (named.get(effect.ruleId) ?? new Set()).add(effect.webhookId))
  }
  const payloadAt = partitionScope(partition)
  const nowMs = clock.now()
  slackNotices(told, item, { payloadAt, nowMs })
  const isHeard = listening.isHeard(item.workspace, item.env)
  if (tenant.types.size === 0 && named.size === 0 && !isHeard) return
  const event = fromRow(JSON.parse(utf8.decode(row)) as RowCell[])
  const found = occurrencesOf(event, {
    at: item.acceptedAt,
    trace: item.trace,
    plan: tenant.workspace.plan,
    previousVerdicts: () => previousVerdicts(item, event),
    wants: (type) => isHeard || tenant.types.has(type) || (type === 'rule.matched' && named.size > 0),
  })
  for (const one of found) {
    if (isHeard) listening.publish(tenant, one.occurrence)
    const ofRule = one.occurrence.type === 'rule.matched' ? named.get(one.ruleId ?? '') : undefined
    outboxEntriesOf(told, tenant, one, { payloadAt, nowMs, visitorId: item.visitorId }, ofRule)
  }
}

const NO_VERDICTS: Readonly<Record<Verdict, number>> = { allow: 0, challenge: 0, block: 0 }

/** The state is that after the event. */
function previousVerdicts({ state }: DecidedItem, { verdict }: StoredEvent): Readonly<Record<Verdict, number>> {
  if (state.length === 0) return NO_VERDICTS
  const verdicts = { ...unpackVisitor(unpackHeldVisitor(state).state).verdicts }
  if (verdict !== null) verdicts[verdict] = Math.max(0, verdicts[verdict] - 1)
  return verdicts
}
