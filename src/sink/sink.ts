// The sink: decided events → ClickHouse, in contiguous ranges, each exactly once. What a process sinks goes in
// one insert where the kv can mark several partitions at once. The ranges are marked before the insert and the mark is what a successor
// repeats; the token makes the repetition harmless, and rows that are missing in spite of it are looked for.

import { BadRow, type ClickHouse } from '../clickhouse/clickhouse.ts'
import { annotationOf, type DecidedErasure, erasureOf, splitOf } from '../events/record.ts'
import { COLUMNS, EVENTS_TABLE } from '../events/row.ts'
import type { Commit, Kv, Version } from '../kv/kv.ts'
import { Conflict } from '../lib/failures.ts'
import type { Seq } from '../log/log.ts'
import { annotatedKeys } from '../records/annotations.ts'
import { type ErasureOf, executedPuts } from '../records/erasure-progress.ts'
import { erasedId, executedKeys } from '../records/erasures.ts'
import { partitionScope, SINK_MARK, SINK_POSITION, SINK_REPEATED } from '../records/partitions.ts'
import { annotateRows } from './annotate.ts'
import { eraseRows } from './erase.ts'
import { type GatherNeeds, gather, readLogRange, type Said } from './gather.ts'
import { type Horizons, openHorizons } from './horizon.ts'
import { insertRows } from './insert.ts'
import { insertMissing, missingOf } from './lost.ts'
import {
  commitAll,
  type LogRange,
  type MarkedPlace,
  markGroup,
  noteRepeated,
  type RangeGroup,
  readPlace,
  tokenOf,
} from './mark.ts'
import { moveRows } from './move.ts'
import { openRowMemory, type RowMemory } from './rows.ts'
import { type Hold, openShared } from './shared.ts'

export interface SinkNeeds extends GatherNeeds {
  readonly kv: Pick<Kv, 'get' | 'position' | 'commit' | 'commitTogether'>
  readonly clickhouse: Pick<ClickHouse, 'insert' | 'query' | 'patch' | 'tokenFirst'>
  /** Makes insert tokens of this deployment unlike those of any other on the same ClickHouse. */
  readonly deployment: string
  readonly report: SinkReport
}

export interface SinkReport {
  /** Everything up to `seq` of `events/partition` is in ClickHouse. */
  sunk(partition: number, seq: Seq, rows: number): void
  quarantined(partition: number, reason: string): void
  failed(partition: number, error: unknown): void
  /** One insert, of all the partitions that share it. */
  inserted(rows: number, seconds: number): void
}

/** A range with what it says, and the note of a repetition as it was when the range was begun. */
interface Part extends LogRange, Said {
  readonly repeatedVersion: Version | null
}

const RETRY_MS = 500
/** A mark read longer ago than this is read again before the insert: its token may have left ClickHouse's window since. */
const MARK_AGE_MS_MAX = 30_000
/** Each mark of a group names all of its ranges. */
const GROUP_PARTITIONS_MAX = 32

/** Sinks partitions until their signals abort; failures are reported and tried again. */
export function openSink(needs: SinkNeeds): Hold {
  const loops = new Map<number, Hold>()
  const horizons = openHorizons(needs.log)
  /** Its steps follow each other, and the memory of one is the next one's. */
  function openLoop(): Hold {
    const memory = openRowMemory()
    return openShared((partitions, signal) => sinkNext(needs, horizons, memory, partitions, signal))
  }
  const partitionsMax = needs.kv.commitTogether === undefined ? 1 : GROUP_PARTITIONS_MAX
  return (partition, signal) => {
    horizons.begin(partition)
    const name = Math.floor(partition / partitionsMax)
    const loop = loops.get(name) ?? openLoop()
    loops.set(name, loop)
    return loop(partition, signal)
  }
}

/** What was marked and is not finished, and then what is new of the others. */
async function sinkNext(
  needs: SinkNeeds,
  horizons: Horizons,
  memory: RowMemory,
  partitions: readonly number[],
  signal: AbortSignal,
): Promise<void> {
  const { kv, clock, report } = needs
  let hasFailed = false
  const failed = (partition: number, error: unknown) => {
    hasFailed = true
    if (!(error instanceof Conflict)) report.failed(partition, error)
  }
  async function attempt<T>(of: readonly number[], work: () => Promise<T>): Promise<T[]> {
    try {
      return [await work()]
    } catch (error) {
      for (const partition of of) failed(partition, error)
      return []
    }
  }
  const readAt = clock.monotonic()
  const places = (
    await Promise.all(partitions.map((partition) => attempt([partition], () => readPlace(kv, partition))))
  ).flat()
  const begun = new Map(
    places.flatMap(({ pending }) => (pending ? [[tokenOf(needs.deployment, pending), pending]] : [])),
  )
  await Promise.all(
    [...begun.values()].map((group) =>
      attempt(
        group.map(({ partition }) => partition).filter((partition) => partitions.includes(partition)),
        () => repeat(needs, group, readAt),
      ),
    ),
  )
  const free = places.filter(({ pending }) => pending === null)
  if (free.length > 0 && !signal.aborted) {
    await attempt(
      free.map(({ partition }) => partition),
      () => sinkNew(needs, horizons, memory, free, failed, signal),
    )
  }
  if (hasFailed) await clock.sleep(RETRY_MS, signal)
}

async function sinkNew(
  needs: SinkNeeds,
  horizons: Horizons,
  memory: RowMemory,
  places: readonly MarkedPlace[],
  failed: (partition: number, error: unknown) => void,
  signal: AbortSignal,
): Promise<void> {
  const gathered = await gather(needs, memory, places, failed, signal)
  const parts = places.flatMap(({ partition, position, repeatedVersion }): Part[] => {
    const said = gathered.get(partition)
    return said === undefined ? [] : [{ ...said, partition, after: position, repeatedVersion }]
  })
  if (parts.length === 0) return
  const byPartition = new Map(places.map((place) => [place.partition, place]))
  if (!(await markGroup(needs.kv, parts, byPartition))) throw new Conflict('another sink marked first')
  const doubts = await Promise.all(parts.map(async ({ partition, after }) => after < (await horizons.of(partition))))
  for (const { partition, upTo } of parts) horizons.reach(partition, upTo)
  try {
    await sinkParts(needs, memory, parts, 'new', doubts.includes(true))
  } catch (error) {
    // A request that is given up may still be under way with the rows.
    memory.abandon()
    throw error
  }
}

async function repeat(needs: SinkNeeds, group: RangeGroup, readAt: number): Promise<void> {
  const { log, kv, clock, clickhouse } = needs
  const parts = await Promise.all(
    group.map(async (range) => ({ ...(await readLogRange(log, range)), ...range, repeatedVersion: null })),
  )
  if (clock.monotonic() - readAt > MARK_AGE_MS_MAX) throw new Conflict('the mark is too old to be trusted')
  // Who marked the group may not have inserted it yet, and would not look for the rows that a failure of ours leaves out.
  if (clickhouse.tokenFirst && !(await noteRepeated(kv, group))) throw new Conflict('another sink finished first')
  await sinkParts(needs, openRowMemory(), parts, 'repeated', clickhouse.tokenFirst)
}

/** What the commands of a part change in ClickHouse, one after the other, and how the part is finished. */
async function settle(needs: SinkNeeds, part: Part, as: 'new' | 'repeated', isLookedFor: boolean) {
  const { clickhouse, clock, deployment } = needs
  const { partition, after, upTo, commands, repeatedVersion } = part
  const erasures: (DecidedErasure & ErasureOf)[] = []
  for (const bytes of commands) {
    const erasure = erasureOf(bytes)
    const split = erasure === null ? splitOf(bytes) : null
    if (erasure !== null) {
      await eraseRows(clickhouse, erasure, partition, deployment, isLookedFor)
      const { workspace, env, visitorId } = erasure
      erasures.push({ ...erasure, erased: erasedId(workspace, env, visitorId) })
    }
    if (split !== null) await moveRows(clickhouse, split)
  }
  const said = commands.flatMap((bytes) => annotationOf(bytes) ?? [])
  const commit: Commit = {
    scope: partitionScope(partition),
    guard: { source: SINK_POSITION, expect: after, next: upTo },
    // Only who looked for the rows can tell that they are there once somebody else has inserted under the same token.
    check: as === 'repeated' ? [] : [[SINK_REPEATED, repeatedVersion]],
    put: executedPuts(erasures, { at: clock.now(), seq: upTo }),
    drop: [SINK_MARK, ...executedKeys(erasures), ...annotatedKeys(said)],
  }
  return { said, commit }
}

async function sinkParts(
  needs: SinkNeeds,
  memory: Pick<RowMemory, 'join'>,
  parts: readonly Part[],
  as: 'new' | 'repeated',
  isLookedFor: boolean,
): Promise<void> {
  const { kv, clickhouse, report } = needs
  const from = needs.clock.monotonic()
  const rows = await insertParts(needs, memory, parts, isLookedFor)
  const inserted = rows.reduce((sum, count) => sum + count, 0)
  if (inserted > 0) report.inserted(inserted, (needs.clock.monotonic() - from) / 1_000)
  const settled = await Promise.all(parts.map((part) => settle(needs, part, as, isLookedFor)))
  await annotateRows(
    clickhouse,
    settled.flatMap(({ said }) => said),
  )
  const commits = settled.map(({ commit }) => commit)
  if (!(await commitAll(kv, commits))) throw new Conflict('another sink finished first')
  for (const [at, { partition, upTo }] of parts.entries()) report.sunk(partition, upTo, rows[at] ?? 0)
}

/** Resolves with the rows that were inserted of each part when every line is either in the table or in quarantine. */
async function insertParts(
  needs: SinkNeeds,
  memory: Pick<RowMemory, 'join'>,
  parts: readonly Part[],
  isLookedFor: boolean,
): Promise<number[]> {
  const { clickhouse, clock, report } = needs
  const token = tokenOf(needs.deployment, parts)
  const tokenWithin = ({ partition }: Part) => (parts.length === 1 ? token : `${token}/${partition}`)

  async function insertAlone(): Promise<number[]> {
    const rows: number[] = []
    for (const part of parts) {
      rows.push(
        await insertRows(clickhouse, EVENTS_TABLE, COLUMNS, part.rows, tokenWithin(part), {
          at: clock.now(),
          partition: part.partition,
          onQuarantine: (reason) => report.quarantined(part.partition, reason),
          isLookedFor,
        }),
      )
    }
    return rows
  }

  if (parts.length === 1) return insertAlone()
  try {
    const all = parts.map(({ rows }) => rows)
    const due = isLookedFor ? await Promise.all(all.map((rows) => missingOf(clickhouse, rows))) : all
    const rows = memory.join(due)
    if (rows.length > 0) await clickhouse.insert(EVENTS_TABLE, COLUMNS, rows, { token })
  } catch (error) {
    // The halves of a part are the same whatever the others hold.
    if (error instanceof BadRow) return insertAlone()
    throw error
  }
  if (isLookedFor) {
    for (const part of parts) await insertMissing(clickhouse, part.rows, tokenWithin(part))
  }
  return parts.map(({ rowCount }) => rowCount)
}
