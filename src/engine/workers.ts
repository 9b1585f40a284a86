// The engine's threads: an array of one-thread Piscina pools. A partition always goes to the same slot, because its decoded
// state lives in that thread.

import { Piscina } from 'piscina'
import type { Snapshot } from '../rules/snapshot.ts'
import { createDecider, type Decider, type Step, type StepResult } from './decider.ts'

export interface WorkersConfig {
  readonly threads: number
  readonly partitions: number
  /** Clean visitors kept in memory per partition. */
  readonly visitorsMax: number
  /** A step that takes longer is taken for an endless loop: its thread is ended. */
  readonly stepMsMax: number
  readonly heapMbMax: number
  readonly workerUrl: string
}

export interface Workers {
  readonly decider: Decider
  close(): Promise<void>
}

const STEPS_AHEAD = 8

/** `current` gives every ruleset in force; a slot is told only of those that changed since it was last told. */
export function openWorkers(config: WorkersConfig, current: () => readonly Snapshot[]): Workers {
  const slots = Array.from({ length: config.threads }, () => ({
    pool: new Piscina<Step, StepResult>({
      filename: config.workerUrl,
      minThreads: 1,
      maxThreads: 1,
      // Steps of several partitions are posted ahead, so that the thread need not wait for us between two of them.
      concurrentTasksPerWorker: STEPS_AHEAD,
      // A parked thread wakes five times faster, and ours has nothing else to wait for.
      atomics: 'sync',
      idleTimeout: Number.POSITIVE_INFINITY,
      resourceLimits: { maxOldGenerationSizeMb: config.heapMbMax },
      workerData: { partitions: config.partitions, visitorsMax: config.visitorsMax },
    }),
    told: new Map<string, number>(),
  }))
  const slotOf = (partition: number) => slots[partition % slots.length] as (typeof slots)[number]
  const lastSteps = new Map<number, Promise<unknown>>()

  // Piscina's queue does not keep the order of arrival, but a checkpoint taken after the next batch was decided would be
  // ahead of its position: the steps of a partition are queued here instead.
  function perform(step: Step): Promise<StepResult> {
    const last = lastSteps.get(step.partition)
    const result = last === undefined ? performNow(step) : last.then(() => performNow(step))
    const settled = result
      .catch(() => undefined)
      .then(() => {
        if (lastSteps.get(step.partition) === settled) lastSteps.delete(step.partition)
      })
    lastSteps.set(step.partition, settled)
    return result
  }

  async function performNow(step: Step): Promise<StepResult> {
    const slot = slotOf(step.partition)
    try {
      const transferList = step.do === 'begin' ? [step.batch] : []
      return await slot.pool.run(step, { transferList, signal: AbortSignal.timeout(config.stepMsMax) })
    } catch (error) {
      // The thread and what it was told are gone, or cannot be trusted.
      slot.told.clear()
      throw error
    }
  }

  function news(partition: number): Snapshot[] {
    const { told } = slotOf(partition)
    const fresh: Snapshot[] = []
    for (const snapshot of current()) {
      const key = `${snapshot.workspace}/${snapshot.env}`
      if (told.get(key) === snapshot.revision) continue
      told.set(key, snapshot.revision)
      fresh.push(snapshot)
    }
    return fresh
  }

  return {
    decider: createDecider(perform, news),
    async close() {
      await Promise.all(slots.map(({ pool }) => pool.close({ force: true })))
    },
  }
}
