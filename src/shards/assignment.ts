// Which shard of a process decides a partition: has it hold the partition, and moves partitions from one shard to another. What is
// appended or asked for meanwhile waits until the new one has it.

import type { Clock } from '../lib/clock.ts'
import { Unavailable } from '../lib/failures.ts'
import type { Line } from '../lib/line.ts'
import { promised } from '../lib/promised.ts'
import type { PartitionHead } from '../log/front-protocol.ts'
import { CASTS, MOVING, type ShardCalls } from './protocol.ts'

export interface AssignmentNeeds {
  /** By partition the index of its shard, to begin with; kept from here on for all threads to see. */
  readonly owner: Int32Array
  /** The line to the shard when its thread serves. Rejects with Unavailable when that is lost; ask again. */
  readonly lineOf: (index: number) => Promise<Line>
  /** Where the log of the process stands; null: shards append to servers themselves, where nothing is to be handed on. */
  readonly headsOf: ((partition: number) => Promise<PartitionHead[]>) | null
  readonly clock: Pick<Clock, 'sleep' | 'monotonic'>
  /** The process ends: nothing more is moved. */
  readonly closing: AbortSignal
}

export interface Assignment {
  /** The shard of the partition; while that moves, as soon as it has one. */
  of(partition: number): Promise<number>
  /** The partitions that the log of the shard's thread has, or is to have when it starts. */
  ownedBy(index: number): number[]
  /** Has the partition held, by one shard or another and whatever becomes of threads, until `signal` aborts. */
  hold(partition: number, signal: AbortSignal): Promise<void>
  /** Resolves when the partition is another shard's, and what comes for it goes there. */
  move(partition: number, to: number): Promise<void>
  /** It is under way to another shard or has just arrived: nobody may have taken it over yet. */
  hasJustMoved(partition: number): boolean
  /** Resolves when `isTakenOver` by its shard is so of every partition that has just moved, or that takes too long to count as a move. */
  arrived(isTakenOver: (partition: number, index: number) => boolean): Promise<void>
}

const RETRY_MS = 200
const LOOK_MS = 20
/** A take-over behind a move has this long before the partition counts as one that nobody decides. */
const TAKE_OVER_MS = 5_000

interface Tenure {
  /** Resolves when the shard holds the partition no more. */
  readonly over: Promise<unknown>
  release(): void
}

export function createAssignment(needs: AssignmentNeeds): Assignment {
  const { owner, lineOf, headsOf, clock, closing } = needs
  /** By partition the shard whose log has it, also while it moves. */
  const home = [...owner]
  const tenures = new Map<number, Tenure>()
  const moving = new Map<number, Promise<void>>()
  const movedAt = new Map<number, number>()

  async function of(partition: number): Promise<number> {
    for (;;) {
      const index = owner[partition] as number
      if (index !== MOVING) return index
      await moving.get(partition)
    }
  }

  /** Asks the shard's thread, or its successor when it is lost meanwhile. */
  async function insist(index: number, ask: (line: Line) => Promise<unknown>): Promise<void> {
    while (!closing.aborted) {
      try {
        await ask(await lineOf(index))
        return
      } catch (error) {
        if (!(error instanceof Unavailable)) throw error
        await clock.sleep(RETRY_MS, closing)
      }
    }
  }

  async function handOn(partition: number, from: number, to: number): Promise<void> {
    if (headsOf !== null) await insist(from, (line) => line.call('giveUp' satisfies keyof ShardCalls, partition))
    // From here on nobody appends until `to` has been told where the partition stands, or was started with it.
    home[partition] = to
    if (headsOf === null) return
    await insist(to, async (line) => line.call('take' satisfies keyof ShardCalls, await headsOf(partition)))
  }

  async function hold(partition: number, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const index = await of(partition)
      const line = await lineOf(index).catch(() => null)
      if (signal.aborted) return
      if (line === null) {
        await clock.sleep(RETRY_MS, signal)
        continue
      }
      if (owner[partition] !== index) continue
      const release = () => line.cast(CASTS.release, partition)
      signal.addEventListener('abort', release)
      const over = line.call('hold' satisfies keyof ShardCalls, partition)
      tenures.set(partition, { over: over.catch(() => undefined), release })
      try {
        await over
      } catch (error) {
        if (!(error instanceof Unavailable)) throw error
        await clock.sleep(RETRY_MS, signal)
      } finally {
        signal.removeEventListener('abort', release)
        tenures.delete(partition)
      }
    }
  }

  const hasJustMoved = (partition: number): boolean =>
    clock.monotonic() - (movedAt.get(partition) ?? Number.NEGATIVE_INFINITY) < TAKE_OVER_MS

  return {
    of,
    ownedBy: (index) => [...home.keys()].filter((partition) => home[partition] === index),
    hold,
    async move(partition, to) {
      const from = owner[partition] as number
      if (from === MOVING || from === to || closing.aborted) return
      const { promise, resolve } = promised<void>()
      moving.set(partition, promise)
      movedAt.set(partition, clock.monotonic())
      Atomics.store(owner, partition, MOVING)
      try {
        const tenure = tenures.get(partition)
        tenure?.release()
        await tenure?.over
        await handOn(partition, from, to)
      } finally {
        Atomics.store(owner, partition, to)
        moving.delete(partition)
        resolve()
      }
    },
    hasJustMoved,
    async arrived(isTakenOver) {
      const isUnderWay = (partition: number): boolean => {
        const index = owner[partition] as number
        return hasJustMoved(partition) && (index === MOVING || !isTakenOver(partition, index))
      }
      while ([...movedAt.keys()].some(isUnderWay)) await clock.sleep(LOOK_MS)
    },
  }
}
