// Where partitions are decided: the operations the engine asks for, performed by one function in the
// thread that asks and in the protocol's model.

import type { RandomBytes } from '../domain/ids.ts'
import { createAddresses, type IpData } from '../ipintel/addresses.ts'
import { must } from '../lib/must.ts'
import type { LogRecord } from '../log/log.ts'
import { type CompiledRuleset, createRulesetCache, type Snapshot } from '../rules/snapshot.ts'
import type { Checkpoint, Decided, Reply } from './decided.ts'
import type { Frame } from './frames.ts'
import { createListViews, type ListNews } from './list-views.ts'
import { createPartition, type Partition } from './partition.ts'
import type { Loaded, Wanted } from './state.ts'
import { type CounterNews, createBoard } from './velocity/board.ts'

/** One piece of work on one partition. Those of a partition are asked for one at a time, in order. */
export type Task = { readonly partition: number } & StepDetail

/** A task as a place performs it: with the rulesets and lists it has not been told about since it started. */
export type Step = Task & {
  readonly snapshots: readonly Snapshot[]
  readonly lists: readonly ListNews[]
  /** New data about addresses, in place of all that was told before. */
  readonly ipData?: IpData
  /** What other partitions counted since this place was last told. */
  readonly counters?: CounterNews
}

type StepDetail =
  | { readonly do: 'begin'; readonly batch: readonly Frame[]; readonly poisoned: readonly number[] }
  | { readonly do: 'provide'; readonly loaded: readonly Loaded[]; readonly poisoned: readonly number[] }
  | { readonly do: 'adopt'; readonly records: readonly Uint8Array[] }
  | { readonly do: 'provideAdopt'; readonly loaded: readonly Loaded[] }
  | { readonly do: 'open'; readonly nonces: readonly Uint8Array[] }
  | { readonly do: 'checkpoint' }
  | { readonly do: 'forget' }

export interface StepResult {
  /** What must be provided before the step can be done. */
  readonly wanted?: readonly Wanted[]
  readonly decided?: Decided
  /** How many entries the next checkpoint would write. */
  readonly dirtyCount?: number
  readonly replies?: readonly Reply[]
  readonly checkpoint?: Checkpoint
}

/** What became of a step of several that were asked for together: the others are performed whether it fails or not. */
export type Performed = StepResult | { readonly failed: unknown }

export interface StepperNeeds {
  readonly partitions: number
  readonly random: RandomBytes
  /** Milliseconds that never jump. */
  readonly monotonic: () => number
  readonly visitorsMax: number
  /** Milliseconds since the epoch: entries of lists expire by it. */
  readonly now: () => number
  /** Told what is about to be opened or decided, so that whoever ends a thread that hangs knows at what; 0: nothing any more. */
  readonly onRecord?: (partition: number, seq: number) => void
}

/** Compiled rulesets kept per thread; the least recently used is compiled again when it is needed. */
const RULESETS_MAX = 2_000
/** Addresses and accounts are counted for all partitions of the thread at once, visitors for each. */
const KEYS_PER_VISITOR = 4

/** Performs steps; holds the state of every partition it has been asked about. */
export function createStepper(needs: StepperNeeds): (step: Step) => StepResult {
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

  function open(partition: number, nonces: readonly Uint8Array[]): void {
    board.open(partition)
    const onRecord = (seq: number) => needs.onRecord?.(partition, seq)
    const fresh = createPartition({ ...needs, partition, ruleset, locate: addresses.lookup, board, onRecord })
    for (const chunk of nonces) fresh.restoreNonces(chunk)
    owned.set(partition, fresh)
  }

  function decideOrAsk(p: Partition, wanted: readonly Wanted[], poisoned: readonly number[]): StepResult {
    if (wanted.length > 0) return { wanted }
    return { decided: p.decide(new Set(poisoned)), dirtyCount: p.dirtyCount() }
  }

  function adoptOrAsk(p: Partition, wanted: readonly Wanted[]): StepResult {
    return wanted.length > 0 ? { wanted } : { replies: p.adopt() }
  }

  return (step) => {
    for (const snapshot of step.snapshots) snapshots.set(`${snapshot.workspace}/${snapshot.env}`, snapshot)
    views.take(step.lists)
    if (step.ipData !== undefined) addresses.take(step.ipData)
    if (step.counters !== undefined) board.take(step.counters)
    if (step.do === 'forget') {
      owned.delete(step.partition)
      board.forget(step.partition)
      return {}
    }
    if (step.do === 'open') {
      open(step.partition, step.nonces)
      return {}
    }
    // A thread that was replaced knows nothing: deciding without the state would be wrong, so it is an error.
    const p = must(owned.get(step.partition), `partition ${step.partition} to be open here`)
    switch (step.do) {
      case 'begin':
        return decideOrAsk(p, p.begin(step.batch), step.poisoned)
      case 'provide':
        return decideOrAsk(p, p.provide(step.loaded), step.poisoned)
      case 'adopt':
        return adoptOrAsk(p, p.beginAdopt(step.records))
      case 'provideAdopt':
        return adoptOrAsk(p, p.provideAdopt(step.loaded))
      case 'checkpoint':
        return { checkpoint: p.checkpoint() }
    }
  }
}

/** Performs a step somewhere; rejects when that place died, whose partitions' state is then gone. */
export type Perform = (task: Task) => Promise<StepResult>

export interface Decider {
  decide(
    partition: number,
    batch: readonly LogRecord[],
    poisoned: readonly number[],
    load: Load,
  ): Promise<{ readonly decided: Decided; readonly dirtyCount: number }>
  adopt(partition: number, records: readonly Uint8Array[], load: Load): Promise<readonly Reply[]>
  /** Starts afresh with a partition; everything else about it needs this first. */
  open(partition: number, nonces: readonly Uint8Array[]): Promise<void>
  checkpoint(partition: number): Promise<Checkpoint>
  /** Drops all state of a partition: it is not ours any more, or not to be trusted. */
  forget(partition: number): Promise<void>
}

/** Reads entries of a partition from the kv: one answer for each that was asked, null for the absent. */
export type Load = (wanted: readonly Wanted[]) => Promise<readonly Loaded[]>

export function createDecider(perform: Perform): Decider {
  const run = (partition: number, step: StepDetail) => perform({ ...step, partition })
  return {
    async decide(partition, batch, poisoned, load) {
      let result = await run(partition, { do: 'begin', batch, poisoned })
      while (result.wanted !== undefined) {
        result = await run(partition, { do: 'provide', loaded: await load(result.wanted), poisoned })
      }
      return { decided: must(result.decided, 'decisions'), dirtyCount: must(result.dirtyCount, 'a count') }
    },
    async adopt(partition, records, load) {
      let result = await run(partition, { do: 'adopt', records })
      while (result.wanted !== undefined) {
        result = await run(partition, { do: 'provideAdopt', loaded: await load(result.wanted) })
      }
      return must(result.replies, 'replies')
    },
    async open(partition, nonces) {
      await run(partition, { do: 'open', nonces })
    },
    async checkpoint(partition) {
      return must((await run(partition, { do: 'checkpoint' })).checkpoint, 'a checkpoint')
    },
    async forget(partition) {
      await run(partition, { do: 'forget' })
    },
  }
}
