// One partition, pure: from a batch of identifications and what is known, to decisions, and from decisions back to state.
// It runs in a shard's thread in the product and in-process in the protocol's model test.

import { VELOCITY } from '../records/partitions.ts'
import { adoptRecords } from './adopting.ts'
import type { Asking } from './asking.ts'
import type { Checkpoint, DecidedBatch, DecisionReply } from './decided.ts'
import { createDeciding } from './deciding.ts'
import type { Frame } from './frames.ts'
import { createPartitionParts, type PartitionNeeds } from './parts.ts'
import type { Dirty } from './state.ts'
import type { DirtyCounter } from './velocity/taken-counters.ts'

/** Matches, matches of monitored ones, and the time of the last. */
const ENTRIES_PER_RULE = 3

export interface Partition {
  /** Decides a batch; records in `poisoned` are given up on. */
  decide(frames: readonly Frame[], poisoned: ReadonlySet<number>): Asking<DecidedBatch>
  /** Applies decisions made before, and answers again whoever may still wait. */
  adopt(records: readonly Uint8Array[]): Asking<readonly DecisionReply[]>
  restoreNonces(packed: Uint8Array): void
  /** How many entries the next checkpoint would write. */
  dirtyCount(): number
  /** Most of the last checkpoint had been in the one before as well: with a larger one it would have been written once. */
  isRepeating(): boolean
  checkpoint(): Checkpoint
}

function* allOf(dirty: Iterable<Dirty>, counters: Iterable<DirtyCounter>): Generator<Dirty> {
  yield* dirty
  for (const { key, packed, isRenewal } of counters) yield { kind: VELOCITY, id: String(key), value: packed, isRenewal }
}

export function createPartition(needs: PartitionNeeds): Partition {
  const parts = createPartitionParts(needs)
  const { state, board, matches, nonces } = parts
  const { partition } = needs
  let shrinks = 0
  return {
    decide: createDeciding(parts, () => shrinks),
    adopt: (records) => adoptRecords(parts, records),
    restoreNonces: nonces.restore,
    dirtyCount: () => state.dirtyCount() + board.dirtyCount(partition) + ENTRIES_PER_RULE * matches.size(),
    isRepeating: () => board.isRepeating(partition),
    checkpoint() {
      shrinks++
      const nowMs = needs.monotonic()
      const { dirty, gone } = state.takeDirty(nowMs)
      const counters = board.takeDirty(partition, nowMs)
      return {
        dirty: { [Symbol.iterator]: () => allOf(dirty, counters) },
        gone,
        matches: matches.take(),
        nonces: nonces.takeAdded(),
      }
    },
  }
}
