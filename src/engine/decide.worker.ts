// Entry of an engine worker thread: performs the steps it is handed, for the partitions of its slot. Pure but for the
// randomness of new visitor ids; no port is reachable from here.

import { randomFillSync } from 'node:crypto'
import { workerData } from 'node:worker_threads'
import { createStepper, type Step, type StepResult } from './decider.ts'

/** Random bytes in blocks: one call of the system's generator serves hundreds of ids. */
const pool = new Uint8Array(16_384)
let used = pool.length
function random(n: number): Uint8Array {
  if (used + n > pool.length) {
    randomFillSync(pool)
    used = 0
  }
  used += n
  return pool.subarray(used - n, used)
}

const { partitions, visitorsMax } = workerData as { partitions: number; visitorsMax: number }
const perform = createStepper({ partitions, visitorsMax, random })

export default function step(task: Step): StepResult {
  return perform(task)
}
