// The engine's threads in-process: the real stepper behind the real decider, one step at a time per thread, with threads
// that die and take the state of their partitions along.

import { createDecider, createStepper, type Decider, type Step, type StepResult } from '../../src/engine/decider.ts'
import { unpackFrames } from '../../src/engine/frames.ts'
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
}

interface Task {
  readonly step: Step
  readonly resolve: (result: StepResult) => void
  readonly reject: (error: Error) => void
}

export function createThreads({ host, random, threads, partitions, visitorsMax, current }: ThreadsNeeds): Decider {
  const fresh = () => createStepper({ partitions, visitorsMax, random: (n) => random.bytes(n) })
  const slots = Array.from({ length: threads }, () => ({
    perform: fresh(),
    told: new Map<string, number>(),
    queue: [] as Task[],
  }))
  type Slot = (typeof slots)[number]
  const slotOf = (partition: number) => slots[partition % threads] as Slot

  function kills(step: Step): boolean {
    if (random.chance(host.faults().thread)) return true
    if (step.do !== 'begin' || !Buffer.from(step.batch).includes(THREAD_KILLER)) return false
    return unpackFrames(step.batch).some(
      ({ seq, bytes }) => !step.poisoned.includes(seq) && Buffer.from(bytes).includes(THREAD_KILLER),
    )
  }

  function next(slot: Slot): void {
    host.step(random.chance(0.1) ? random.float() * 20 : 0, () => {
      const { step, resolve, reject } = slot.queue[0] as Task
      try {
        if (kills(step)) {
          slot.perform = fresh()
          throw new Error('the thread died')
        }
        resolve(slot.perform({ ...step, snapshots: news(slot) }))
      } catch (error) {
        host.note(`step ${step.partition} ${step.do} ! ${(error as Error).message}`)
        slot.told.clear()
        reject(error as Error)
      }
      slot.queue.shift()
      if (slot.queue.length > 0) next(slot)
    })
  }

  function perform(step: Step): Promise<StepResult> {
    const slot = slotOf(step.partition)
    return new Promise((resolve, reject) => {
      slot.queue.push({ step, resolve, reject })
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

  return createDecider(perform, () => [])
}
