// Entry of an engine worker thread: performs the steps it is handed, for the partitions of its slot. Pure but for the
// randomness of new visitor ids; no port is reachable from here.

import { workerData } from 'node:worker_threads'
import { openRandom } from '../lib/random.ts'
import { createStepper, type Performed, type Step } from './decider.ts'

const { partitions, visitorsMax } = workerData as { partitions: number; visitorsMax: number }
const monotonic = () => performance.now()
const perform = createStepper({ partitions, visitorsMax, random: openRandom(), monotonic, now: Date.now })

function attempt(step: Step): Performed {
  try {
    return perform(step)
  } catch (failed) {
    return { failed }
  }
}

export default function performAll(steps: readonly Step[]): readonly Performed[] {
  return steps.map(attempt)
}
