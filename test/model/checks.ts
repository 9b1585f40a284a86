// What must hold when everything is quiet: nothing accepted is lost, nothing is decided twice, nothing that was said is
// contradicted by what is read.

import type { StoredEvent } from '../../src/domain/event.ts'
import { type IdentifyMeta, NONCE_WINDOW_MS } from '../../src/domain/identify.ts'
import { homePartition } from '../../src/domain/ids.ts'
import { fromRow } from '../../src/events/row.ts'
import { presentResult } from '../../src/identity/result.ts'
import { unpackVisitor } from '../../src/identity/visitor-record.ts'
import { unpack } from '../../src/lib/codec.ts'
import { openEventReads } from '../../src/reads/events.ts'
import { readRuleStats } from '../../src/reads/rule-stats.ts'
import {
  decodeAliasing,
  decodeAnnotation,
  decodeErasure,
  decodeIdentification,
  decodeSplitting,
  decodeUnnaming,
} from '../../src/records/identification.ts'
import { partitionScope, SINK_POSITION } from '../../src/records/partitions.ts'
import { unpackHeldVisitor } from '../../src/records/visitors.ts'
import { checkCounters } from './check-counters.ts'
import { checkErasures } from './check-erasures.ts'
import { checkFold } from './check-fold.ts'
import { checkHeals } from './check-heals.ts'
import { checkLists } from './check-lists.ts'
import { checkMerges } from './check-merges.ts'
import { checkSplits } from './check-splits.ts'
import type { Answered } from './clients.ts'
import { type DecidedSoFar, visitorOf } from './decided.ts'
import { type Deployment, PARTITIONS, positionOf } from './deployment.ts'
import type { Erased } from './erasers.ts'
import type { Exemptions } from './exempt.ts'
import type { Changed } from './operators.ts'
import type { StoredRecord } from './ports.ts'
import type { ModelProcess } from './process.ts'
import { EPOCH_MS, type Scheduler } from './scheduler.ts'
import { asAnswered, kindOf, type Problem } from './watch.ts'

/** All that the checks may look at when everything is quiet. */
export interface Facts extends Deployment {
  readonly answers: readonly Answered[]
  readonly changes: readonly Changed[]
  readonly erased: readonly Erased[]
  readonly decided: DecidedSoFar
  /** Requests of which a line that a rule asked for was written. */
  readonly logged: ReadonlySet<string>
  readonly exempt: Exemptions
  /** The engine finds visitors to be one. */
  readonly healing: boolean
  readonly processes: readonly ModelProcess[]
  /** Threads decide a record when it is submitted, which may be long before it is durable. */
  readonly sharded: boolean
  /** The partition whose records in the kv were lost, or null. */
  readonly lostPartition: number | null
  readonly problem: Problem
}

interface Row {
  readonly event: StoredEvent
  readonly partition: number
  readonly seq: number
  /** In ClickHouse, refused by it, or gone from it with its visitor: then it is known from the log alone. */
  readonly kept: 'stored' | 'quarantined' | 'erased'
}

interface Accepted {
  readonly partition: number
  readonly record: StoredRecord
  /** null: no identification at all. */
  readonly meta: IdentifyMeta | null
  readonly nonce: string | null
  readonly body: string
}

/** Clocks of two processes may differ by less than this. */
const SKEW_MS_MAX = 200

const asRow = (cells: readonly unknown[], kept: Row['kept']): Row => ({
  event: fromRow(cells as Parameters<typeof fromRow>[0]),
  partition: Number(cells.at(-2)),
  seq: Number(cells.at(-1)),
  kept,
})

function readRows({ clickhouse, decided }: Facts): Row[] {
  const stored = clickhouse.rows.get('events') ?? []
  const refused = (clickhouse.rows.get('quarantine') ?? []).map(
    ({ cells }) => JSON.parse(String(cells[5])) as unknown[],
  )
  const isErased = (visitor: string) => decided.erasureOf(visitor) !== undefined
  const kept = [
    ...stored.map(({ cells }) => asRow(cells, 'stored')),
    ...refused.map((cells) => asRow(cells, 'quarantined')),
  ]
  // Of an alias that was merged while its survivor was erased, the events that name that one go with it.
  const shown = (cells: readonly unknown[]) => visitorOf(asRow(cells, 'erased').event)
  const erased = decided.events().filter(({ item, cells }) => {
    const owner = decided.ownerOf(item)
    return isErased(owner) || (owner === visitorOf(item) && isErased(shown(cells())))
  })
  const gone = new Set(erased.map(({ item }) => item.requestId))
  const left = kept.filter(({ event }) => !gone.has(event.requestId) && !isErased(visitorOf(event)))
  return [...left, ...erased.map(({ cells }) => asRow(cells(), 'erased'))]
}

const isCommand = (bytes: Uint8Array): boolean => {
  try {
    const decoders = [decodeErasure, decodeAliasing, decodeSplitting, decodeUnnaming, decodeAnnotation]
    return decoders.some((decode) => decode(bytes) !== null)
  } catch {
    return false
  }
}

/** Commands are no identifications. */
function readAccepted({ log }: Facts): Accepted[] {
  const found: Accepted[] = []
  for (let partition = 0; partition < PARTITIONS; partition++) {
    for (const record of log.side('identifications', partition).archive) {
      if (isCommand(record.bytes)) continue
      try {
        const { meta, body } = decodeIdentification(record.bytes)
        if (typeof meta.requestId !== 'string') throw new Error('no identification')
        const text = Buffer.from(body).toString()
        const nonce = /"nonce":"([^"]+)"/.exec(text)?.[1]
        found.push({
          partition,
          record,
          meta,
          nonce: nonce === undefined ? null : `${meta.env}/${nonce}`,
          body: text,
        })
      } catch {
        found.push({ partition, record, meta: null, nonce: null, body: '' })
      }
    }
  }
  return found
}

function groupBy<T>(items: readonly T[], keyOf: (item: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>()
  for (const item of items) {
    const key = keyOf(item)
    const group = groups.get(key)
    if (group === undefined) groups.set(key, [item])
    else group.push(item)
  }
  return groups
}

export async function checkWorld(facts: Facts, scheduler: Scheduler): Promise<void> {
  const { lostPartition, exempt } = facts
  const rows = readRows(facts).filter((r) => r.partition !== lostPartition && !exempt.isRequest(r.event.requestId))
  const accepted = readAccepted(facts)
  const byId = groupBy(rows, (row) => row.event.requestId)
  checkRows(facts, rows, byId)
  checkAccepted(
    facts,
    accepted.filter((a) => a.partition !== lostPartition),
    byId,
  )
  checkDead(
    facts,
    accepted.filter((a) => a.partition !== lostPartition),
    byId,
  )
  checkLost(facts)
  await checkErasures(facts)
  await checkLists(facts)
  checkMerges(facts)
  if (facts.healing) checkHeals(facts)
  await checkSplits(facts)
  if (lostPartition === null) {
    await checkVisitors(facts, rows)
    if (!exempt.countsMiss()) await checkStats(facts, rows)
    if (!exempt.countsMiss()) await checkCounters(facts)
    await checkAnswers(facts, accepted, byId)
  }
  checkRevisions(facts, accepted, byId)
  await checkFold(facts, scheduler)
}

/** Whose record counts the visit: each of those that were merged counts its own. */
const holderOf = ({ identity, visitorId }: StoredEvent): string => identity.holder ?? visitorId

function checkRows({ problem }: Facts, rows: readonly Row[], byId: ReadonlyMap<string, readonly Row[]>): void {
  for (const [id, those] of byId)
    if (those.length > 1)
      problem(
        'nothing is decided twice',
        `${id}: at ${those.map(({ partition, seq }) => `${partition}/${seq}`).join(' and ')}`,
      )
  for (const [place, those] of groupBy(rows, (row) => `${row.partition}/${row.seq}`)) {
    if (those.length > 1) problem('nothing is decided twice', `${place}: ${those.length} rows`)
  }
  for (const { event, partition } of rows) {
    if (homePartition(holderOf(event), PARTITIONS) !== partition)
      problem('a visitor is written by its home', `${event.visitorId} of ${event.requestId} by ${partition}`)
  }
}

/** The first with this nonce in this partition that came within the window before. */
function firstOf(
  accepted: readonly Accepted[],
  byId: ReadonlyMap<string, readonly Row[]>,
  one: Accepted,
): Accepted | undefined {
  return accepted.find(
    ({ nonce, partition, meta, record }) =>
      nonce === one.nonce &&
      partition === one.partition &&
      record.seq < one.record.seq &&
      meta !== null &&
      one.meta !== null &&
      byId.has(meta.requestId) &&
      Math.abs(one.meta.acceptedAt - meta.acceptedAt) <= NONCE_WINDOW_MS,
  )
}

const sunkTo = (kv: Facts['kv'], partition: number): number =>
  positionOf(kv, partitionScope(partition), SINK_POSITION) ?? 0

function checkAccepted(
  { kv, decided, exempt, problem }: Facts,
  accepted: readonly Accepted[],
  byId: ReadonlyMap<string, readonly Row[]>,
): void {
  for (const one of accepted) {
    const { meta, nonce } = one
    if (meta === null || exempt.isRequest(meta.requestId)) continue
    // Read before the loss and decided so long after it that nobody waited for its row.
    const isOnItsWay = decided
      .eventsOf(meta.requestId)
      .some(({ partition, record }) => exempt.isStream(partition) && record.seq > sunkTo(kv, partition))
    if (isOnItsWay) continue
    // What repeats a lost nonce is answered like it: with nothing.
    const repeats = (other: Accepted) => other.nonce === nonce && exempt.isRequest(other.meta?.requestId ?? '')
    if (nonce !== null && accepted.some(repeats)) continue
    const rows = byId.get(meta.requestId) ?? []
    const first = nonce === null ? undefined : firstOf(accepted, byId, one)
    if (rows.length === 0 && first === undefined)
      problem('nothing accepted is lost', `${meta.requestId} of ${one.record.seq}`)
    if (rows.length > 0 && first?.meta) {
      const apart = Math.abs(first.meta.acceptedAt - meta.acceptedAt)
      if (apart <= NONCE_WINDOW_MS - SKEW_MS_MAX)
        problem('a repeated nonce adds no event', `${meta.requestId} repeats ${first.meta.requestId} after ${apart} ms`)
    }
  }
}

function checkDead(
  { log, exempt, problem }: Facts,
  accepted: readonly Accepted[],
  byId: ReadonlyMap<string, readonly Row[]>,
): void {
  const letters = log.side('dead', 0).archive.map(({ bytes }) => unpack(bytes) as Record<string, unknown>)
  for (const { meta, partition, record } of accepted) {
    const event = meta === null ? null : byId.get(meta.requestId)?.[0]?.event
    if (meta !== null && (event === undefined || event === null || event.evaluationError === null)) continue
    const letter = letters.find(
      (l) => l.topic === 'identifications' && l.partition === partition && l.seq === record.seq,
    )
    if (letter === undefined && exempt.isRecord(record)) continue
    if (letter === undefined) problem('what cannot be decided has a dead letter', `${partition}/${record.seq}`)
    else if (Buffer.compare(letter.bytes as Uint8Array, record.bytes) !== 0)
      problem('what cannot be decided has a dead letter', `${partition}/${record.seq} has other bytes`)
  }
}

/** Without its position a partition must not be decided on: its owners stop and say so. */
function checkLost({ lostPartition, processes, problem }: Facts): void {
  if (lostPartition === null) return
  for (const { host, missingPositions } of processes) {
    if (host.alive() && !missingPositions.has(lostPartition))
      problem('a missing position stops the owner', `${host.name} goes on with ${lostPartition}`)
  }
}

async function checkVisitors(facts: Facts, rows: readonly Row[]): Promise<void> {
  const { raw, workspace, exempt, decided: all, problem } = facts
  const parted = new Set(
    all.splits().flatMap(({ split: { env, visitorId, to } }) => [visitorId, to].map((id) => `${env}/${id}`)),
  )
  // What ClickHouse has was moved there, and what it refused never was.
  const ownerOf = ({ event, kept }: Row) => {
    const item = { ...event, visitorId: holderOf(event) }
    return kept === 'stored' ? visitorOf(item) : all.ownerOf(item)
  }
  const visitors = groupBy(rows, ownerOf)
  for (const [id, those] of visitors) {
    if (exempt.isVisitor(id)) continue
    const isParted = parted.has(id)
    const fresh = those.filter(({ event }) => !event.visitorFound)
    if (fresh.length !== 1 && !isParted)
      problem('a visitor is new exactly once', `${id}: ${fresh.length} of ${those.length}`)
    const decided = those.filter(({ event }) => event.evaluationError === null).sort((a, b) => a.seq - b.seq)
    if (decided.length === 0) continue
    decided.forEach(({ event, seq }, i) => {
      const { totalVisits } = event.identity.recorded ?? event.visitor
      if (totalVisits !== i + 1 && !isParted)
        problem('visits are counted one by one', `${id}: ${totalVisits} at ${seq}, not ${i + 1}`)
    })
    const partition = decided[0]?.partition ?? 0
    const [stored] = await raw.kv.get<Uint8Array>(partitionScope(partition), [['visitor', `${workspace.id}/${id}`]])
    const total = stored ? unpackVisitor(unpackHeldVisitor(stored.value).state).totalVisits : 0
    // One that was erased has left no count: see the checks of erasures.
    if (total !== decided.length && decided[0]?.kept !== 'erased')
      problem('the checkpoint counts every visit', `${id}: ${total}, not ${decided.length}`)
  }
}

async function checkStats({ raw, workspace, problem }: Facts, rows: readonly Row[]): Promise<void> {
  const matched = new Map<string, number>()
  const count = (key: string) => matched.set(key, (matched.get(key) ?? 0) + 1)
  for (const { event } of rows) {
    for (const { id } of event.matchedRules) count(`${event.env} ${id} live`)
    for (const { id } of event.monitorMatches) count(`${event.env} ${id} monitor`)
  }
  const rules = new Set([...matched.keys()].map((key) => key.split(' ').slice(0, 2).join(' ')))
  for (const rule of rules) {
    const [env, id] = rule.split(' ') as ['live' | 'test', string]
    const { matchCount, monitorMatchCount } = await readRuleStats(raw.kv, PARTITIONS, workspace.id, env, id)
    const [live, monitor] = [matched.get(`${rule} live`) ?? 0, matched.get(`${rule} monitor`) ?? 0]
    if (matchCount !== live || monitorMatchCount !== monitor)
      problem('rule counters count every event', `${rule}: ${matchCount}+${monitorMatchCount}, not ${live}+${monitor}`)
  }
}

async function checkAnswers(
  { raw, answers, workspace, exempt, decided, problem }: Facts,
  accepted: readonly Accepted[],
  byId: ReadonlyMap<string, readonly Row[]>,
): Promise<void> {
  const moved = new Set(decided.splits().flatMap(({ split }) => split.requestIds))
  const known = new Map(accepted.flatMap((one) => (one.meta === null ? [] : [[one.meta.requestId, one] as const])))
  const { clickhouse, log, kv } = raw
  const nowhere = { sight: async () => ({ place: null, pending: false, original: null, complete: true }) }
  const ageless = { clock: { now: () => 0 }, retentionDays: () => 1 }
  const reads = openEventReads({ clickhouse, log, kv, partitions: PARTITIONS, ...nowhere, ...ageless })
  for (const { ask, status, body, requestId, replayed } of answers) {
    const what = `#${ask.number} ${requestId ?? ''}`
    if (status === 409 || status === 503) continue
    if (status !== 200 && status !== 202) {
      problem('a client gets an answer it can expect', `${what}: ${status} ${body}`)
      continue
    }
    const one = known.get(requestId ?? '')
    if (one === undefined) {
      problem('what is answered was accepted', `${what}: ${status}`)
      continue
    }
    if (status === 202 || exempt.isRequest(requestId ?? '')) continue
    const row = byId.get(requestId ?? '')?.[0]
    if (row === undefined) {
      problem('an answer is not contradicted later', `${what}: no event`)
      continue
    }
    if (replayed && one.nonce !== `${ask.env}/${ask.nonce}`) problem('a replay is of its nonce', what)
    const kind = replayed ? kindOf(body) : ask.keyKind
    const told = asAnswered(row.event, decided, body)
    if (!moved.has(requestId ?? '') && presentResult(told, workspace, kind) !== body)
      problem('an answer is not contradicted later', `${what}: ${body}`)
    if (row.kept === 'stored' && (await reads.byId(workspace.id, ask.env, requestId ?? '')) === null)
      problem('an answer is not contradicted later', `${what}: not found`)
  }
}

/**
 * Once a change is said to be in force, nothing that comes later is decided without it. A record came when it was durable, and
 * where it is decided as soon as it is submitted, when it was accepted.
 */
function checkRevisions(
  { changes, sharded, problem }: Facts,
  accepted: readonly Accepted[],
  byId: ReadonlyMap<string, readonly Row[]>,
): void {
  for (const { draft, outcome, propagated, at } of changes) {
    if (!propagated || outcome?.ok !== true || outcome.revision === undefined) continue
    for (const { meta, record } of accepted) {
      if (meta === null || meta.env !== draft.env || record.at <= at) continue
      if (sharded && meta.acceptedAt <= EPOCH_MS + at + SKEW_MS_MAX) continue
      const event = byId.get(meta.requestId)?.[0]?.event
      if (event !== undefined && event.evaluationError === null && event.rulesRevision < outcome.revision)
        problem(
          'a rule change said to be in force is',
          `${meta.requestId}: ${event.rulesRevision} < ${outcome.revision}`,
        )
    }
  }
}
