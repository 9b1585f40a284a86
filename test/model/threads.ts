// The engine's threads in-process: the real places behind the real decider, one turn at a time per thread, with threads
// that die and take the state of their partitions along.

import {
  createDecider,
  createPartitionHost,
  type Decider,
  type PartitionHost,
  type Task,
} from '../../src/engine/decider.ts'
import { type CounterFeed, newToldCounters, noteTurn } from '../../src/engine/velocity/feed.ts'
import type { Snapshot } from '../../src/rules/snapshot.ts'
import type { Rng } from '../helpers/rng.ts'
import type { SimHost } from './host.ts'

/** A record with this text kills the thread that decides it, unless it is given up on. */
export const THREAD_KILLER = 'this record ends its thread'

export interface ThreadsNeeds {
  readonly host: SimHost
  readonly random: Rng
  readonly threads: number
  readonly partitions: number
  readonly visitorsMax: number
  readonly current: () => readonly Snapshot[]
  readonly counterNews: CounterFeed['news']
}

interface Posted {
  readonly task: Task
  /** Takes the turn; throws what it throws. */
  readonly take: (place: PartitionHost) => void
  readonly reject: (error: Error) => void
}

export function createThreads(needs: ThreadsNeeds): Decider {
  const { host, random, threads, partitions, visitorsMax, current, counterNews } = needs
  const fresh = () =>
    createPartitionHost({
      partitions,
      visitorsMax,
      random: (n) => random.bytes(n),
      monotonic: host.clock.monotonic,
      now: host.clock.now,
    })
  const slots = Array.from({ length: threads }, () => ({
    place: fresh(),
    told: new Map<string, number>(),
    counters: newToldCounters(),
    queue: [] as Posted[],
  }))
  type Slot = (typeof slots)[number]
  const slotOf = (partition: number) => slots[partition % threads] as Slot

  /** Partitions whose next turn is the first of a batch that kills. */
  const fatal = new Set<number>()

  function kills({ partition, do: what }: Task): boolean {
    // A checkpoint that was asked for before may come first: it decides nothing.
    const isFatal = what === 'decide' && fatal.delete(partition)
    return random.chance(host.faults().thread) || isFatal
  }

  function next(slot: Slot): void {
    host.step(random.chance(0.1) ? random.float() * 20 : 0, () => {
      const { task, take, reject } = slot.queue[0] as Posted
      try {
        if (kills(task)) {
          slot.place = fresh()
          throw new Error('the thread died')
        }
        const counters = counterNews(slot.counters)
        noteTurn(slot.counters, task)
        slot.place.take({ snapshots: news(slot), lists: [], ...(counters && { counters }) })
        take(slot.place)
      } catch (error) {
        host.note(`step ${task.partition} ${task.do} ! ${(error as Error).message}`)
        slot.told.clear()
        slot.counters = newToldCounters()
        reject(error as Error)
      }
      slot.queue.shift()
      if (slot.queue.length > 0) next(slot)
    })
  }

  function perform<T>(task: Task, turn: (place: PartitionHost) => T): Promise<T> {
    const slot = slotOf(task.partition)
    return new Promise((resolve, reject) => {
      slot.queue.push({ task, take: (place) => resolve(turn(place)), reject })
      if (slot.queue.length === 1) next(slot)
    })
  }

  /** What this thread has not been told since it started. */
  function news({ told }: Slot): Snapshot[] {
    return current().filter(({ workspace, env, revision }) => {
      const known = told.get(`${workspace}/${env}`) === revision
      told.set(`${workspace}/${env}`, revision)
      return !known
    })
  }

  const decider = createDecider(perform)
  return {
    ...decider,
    decide(partition, batch, poisoned, load) {
      const isFatal = batch.some(
        ({ seq, bytes }) => !poisoned.includes(seq) && Buffer.from(bytes).includes(THREAD_KILLER),
      )
      if (isFatal) fatal.add(partition)
      return decider.decide(partition, batch, poisoned, load)
    },
  }
}
