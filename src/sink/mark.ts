// What a sink leaves in the kv before it inserts: the ranges of the partitions that make one insert, in the scope of each of them,
// so that whoever comes next repeats exactly that insert. Such a group is marked and finished as one: in all of its partitions at once or
// in none.

import { hash } from 'node:crypto'
import type { Commit, Kv, PositionGuard, Version } from '../kv/kv.ts'
import { must } from '../lib/must.ts'
import type { Seq } from '../log/log.ts'
import { partitionScope, SINK_MARK, SINK_POSITION, SINK_REPEATED } from '../records/partitions.ts'

export interface LogRange {
  readonly partition: number
  readonly after: Seq
  readonly upTo: Seq
}
/** In the order of the partitions. */
export type RangeGroup = readonly LogRange[]

interface Mark {
  readonly after: Seq
  readonly upTo: Seq
  /** All ranges of the insert, this one among them; absent where there is no other. */
  readonly group?: readonly (readonly [partition: number, after: Seq, upTo: Seq])[]
}

/** How far a partition is sunk, as of one moment. */
export interface MarkedPlace {
  readonly partition: number
  readonly position: Seq
  readonly markVersion: Version | null
  readonly repeatedVersion: Version | null
  /** What was marked behind the position and is not finished. */
  readonly pending: RangeGroup | null
}

export async function readPlace(kv: Pick<Kv, 'get' | 'position'>, partition: number): Promise<MarkedPlace> {
  const scope = partitionScope(partition)
  const position = await kv.position(scope, SINK_POSITION)
  if (position === null) throw new Error(`the sink of partition ${partition} has no position in the kv: run rebuild`)
  const [marked, repeated] = await kv.get<Mark>(scope, [SINK_MARK, SINK_REPEATED])
  return {
    partition,
    position,
    markVersion: marked?.version ?? null,
    repeatedVersion: repeated?.version ?? null,
    pending: marked?.value.after === position ? groupOf(partition, marked.value) : null,
  }
}

function groupOf(partition: number, { after, upTo, group = [[partition, after, upTo]] }: Mark): RangeGroup {
  return group.map(([partition, after, upTo]) => ({ partition, after, upTo }))
}

/** What the insert of a group is known by. */
export function tokenOf(deployment: string, group: RangeGroup): string {
  const ranges = group.map(({ partition, after, upTo }) => `${partition}/${after}-${upTo}`)
  if (ranges.length === 1) return `${deployment}/${ranges[0]}`
  return `${deployment}/group/${hash('sha256', ranges.join(' '), 'hex')}`
}

type Commits = Pick<Kv, 'commit' | 'commitTogether'>

/** False when another sink was first. A mark that came and went since a place was read leaves no trace but in the position. */
export async function markGroup(
  kv: Commits,
  group: RangeGroup,
  places: ReadonlyMap<number, MarkedPlace>,
): Promise<boolean> {
  const all = group.map(({ partition, after, upTo }) => [partition, after, upTo] as const)
  const commits = group.map(({ partition, after, upTo }): Commit => {
    const mark: Mark = { after, upTo, ...(all.length > 1 ? { group: all } : {}) }
    const check = [[SINK_MARK, places.get(partition)?.markVersion ?? null]] as const
    return { scope: partitionScope(partition), guard: unmoved(after), check, put: [{ key: SINK_MARK, value: mark }] }
  })
  return commitAll(kv, commits)
}

/**
 * False when another sink has finished the group. In one of its partitions, which is enough: who marked the group asks in each, and
 * finishes all of them or none.
 */
export async function noteRepeated(kv: Commits, [first]: RangeGroup): Promise<boolean> {
  const { partition, after, upTo } = must(first)
  const put = [{ key: SINK_REPEATED, value: { after, upTo } }]
  return commitAll(kv, [{ scope: partitionScope(partition), guard: unmoved(after), put }])
}

const unmoved = (position: Seq): PositionGuard => ({ source: SINK_POSITION, expect: position, next: position })

export async function commitAll(kv: Commits, commits: readonly Commit[]): Promise<boolean> {
  if (commits.length === 1) return (await kv.commit(commits))[0] === true
  if (kv.commitTogether === undefined) throw new RangeError('this kv cannot decide commits together')
  return kv.commitTogether(commits)
}
