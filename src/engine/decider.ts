// Where partitions are decided: the operations the engine asks for, each done in turns by the thread that has the partition, or by
// the protocol's model.

import type { RandomBytes } from '../domain/ids.ts'
import { createAddresses, type IpData } from '../ipintel/addresses.ts'
import { must } from '../lib/must.ts'
import type { LogRecord } from '../log/log.ts'
import { type CompiledRuleset, createRulesetCache, type Snapshot } from '../rules/snapshot.ts'
import type { Asking, Load } from './asking.ts'
import type { Checkpoint, DecidedBatch, DecisionReply } from './decided.ts'
import { createListViews, type ListNews } from './list-views.ts'
import { createPartition, type Partition } from './partition.ts'
import { type CounterNews, createBoard } from './velocity/board.ts'

/** What a place has not been told since it started. */
export interface News {
  readonly snapshots: readonly Snapshot[]
  readonly lists: readonly ListNews[]
  /** New data about addresses, in place of all that was told before; null or absent: nothing new. */
  readonly ipData?: IpData | null
  /** What other partitions counted since this place was last told; null or absent: nothing. */
  readonly counters?: CounterNews | null
}

/** Has the state of partitions. */
export interface PartitionHost {
  take(news: News): void
  open(partition: number, nonces: readonly Uint8Array[]): void
  /** Throws unless it is open here: a place that was replaced knows nothing, and deciding without the state would be wrong. */
  of(partition: number): Partition
  forget(partition: number): void
}

export interface PartitionHostNeeds {
  readonly partitions: number
  readonly random: RandomBytes
  /** Milliseconds that never jump. */
  readonly monotonic: () => number
  readonly visitorsMax: number
  /** As `PartitionNeeds` has it. */
  readonly healsPerSecondMax?: number
  /** Milliseconds since the epoch: entries of lists expire by it. */
  readonly now: () => number
  /** Told what is about to be opened or decided, so that whoever ends a thread that hangs knows at what; 0: nothing any more. */
  readonly onRecord?: (partition: number, seq: number) => void
}

/** Compiled rulesets kept per thread; the least recently used is compiled again when it is needed. */
const RULESETS_MAX = 2_000
/** Addresses and accounts are counted for all partitions of the thread at once, visitors for each. */
const KEYS_PER_VISITOR = 4

export function createPartitionHost(needs: PartitionHostNeeds): PartitionHost {
  const views = createListViews(needs.now)
  const rulesets = createRulesetCache(RULESETS_MAX, { member: views.member })
  const snapshots = new Map<string, Snapshot>()
  const owned = new Map<number, Partition>()
  const addresses = createAddresses()
  const board = createBoard(needs.partitions, KEYS_PER_VISITOR * needs.visitorsMax)

  function ruleset(workspace: string, env: string): CompiledRuleset | null {
    const snapshot = snapshots.get(`${workspace}/${env}`)
    return snapshot === undefined ? null : rulesets.open(snapshot)
  }

  return {
    take(news) {
      for (const snapshot of news.snapshots) snapshots.set(`${snapshot.workspace}/${snapshot.env}`, snapshot)
      views.take(news.lists)
      if (news.ipData) addresses.take(news.ipData)
      if (news.counters) board.take(news.counters)
    },
    open(partition, nonces) {
      board.open(partition)
      const onRecord = (seq: number) => needs.onRecord?.(partition, seq)
      const fresh = createPartition({ ...needs, partition, ruleset, locate: addresses.lookup, board, onRecord })
      for (const chunk of nonces) fresh.restoreNonces(chunk)
      owned.set(partition, fresh)
    },
    of: (partition) => must(owned.get(partition), `partition ${partition} to be open here`),
    forget(partition) {
      owned.delete(partition)
      board.forget(partition)
    },
  }
}

/** What a turn is part of, and of which partition. The turns of a partition are asked for one at a time, in order. */
export interface Task {
  readonly partition: number
  readonly do: 'open' | 'decide' | 'adopt' | 'checkpoint' | 'forget'
}

/** Takes a turn at the place that has the partition; rejects when that place died, whose partitions' state is then gone. */
export type Perform = <T>(task: Task, turn: (place: PartitionHost) => T) => Promise<T>

export interface Decider {
  decide(
    partition: number,
    batch: readonly LogRecord[],
    poisoned: readonly number[],
    load: Load,
  ): Promise<{ readonly decided: DecidedBatch; readonly dirtyCount: number; readonly isRepeating: boolean }>
  adopt(
    partition: number,
    records: readonly Uint8Array[],
    load: Load,
  ): Promise<{ readonly replies: readonly DecisionReply[]; readonly dirtyCount: number }>
  /** Starts afresh with a partition; everything else about it needs this first. */
  open(partition: number, nonces: readonly Uint8Array[]): Promise<void>
  checkpoint(partition: number): Promise<Checkpoint>
  /** Drops all state of a partition: it is not ours any more, or not to be trusted. */
  forget(partition: number): Promise<void>
}

function* decideAndCount(p: Partition, batch: readonly LogRecord[], poisoned: readonly number[]) {
  const decided = yield* p.decide(batch, new Set(poisoned))
  return { decided, dirtyCount: p.dirtyCount(), isRepeating: p.isRepeating() }
}

function* adoptAndCount(p: Partition, records: readonly Uint8Array[]) {
  const replies = yield* p.adopt(records)
  return { replies, dirtyCount: p.dirtyCount() }
}

export function createDecider(perform: Perform): Decider {
  /** Whatever asks does so between its turns, so that the place has others meanwhile. */
  async function inTurns<T>(task: Task, begin: (p: Partition) => Asking<T>, load: Load): Promise<T> {
    const { p, asking, first } = await perform(task, (place) => {
      const p = place.of(task.partition)
      const asking = begin(p)
      return { p, asking, first: asking.next([]) }
    })
    let turn = first
    while (!turn.done) {
      const loaded = await load(turn.value)
      turn = await perform(task, (place) => {
        if (place.of(task.partition) !== p) throw new Error(`partition ${task.partition} was opened anew meanwhile`)
        return asking.next(loaded)
      })
    }
    return turn.value
  }

  return {
    decide: (partition, batch, poisoned, load) =>
      inTurns({ partition, do: 'decide' }, (p) => decideAndCount(p, batch, poisoned), load),
    adopt: (partition, records, load) => inTurns({ partition, do: 'adopt' }, (p) => adoptAndCount(p, records), load),
    open: (partition, nonces) => perform({ partition, do: 'open' }, (place) => place.open(partition, nonces)),
    checkpoint: (partition) => perform({ partition, do: 'checkpoint' }, (place) => place.of(partition).checkpoint()),
    forget: (partition) => perform({ partition, do: 'forget' }, (place) => place.forget(partition)),
  }
}
