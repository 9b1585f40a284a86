// The engine's threads: what a slow main thread and a thread that hangs may cost.

import t, { type Test } from 'tap'
import type { Loaded } from '../../src/engine/state.ts'
import { openWorkers, type Workers, type WorkersConfig } from '../../src/engine/workers.ts'
import { HANGING, IMAGE_BYTES } from './staged.worker.ts'

/** So that steps that never come fail the test, however slow the machine. */
const STEPS_MS_MAX = 60_000

const open = (t: Test, config: Partial<WorkersConfig>): Workers => {
  const workers = openWorkers(
    {
      threads: 1,
      partitions: 4,
      visitorsMax: 100,
      stepMsMax: STEPS_MS_MAX,
      heapMbMax: 256,
      workerUrl: new URL('./staged.worker.js', import.meta.url).href,
      ...config,
    },
    () => [],
  )
  t.teardown(() => workers.close())
  return workers
}

const image = (mark: number): SharedArrayBuffer => {
  const shared = new SharedArrayBuffer(IMAGE_BYTES)
  new Uint8Array(shared)[0] = mark
  return shared
}

/** Takes a batch to the thread, and what the thread was told with it back. */
async function tellingOf({ decider }: Workers, partition: number): Promise<string | undefined> {
  let told: string | undefined
  await decider
    .decide(partition, [{ seq: 1, bytes: new Uint8Array(1) }], [], async ([, wanted]): Promise<Loaded[]> => {
      told = wanted?.id
      throw new Error('enough is known')
    })
    .catch(() => undefined)
  return told
}

t.test(
  'the steps of several partitions, asked for in one turn, are performed while the main thread is busy with the next',
  async (t) => {
    const shared = image(1)
    const steps = new Int32Array(shared, 4, 1)
    const ipData = { images: [shared], relayIsVpn: false }
    const workers = open(t, { ipData: () => ipData })
    await workers.decider.open(0, [])
    const decisions = [0, 2, 3].map((partition) => tellingOf(workers, partition))
    await new Promise(setImmediate)
    // Nothing else happens in this thread until each was performed: a step waited for no answer to another one.
    const until = performance.now() + STEPS_MS_MAX
    for (let done = 0; done < 3 && performance.now() < until; done = Atomics.load(steps, 0)) {
      Atomics.wait(steps, 0, done, until - performance.now())
    }
    t.equal(Atomics.load(steps, 0), 3)
    await Promise.all(decisions)
  },
)

t.test('IP data reaches each thread once, by reference, and again when it changed', async (t) => {
  let ipData = { images: [image(7)], relayIsVpn: false }
  const workers = open(t, { threads: 2, ipData: () => ipData })
  const telling = (partition: number) => tellingOf(workers, partition)
  t.same([await telling(0), await telling(2), await telling(3)], ['7', 'nothing', '7'])
  new Uint8Array(ipData.images[0] as SharedArrayBuffer)[0] = 8
  t.equal(await telling(0), 'nothing')
  ipData = { images: [image(1), image(2)], relayIsVpn: false }
  t.same([await telling(0), await telling(0)], ['1,2', 'nothing'])
})

t.test('a thread that hangs is replaced, what it was given fails, and the next is told everything', async (t) => {
  const ipData = { images: [image(1), image(2)], relayIsVpn: false }
  const workers = open(t, { threads: 2, stepMsMax: 5_000, ipData: () => ipData })
  const { decider } = workers
  t.same([await tellingOf(workers, 0), await tellingOf(workers, 1)], ['1,2', '1,2'])
  const hanging = decider.checkpoint(HANGING)
  const behind = decider.checkpoint(3)
  await Promise.all([t.rejects(hanging), t.rejects(behind)])
  t.same(
    [await tellingOf(workers, 1), await tellingOf(workers, 3), await tellingOf(workers, 0)],
    ['1,2', 'nothing', 'nothing'],
  )
  t.same(await decider.checkpoint(3), { dirty: [], matches: [], nonces: null })
})
