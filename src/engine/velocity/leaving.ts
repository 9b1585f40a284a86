// Between the orders of a partition and the counters of its thread: what an erased visitor takes with it.

import type { HeldVisitor } from '../../records/visitors.ts'
import type { LeavingCounters } from '../visitor-commands.ts'
import type { Board } from './board.ts'
import { hashSeen } from './counted.ts'
import { unpackCounters } from './counters.ts'
import { packDeparture, unpackDeparture } from './departure.ts'
import { tracesIn } from './traces.ts'

/** Keys of the counters besides its own that a visitor is counted by. */
export const keysLeft = (held: Pick<HeldVisitor, 'counters'> | null | undefined): Iterable<number> =>
  !held || held.counters.length === 0 ? [] : tracesIn(unpackCounters(held.counters).traces ?? []).map(({ key }) => key)

export const openLeaving = (board: Board, partition: number): LeavingCounters => ({
  leaving(visitorId, own) {
    const departure = own.length === 0 ? null : board.leaving(partition, hashSeen(visitorId), unpackCounters(own))
    return departure === null ? null : packDeparture(departure)
  },
  remove: (counted) => board.remove(partition, unpackDeparture(counted)),
})
