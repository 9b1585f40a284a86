// What the owner of partitions works with, and what it reports.

import type { ThreadKv } from '../kv/remote.ts'
import type { Clock } from '../lib/clock.ts'
import type { Log, Seq } from '../log/log.ts'
import type { RuleLog } from '../records/effects.ts'
import type { BatchTimes, DecidedBatch, DecisionReply, Replay } from './decided.ts'
import type { Decider } from './decider.ts'
import type { EffectsNeeds } from './effects.ts'
import type { Freshness } from './freshness.ts'
import type { Recent } from './recent.ts'
import type { CounterFeed } from './velocity/feed.ts'

export interface EngineNeeds {
  readonly log: Log
  readonly kv: ThreadKv
  readonly decider: Decider
  readonly recent: Recent
  readonly clock: Clock
  /** Hands answers to whoever waits; called only when the decisions are durable and can be read back. */
  readonly reply: (replies: readonly DecisionReply[], replays: readonly Replay[]) => void
  /** Reads the ruleset of `<workspace>/<env>` that no hint or poll has told of yet. */
  readonly loadRuleset: (name: string) => Promise<void>
  /** How side effects reach the lists. */
  readonly effects: Omit<EffectsNeeds, 'log' | 'clock'>
  /** Counters of addresses and accounts, which all partitions share. */
  readonly counters: Omit<CounterFeed, 'news' | 'stop'>
  readonly partitions: number
  readonly freshness: Pick<Freshness, 'own'>
  /** How long decisions may wait for their checkpoint while nobody asks for it, milliseconds. */
  readonly checkpointMsMax: number
  /** Other than the usual ones: where there is little to decide, the model needs them small. */
  readonly bounds?: CheckpointBounds
  /** Records of a partition that ended the thread which decided them: they are given up on. */
  readonly givenUp?: (partition: number) => readonly Seq[]
  readonly report: EngineReport
}

export interface CheckpointBounds {
  /** Changed entries at which a checkpoint is due, twice as many where it repeats the one before; the last batch may exceed them by what it changes. */
  readonly entriesMax: number
  /** Records of decisions that a take-over reads at once. */
  readonly adoptRecordsMax: number
}

export interface EngineReport {
  /** All of it is durable and answered. */
  decided(partition: number, batch: Pick<DecidedBatch, 'replies' | 'dead'>, times: BatchTimes): void
  /** A tenure ended; it starts again after a pause unless the error is a MissingPosition. */
  lost(partition: number, error: unknown): void
  ruleLogs(logs: readonly RuleLog[]): void
  /** Side effects that lacked the value they need. */
  effectsSkipped(count: number): void
  /** Records of one device that were found, and left as they are because there were too many. */
  healingsDropped(count: number): void
}
