// What a front log and its writer say to each other over their line.

import type { Seq, Topic } from './log.ts'

/** Where a partition stands. */
export interface PartitionHead {
  readonly topic: Topic
  readonly partition: number
  readonly last: Seq
}

/** Everything one turn appended. The writer takes all of it or none. */
export interface Tick {
  /** Ticks of another generation than the writer's build on what was taken back. */
  readonly generation: number
  readonly number: number
  /** Another tick is about to follow that may share its flush. */
  readonly patient: boolean
  /** Of each entry: topic, partition, the seq it follows, where it begins in the ring, bytes. */
  readonly layout: readonly number[]
}
export const LAYOUT_FIELDS = 5

/** What was submitted and not yet told to be durable is taken back; the partitions stand at `places`, or where they were known to be. */
export interface TakenBack {
  readonly generation: number
  readonly places: readonly PartitionHead[]
  readonly failure: { readonly full: boolean; readonly message: string }
}

/** Names of calls and casts. */
export const FRONT = {
  ring: 'log.ring',
  tick: 'log.tick',
  durable: 'log.durable',
  takenBack: 'log.takenBack',
  append: 'log.append',
  read: 'log.read',
  at: 'log.at',
  last: 'log.last',
  trim: 'log.trim',
  usage: 'log.usage',
} as const
