// What must hold of erasures when everything is quiet: each command in the log is carried out wholly, whether anybody was
// told or not, and nothing is left of the visitor but its tombstone.

import type { Env } from '../../src/domain/event.ts'
import { hashSeen } from '../../src/engine/velocity/counted.ts'
import { unpackCounters } from '../../src/engine/velocity/counters.ts'
import { hashesIn } from '../../src/engine/velocity/distinct.ts'
import { openEventReads } from '../../src/reads/events.ts'
import { openVisitorReads } from '../../src/reads/visitors.ts'
import { ERASED, erasedId, type Tombstone } from '../../src/records/erasures.ts'
import { decodeErasure } from '../../src/records/identification.ts'
import { partitionScope, VELOCITY } from '../../src/records/partitions.ts'
import { ERASURES_TABLE } from '../../src/sink/erase.ts'
import type { Facts } from './checks.ts'
import { type Decided, visitorOf } from './decided.ts'
import { PARTITIONS } from './deployment.ts'
import { peek, texts } from './model-kv.ts'
import { createWatch } from './watch.ts'

/** The collection of visitors whose rows the sink has still to delete. */
const ERASING = 'erasing'
const ENVS: readonly Env[] = ['live', 'test']

export async function checkErasures(facts: Facts): Promise<void> {
  const { decided, lostPartition } = facts
  checkCommands(facts)
  checkAnswered(facts)
  for (const one of decided.erasures()) {
    if (one.partition === lostPartition || decided.erasureOf(visitorOf(one.erasure)) !== one) continue
    checkLog(facts, one)
    checkKv(facts, one)
    checkClickHouse(facts, one)
  }
  for (let partition = 0; partition < PARTITIONS; partition++) {
    if (partition !== lostPartition) checkLeftovers(facts, partition)
  }
  checkExecuted(facts)
  if (lostPartition === null) await checkReads(facts)
}

/** What was asked of the log is decided, as often as it was asked. */
function checkCommands({ log, decided, lostPartition, problem }: Facts): void {
  for (let partition = 0; partition < PARTITIONS; partition++) {
    if (partition === lostPartition) continue
    const asked = new Map<string, number>()
    for (const { bytes } of log.side('identifications', partition).archive) {
      const id = readErasure(bytes)?.erasureId
      // More than once only of those that were merged into somebody who is erased.
      if (id !== undefined) asked.set(id, (asked.get(id) ?? 0) + 1)
    }
    for (const [id, count] of asked) {
      const times = decided.erasures().filter(({ erasure }) => erasure.erasureId === id).length
      if (times !== count) problem('an erasure is decided once', `${id}: ${times} times for ${count}`)
    }
  }
}

function readErasure(bytes: Uint8Array) {
  try {
    return decodeErasure(bytes)
  } catch {
    return null
  }
}

/** Whoever was told was told the erasure that took effect. */
function checkAnswered({ erased, decided, problem }: Facts): void {
  for (const { erasureId, ...visitor } of erased) {
    const first = decided.erasureOf(visitorOf(visitor))
    if (first?.erasure.erasureId !== erasureId)
      problem('an erasure is answered with its id', `${visitor.visitorId}: ${erasureId}`)
  }
}

/** An erased visitor never comes back: not by its token, not by its looks. */
function checkLog({ decided, problem }: Facts, { erasure, record }: Decided): void {
  for (const { item, record: later } of decided.eventsBy(visitorOf(erasure))) {
    if (later.seq > record.seq)
      problem('an erased visitor never comes back', `${erasure.visitorId} in ${item.requestId}`)
  }
}

/** The records of partitions that name the visitor. */
export function* namesOf(kv: Facts['kv'], visitorId: string): Generator<string> {
  for (const [name, text] of texts(kv, partitionScope(0).slice(0, -1))) if (text.includes(visitorId)) yield name
}

function checkKv({ kv, problem }: Facts, { partition, erasure }: Decided): void {
  const { workspace, env, visitorId, erasureId, at } = erasure
  const scope = partitionScope(partition)
  for (const name of namesOf(kv, visitorId)) problem('no record names an erased visitor', `${visitorId}: ${name}`)
  for (const key of kv.scopes.get(scope)?.collections.get(VELOCITY)?.keys() ?? []) {
    const { latest, earlier } = unpackCounters((peek(kv, scope, [VELOCITY, key]) as [number, Uint8Array])[1])
    if ([latest, earlier].some((stretch) => hashesIn(stretch?.sets[0] ?? []).includes(hashSeen(visitorId))))
      problem('no counter counts an erased visitor', `${visitorId}: ${key}`)
  }
  const tombstone = peek(kv, scope, [ERASED, erasedId(workspace, env, visitorId)]) as Tombstone | undefined
  if (tombstone?.erasureId !== erasureId || tombstone.at !== at)
    problem('an erasure leaves its tombstone', `${visitorId}: ${JSON.stringify(tombstone)}`)
}

function checkClickHouse({ clickhouse, problem }: Facts, { erasure }: Decided): void {
  for (const table of ['events', 'quarantine', ERASURES_TABLE]) {
    for (const { cells } of clickhouse.rows.get(table) ?? [])
      if (JSON.stringify(withoutCandidates(cells)).includes(erasure.visitorId))
        problem('ClickHouse has nothing of an erased visitor', `${table}: ${erasure.visitorId}`)
  }
}

/** Events of others may name a visitor they were compared with: the id leads nowhere, and reads do not show it. */
function withoutCandidates(cells: readonly unknown[]): unknown[] {
  return cells.map((cell) => {
    if (typeof cell !== 'string') return cell
    // The row as it was refused.
    if (cell.startsWith('["')) return withoutCandidates(JSON.parse(cell) as unknown[])
    if (!cell.includes('"x":')) return cell
    const { x, ...rest } = JSON.parse(cell) as Record<string, unknown>
    return rest
  })
}

/** Tombstones are those of the log, and nobody is left out of lists any more. */
function checkLeftovers({ kv, decided, problem }: Facts, partition: number): void {
  const collections = kv.scopes.get(partitionScope(partition))?.collections
  const expected = new Set(
    decided
      .erasures()
      .filter((one) => one.partition === partition)
      .map(({ erasure: { workspace, env, visitorId } }) => erasedId(workspace, env, visitorId)),
  )
  for (const id of collections?.get(ERASED)?.keys() ?? [])
    if (!expected.has(id)) problem('an erasure leaves its tombstone', `${id} is of no erasure`)
  for (const id of collections?.get(ERASING)?.keys() ?? [])
    problem('executed erasures are not announced any more', `${partition}: ${id}`)
}

/** A rebuild is told of each by a row. */
function checkExecuted({ clickhouse, decided, lostPartition, problem }: Facts): void {
  const rows = (clickhouse.rows.get(ERASURES_TABLE) ?? []).map(({ cells }) => String(cells[3]))
  for (const { erasure, partition } of decided.erasures()) {
    const times = rows.filter((id) => id === erasure.erasureId).length
    if (times !== 1 && partition !== lostPartition)
      problem('ClickHouse knows of each erasure once', `${erasure.erasureId}: ${times} times`)
  }
}

/** Reads without anything recent: lists show all that is there, and nothing of those who are erased. */
async function checkReads(facts: Facts): Promise<void> {
  const { raw, clickhouse, erased, workspace, decided, problem } = facts
  const { log, kv } = raw
  const sight = async () => ({ place: null, pending: false, original: null, complete: true })
  const ageless = { clock: { now: () => 0 }, retentionDays: () => 1 }
  const needs = { clickhouse: raw.clickhouse, log, kv, partitions: PARTITIONS, sight, ...ageless }
  const reads = { events: openEventReads(needs), visitors: openVisitorReads(kv, PARTITIONS) }
  const watch = createWatch(facts, decided, () => false, problem)
  for (const one of erased) await watch.onErased(one, reads)
  for (const env of ENVS) {
    const { events } = await reads.events.page(workspace.id, env, {}, 1_000, null)
    const stored = (clickhouse.rows.get('events') ?? []).filter(({ cells }) => cells[1] === env)
    if (events.length !== stored.length)
      problem('a list shows what is there', `${env}: ${events.length} of ${stored.length}`)
  }
}
