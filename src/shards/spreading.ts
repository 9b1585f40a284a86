// When more shards of a process decide: while one that works is full and the machine has a core for another one, twice as many do, and
// partitions move to them. What one shard can bear it decides for the least, since its batches are larger and nothing is handed over.

import { cpus } from 'node:os'
import type { Clock } from '../lib/clock.ts'
import type { ShardStatus } from './protocol.ts'

export interface SpreadingNeeds {
  /** As `Cells` has it. */
  readonly owner: Int32Array
  readonly shards: number
  readonly loadOf: (index: number) => Pick<ShardStatus, 'pending' | 'busy'>
  /** Cores that nobody used since it was last called. */
  readonly idleCores: () => number
  /** Has the shard listen, and load what deciding takes. */
  readonly join: (index: number) => Promise<void>
  readonly move: (partition: number, to: number) => Promise<void>
  /** Told when `shards` are about to decide where fewer did. */
  readonly onSpread: (shards: number) => void
}

/** A shard is full when it is as busy as this while so many wait in it: with fewer it is callers that are slow, or the disk. */
export const FULL = { busy: 0.9, pending: 32 }
/** A shard that gets less beside what else the machine does makes each event dearer and hardly more of them possible. */
export const IDLE_CORES_MIN = 0.75
/** Looks in a row that find it so. */
export const LOOKS = 3

/** Looks once a call; resolves when what it found to do is done. Calls meanwhile find nothing to do. */
export function createSpreading(needs: SpreadingNeeds): () => Promise<void> {
  const { owner, shards } = needs
  let found = 0
  let isSpreading = false

  const deciding = (): number[] => [...new Set(owner)].filter((index) => index >= 0)

  /** What waits in a shard that only listens waits for those that decide, too. */
  function isAnyFull(those: readonly number[]): boolean {
    const loads = Array.from({ length: shards }, (_, index) => needs.loadOf(index))
    const elsewhere = loads.reduce((sum, { pending }, index) => sum + (those.includes(index) ? 0 : pending), 0)
    return loads.some(({ pending, busy }, index) => {
      const waiting = pending + (those.includes(index) ? elsewhere : 0)
      return waiting >= FULL.pending && busy >= FULL.busy
    })
  }

  async function spread(count: number): Promise<void> {
    needs.onSpread(count)
    for (let index = 0; index < count; index++) await needs.join(index)
    // One at a time: each is decided by nobody while it moves.
    for (const [partition, index] of owner.entries()) {
      const to = partition % count
      if (index !== to) await needs.move(partition, to)
    }
  }

  return async () => {
    if (isSpreading) return
    const those = deciding()
    const count = Math.min(2 * those.length, shards, owner.length)
    if (count <= those.length || !isAnyFull(those)) {
      found = 0
      return
    }
    const idle = needs.idleCores()
    // The first figure is of the time before.
    if (found > 0 && idle < IDLE_CORES_MIN) found = 0
    found += 1
    if (found < LOOKS) return
    found = 0
    isSpreading = true
    try {
      await spread(count)
    } finally {
      isSpreading = false
    }
  }
}

/** Cores of the machine that nobody used between two calls, as the system counts it. */
export function openIdleCores(clock: Pick<Clock, 'monotonic'>): () => number {
  let [idleMs, at] = [0, Number.NEGATIVE_INFINITY]
  return () => {
    const nowIdleMs = cpus().reduce((sum, { times }) => sum + times.idle, 0)
    const now = clock.monotonic()
    const idle = (nowIdleMs - idleMs) / (now - at)
    ;[idleMs, at] = [nowIdleMs, now]
    return idle
  }
}
