// How the shards of a process stand together: whether they decide what it holds, and whether what moved between them has arrived.

import type { Assignment } from './assignment.ts'
import type { ShardStatus } from './protocol.ts'

export interface StandingNeeds {
  /** By shard. */
  readonly status: () => readonly ShardStatus[]
  /** As `Cells` has it. */
  readonly held: Int32Array
  readonly assignment: Pick<Assignment, 'hasJustMoved' | 'arrived'>
  /** No other process decides what this one does not. */
  readonly isAlone: boolean
}

export interface Standing {
  /** Why partitions that are held cannot be decided, or null. */
  problem(): string | null
  /** Resolves when each partition that has just moved is known to its new shard: the former one has forgotten its events. */
  settled(): Promise<void>
}

export function standingOf({ status, held, assignment, isAlone }: StandingNeeds): Standing {
  return {
    problem() {
      const found = status().find(({ problem }) => problem !== null)?.problem
      if (found !== undefined) return found
      // In a cluster partitions come and go while others decide.
      if (!isAlone) return null
      const caughtUp = new Set(status().flatMap((one) => one.caughtUp))
      const isTakenOver = (partition: number) => caughtUp.has(partition) || assignment.hasJustMoved(partition)
      const isTakingOver = held.some((isHeld, partition) => isHeld === 1 && !isTakenOver(partition))
      return isTakingOver ? 'partitions are being taken over' : null
    },
    settled: () => assignment.arrived((partition, index) => status()[index]?.caughtUp.includes(partition) === true),
  }
}
