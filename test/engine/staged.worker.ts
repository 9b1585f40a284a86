// A stand-in for the engine's thread: notes when each step was performed and what IP data came with it, and hangs when it is
// told to.

import type { Step, StepResult } from '../../src/engine/decider.ts'

/** A checkpoint of this partition never ends. */
export const HANGING = 1

export default function perform(step: Step): StepResult {
  while (step.do === 'checkpoint' && step.partition === HANGING);
  if (step.do === 'checkpoint') return { checkpoint: { dirty: [], matches: [], nonces: null } }
  const told = step.ipData?.images.map((image) => new Uint8Array(image)[0]) ?? 'nothing'
  return {
    wanted: [
      { kind: 'visitor', id: String(Date.now()) },
      { kind: 'index', id: String(told) },
    ],
  }
}
