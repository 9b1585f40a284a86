// The engine's threads in-process: the real stepper behind the real decider, one step at a time per thread, with threads
// that die and take the state of their partitions along.

import { createDecider, createStepper, type Decider, type StepResult, type Task } from '../../src/engine/decider.ts'
import { type CounterFeed, newToldCounters, noteStep } from '../../src/engine/velocity/feed.ts'
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
  readonly resolve: (result: StepResult) => void
  readonly reject: (error: Error) => void
}

export function createThreads(needs: ThreadsNeeds): Decider {
  const { host, random, threads, partitions, visitorsMax, current, counterNews } = needs
  const fresh = () =>
    createStepper({
      ...{ partitions, visitorsMax },
      random: (n) => random.bytes(n),
      monotonic: host.clock.monotonic,
      now: host.clock.now,
    })
  const slots = Array.from({ length: threads }, () => ({
    perform: fresh(),
    told: new Map<string, number>(),
    counters: newToldCounters(),
    queue: [] as Posted[],
  }))
  type Slot = (typeof slots)[number]
  const slotOf = (partition: number) => slots[partition % threads] as Slot

  function kills(task: Task): boolean {
    if (random.chance(host.faults().thread)) return true
    if (task.do !== 'begin') return false
    return task.batch.some(
      ({ seq, bytes }) => !task.poisoned.includes(seq) && Buffer.from(bytes).includes(THREAD_KILLER),
    )
  }

  function next(slot: Slot): void {
    host.step(random.chance(0.1) ? random.float() * 20 : 0, () => {
      const { task, resolve, reject } = slot.queue[0] as Posted
      try {
        if (kills(task)) {
          slot.perform = fresh()
          throw new Error('the thread died')
        }
        const counters = counterNews(slot.counters)
        noteStep(slot.counters, task)
        resolve(slot.perform({ ...task, snapshots: news(slot), lists: [], ...(counters && { counters }) }))
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

  function perform(task: Task): Promise<StepResult> {
    const slot = slotOf(task.partition)
    return new Promise((resolve, reject) => {
      slot.queue.push({ task, resolve, reject })
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

  return createDecider(perform)
}
