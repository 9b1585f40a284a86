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

const YOUNG_MB = 96

/** `current` gives every ruleset in force; a slot is told only of those that changed since it was last told. */
export function openWorkers(config: WorkersConfig, current: () => readonly Snapshot[]): Workers {
  const slots = Array.from({ length: config.threads }, () => ({
    pool: new Piscina<Step, StepResult>({
      filename: config.workerUrl,
      minThreads: 1,
      maxThreads: 1,
      // One step of each partition is posted ahead, so that the thread need not wait for us between two of them, and none
      // ever stands in the pool's own queue, which does not keep the order.
      concurrentTasksPerWorker: config.partitions,
      // A parked thread wakes five times faster, and ours has nothing else to wait for.
      atomics: 'sync',
      idleTimeout: Number.POSITIVE_INFINITY,
      // A batch lives for a few milliseconds: in a small young generation much of it would be copied before it dies.
      resourceLimits: { maxOldGenerationSizeMb: config.heapMbMax, maxYoungGenerationSizeMb: YOUNG_MB },
      workerData: { partitions: config.partitions, visitorsMax: config.visitorsMax },
    }),
    told: new Map<string, number>(),
  }))
  const slotOf = (partition: number) => slots[partition % slots.length] as (typeof slots)[number]
  const lastSteps = new Map<number, Promise<unknown>>()

  // A checkpoint taken after the next batch was decided would be ahead of its position: the steps of a partition are taken
  // one by one, in order.
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
      // What is new goes with the first step that is posted after it, or another partition would decide by the old.
      const posted = { ...step, snapshots: news(slot) }
      return await slot.pool.run(posted, { transferList, signal: AbortSignal.timeout(config.stepMsMax) })
    } catch (error) {
      // The thread and what it was told are gone, or cannot be trusted.
      slot.told.clear()
      throw error
    }
  }

  function news({ told }: (typeof slots)[number]): Snapshot[] {
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
    decider: createDecider(perform, () => []),
    async close() {
      await Promise.all(slots.map(({ pool }) => pool.close({ force: true })))
    },
  }
}
