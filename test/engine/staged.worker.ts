// A stand-in for the engine's thread: it tells the shared memory that comes as IP data of each step, says what IP data came with
// it, and hangs when it is told to.

import type { Performed, Step, StepResult } from '../../src/engine/decider.ts'

/** A checkpoint of this partition never ends. */
export const HANGING = 1
/** Bytes of an image: its mark, and a counter of steps behind it. */
export const IMAGE_BYTES = 8

const nap = new Int32Array(new SharedArrayBuffer(4))
let steps: Int32Array | null = null

export default (all: readonly Step[]): readonly Performed[] => all.map(perform)

function perform(step: Step): StepResult {
  while (step.do === 'checkpoint' && step.partition === HANGING) Atomics.wait(nap, 0, 0, 100)
  if (step.do === 'checkpoint') return { checkpoint: { dirty: [], matches: [], nonces: null } }
  const [image] = step.ipData?.images ?? []
  if (image !== undefined) steps = new Int32Array(image, 4, 1)
  if (steps !== null && step.do === 'begin') {
    Atomics.add(steps, 0, 1)
    Atomics.notify(steps, 0)
  }
  const told = step.ipData?.images.map((image) => new Uint8Array(image)[0]) ?? 'nothing'
  return {
    wanted: [
      { kind: 'visitor', id: '1' },
      { kind: 'index', id: String(told) },
    ],
  }
}
