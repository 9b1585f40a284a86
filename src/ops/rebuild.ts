// `fingerpost rebuild`: the kv after it was lost, from what does not forget. Configuration is folded from `changes`; visitors and
// counts come from ClickHouse up to where the log begins, and the engine adopts the decisions that are still in the log.

import type { ClickHouse } from '../clickhouse/clickhouse.ts'
import { ENVS } from '../domain/event.ts'
import { homePartition } from '../domain/ids.ts'
import { itemsOf, reindex } from '../engine/replay.ts'
import { decodeEventsRecord, erasureOf } from '../events/record.ts'
import type { Kv } from '../kv/kv.ts'
import type { Clock } from '../lib/clock.ts'
import { Conflict, Told } from '../lib/failures.ts'
import type { Log, Seq } from '../log/log.ts'
import { type Aliasing, allAliases, allSurvivors } from '../records/aliases.ts'
import { encodeAliasing, encodeSplitting } from '../records/identification.ts'
import {
  DECIDED_TO,
  DISPATCHER_POSITION,
  ENGINE_POSITION,
  partitionScope,
  SINK_POSITION,
} from '../records/partitions.ts'
import { HALF_RESTORED, isHalfRestored } from '../records/restoring.ts'
import { allSplits } from '../records/splits.ts'
import { listWorkspaces } from '../records/workspaces.ts'
import type { Progress } from './progress.ts'
import {
  finishDeployment,
  hasConfiguration,
  isFinished,
  refoldConfiguration,
  refusePartlyLost,
} from './rebuild-config.ts'
import { rebuildErasures, rebuildRuleCounts, rebuildTombstones } from './rebuild-counts.ts'
import { batchesOf, rebuildRecordsOf } from './rebuild-read.ts'
import { newestSunk, rebuildSink } from './rebuild-sink.ts'
import { type Staging, stageVisits } from './rebuild-staging.ts'
import { rebuildVisitors } from './rebuild-visitors.ts'
import { untilStopped } from './until-stopped.ts'

export interface RebuildNeeds {
  readonly log: Log
  readonly kv: Kv
  readonly clickhouse: ClickHouse
  readonly clock: Clock
  readonly partitions: number
  /** As the sink has it. */
  readonly deployment: string
  readonly progress: Progress
  /** Ends the rebuild at its next step, with its reason; default: never. */
  readonly stopping?: AbortSignal
}

export interface Rebuilt {
  /** Commands of `changes` applied; null when the configuration was not lost. */
  readonly commands: number | null
  /** Partitions that had lost their records. */
  readonly partitions: number
  /** Visitors restored from ClickHouse; those of events in the log come back when their partition is taken over. */
  readonly visitors: number
  readonly tombstones: number
  /** Events in the log, for the engine to adopt. */
  readonly adoptable: number
  /** Rows that an interrupted insert had left out. */
  readonly inserted: number
  readonly doubled: number
}

/** Nothing is lost, or a restore has to be begun again: the sentence says which. */
export class NothingToRebuild extends Told {
  override readonly name = 'NothingToRebuild'
}

/**
 * Restores whatever has no positions, and nothing that has: processes may run meanwhile, and an interrupted rebuild is finished
 * by the next. What cannot be restored: what visitors are recognised by besides their token and linked accounts (it comes back
 * with their next visit), and counts of rules over events that retention or an erasure has removed. Throws NothingToRebuild,
 * and Unreadable when `changes` is lost as well.
 */
export async function rebuild(asked: RebuildNeeds): Promise<Rebuilt> {
  const { progress, stopping = new AbortController().signal } = asked
  const needs = untilStopped(asked, stopping)
  const { kv } = needs
  if (await isHalfRestored(kv)) throw new NothingToRebuild(HALF_RESTORED)
  const lost = await lostPartitions(needs)
  const keeps = await hasConfiguration(kv)
  if (lost.length === 0 && keeps && (await isFinished(kv))) {
    throw new NothingToRebuild('nothing is lost: every position exists, and a rebuild never replaces living records')
  }
  if (keeps) await refusePartlyLost(kv)
  const commands = keeps ? null : await refoldConfiguration(needs)
  const sum = { visitors: 0, tombstones: 0, adoptable: 0, inserted: 0, doubled: 0 }
  if (lost.length > 0) {
    await orderAgain(needs, lost)
    const staging = await stageVisits(asked.clickhouse, needs.clock, progress, stopping)
    try {
      for (const [at, partition] of lost.entries()) {
        progress.begin(`partition ${partition} (${at + 1} of ${lost.length})`, null)
        const one = await rebuildPartition(needs, partition, staging)
        for (const name of Object.keys(sum) as (keyof typeof sum)[]) sum[name] += one[name]
        progress.end(`${one.visitors} visitors, ${one.adoptable} events to adopt, ${one.inserted} rows inserted`)
      }
    } finally {
      await staging.drop()
    }
  }
  await finishDeployment(kv, needs.partitions)
  return { commands, partitions: lost.length, ...sum }
}

/**
 * Records rebuilt from events say neither who was merged into whom nor whose tokens were split off: their owners are told once
 * more, behind all they decided.
 */
async function orderAgain({ log, kv, clock, partitions }: RebuildNeeds, lost: readonly number[]): Promise<void> {
  for (const { id: workspace } of await listWorkspaces(kv)) {
    for (const env of ENVS) {
      const order = async (alias: Pick<Aliasing, 'visitorId' | 'survivor'>) => {
        const home = homePartition(alias.visitorId, partitions)
        if (!lost.includes(home)) return
        await log.append('identifications', home, [encodeAliasing({ ...alias, workspace, env, at: clock.now() })])
      }
      for await (const alias of allAliases(kv, workspace, env)) await order(alias)
      for await (const survivor of allSurvivors(kv, workspace, env)) await order({ visitorId: survivor, survivor })
      for await (const { from, seq: _, ...part } of allSplits(kv, workspace, env)) {
        if (from === null || !lost.includes(homePartition(from, partitions))) continue
        const order = { ...part, workspace, env, visitorId: from, parting: null, isRebuilt: true }
        await log.append('identifications', homePartition(from, partitions), [encodeSplitting(order)])
      }
    }
  }
}

async function lostPartitions({ kv, partitions }: RebuildNeeds): Promise<number[]> {
  const lost: number[] = []
  for (let partition = 0; partition < partitions; partition++) {
    const scope = partitionScope(partition)
    const both = [await kv.position(scope, ENGINE_POSITION), await kv.position(scope, SINK_POSITION)]
    if (both.includes(null)) lost.push(partition)
  }
  return lost
}

/** Where the records of a partition that were lost meet those that the log still has. */
interface Seam {
  /** The place before the oldest record of `events`. */
  readonly after: Seq
  readonly last: Seq
  /** The first identification decided by a record of the log. */
  readonly before: number
  /** The last one decided earlier. */
  readonly decidedTo: number
}

async function findSeam({ log, clickhouse }: RebuildNeeds, partition: number): Promise<Seam> {
  const last = await log.last('events', partition)
  for await (const { seq, bytes } of rebuildRecordsOf(log, 'events', partition, 0, last)) {
    const { from } = decodeEventsRecord(bytes)
    return { after: seq - 1, last, before: from, decidedTo: from - 1 }
  }
  // Events are trimmed only after ClickHouse has them and after the identifications they were made of, so all that is left
  // there is undecided, unless it shares a message with something that is: hence the newest that has a row, and not 0.
  const decidedTo = await newestSunk(clickhouse, partition)
  return { after: last, last, before: Number.MAX_SAFE_INTEGER, decidedTo }
}

async function rebuildPartition(needs: RebuildNeeds, partition: number, staging: Staging) {
  const { kv, log, clock } = needs
  const scope = partitionScope(partition)
  const seam = await findSeam(needs, partition)
  const isUnowned = (await kv.position(scope, ENGINE_POSITION)) === null
  const state = isUnowned ? await rebuildState({ ...needs, table: staging.table }, partition, seam) : NO_STATE

  let inserted = 0
  let doubled = 0
  if ((await kv.position(scope, SINK_POSITION)) === null) {
    const sunk = await rebuildSink(needs, partition, seam.after, seam.last)
    ;({ inserted, doubled } = sunk)
    await kv.commit([{ scope, guard: { source: SINK_POSITION, expect: null, next: sunk.position } }])
  }
  // The newest record of a partition stays in the log, and goes only if it is an erasure.
  const newest = await log.at('events', partition, seam.last)
  const isErasure = newest !== null && erasureOf(newest.bytes) !== null
  await rebuildErasures(needs, partition, { at: clock.now(), seq: isErasure ? seam.last : Math.max(0, seam.last - 1) })
  // What the log still has is told once more, under the ids that it had: receivers know those that came before.
  await kv.commit([{ scope, guard: { source: DISPATCHER_POSITION, expect: null, next: seam.after } }])
  if (isUnowned) {
    // Last: now the partition may have an owner again.
    const guard = { source: ENGINE_POSITION, expect: null, next: seam.after }
    const [done] = await kv.commit([{ scope, guard, put: [{ key: DECIDED_TO, value: seam.decidedTo }] }])
    if (done !== true) throw new Conflict(`another rebuild is at work on partition ${partition}`)
  }
  return { ...state, inserted, doubled }
}

const NO_STATE = { visitors: 0, tombstones: 0, adoptable: 0 }

/** What the engine's adoption starts from. */
async function rebuildState(
  needs: RebuildNeeds & { readonly table: string },
  partition: number,
  seam: Seam,
): Promise<typeof NO_STATE> {
  const base = { partition, before: seam.before }
  const tombstones = await rebuildTombstones(needs, partition)
  const visitors = await rebuildVisitors(needs, base)
  await rebuildRuleCounts(needs, base)
  let adoptable = 0
  for await (const batch of batchesOf(needs.log, 'events', partition, seam.after, seam.last)) {
    const items = itemsOf(batch.map(({ bytes }) => bytes))
    await reindex(needs.kv, partition, items)
    adoptable += items.length
    needs.progress.advance(items.length)
  }
  return { visitors, tombstones, adoptable }
}
