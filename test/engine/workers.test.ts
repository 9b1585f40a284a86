// The engine's threads: what a slow main thread and a thread that hangs may cost.

import t, { type Test } from 'tap'
import type { Loaded } from '../../src/engine/state.ts'
import { openWorkers, type Workers, type WorkersConfig } from '../../src/engine/workers.ts'
import { HANGING } from './staged.worker.ts'

const open = (t: Test, config: Partial<WorkersConfig>): Workers => {
  const workers = openWorkers(
    {
      threads: 1,
      partitions: 4,
      visitorsMax: 100,
      stepMsMax: 10_000,
      heapMbMax: 256,
      workerUrl: new URL('./staged.worker.js', import.meta.url).href,
      ...config,
    },
    () => [],
  )
  t.teardown(() => workers.close())
  return workers
}

t.test('the steps of several partitions are performed while the main thread is busy', async (t) => {
  const { decider } = open(t, {})
  await decider.open(0, [])
  const performedAt: number[] = []
  const decisions = [0, 2, 3].map((partition) =>
    decider
      .decide(partition, [{ seq: 1, bytes: new Uint8Array(1) }], [], async ([wanted]): Promise<Loaded[]> => {
        performedAt.push(Number(wanted?.id))
        throw new Error('enough is known')
      })
      .catch(() => undefined),
  )
  // Longer than the machine stands still.
  const busyUntil = Date.now() + 3_000
  while (Date.now() < busyUntil);
  await Promise.all(decisions)
  t.equal(performedAt.length, 3)
  for (const at of performedAt) t.ok(at < busyUntil, 'a step waited for no answer to another one')
})

t.test('a thread that hangs is replaced, and what it was given fails', async (t) => {
  const { decider } = open(t, { stepMsMax: 5_000 })
  await decider.open(0, [])
  const hanging = decider.checkpoint(HANGING)
  const behind = decider.checkpoint(0)
  await t.rejects(hanging)
  await t.rejects(behind)
  await decider.open(0, [])
  t.same(await decider.checkpoint(0), { dirty: [], matches: [], nonces: null })
})

t.test(
  'IP data reaches each thread once, by reference, again when it changed, and after a thread was replaced',
  async (t) => {
    const image = (mark: number): SharedArrayBuffer => {
      const shared = new SharedArrayBuffer(1)
      new Uint8Array(shared)[0] = mark
      return shared
    }
    let ipData = { images: [image(7)], relayIsVpn: false }
    const { decider } = open(t, { threads: 2, stepMsMax: 5_000, ipData: () => ipData })
    const tellingOf = async (partition: number): Promise<string | undefined> => {
      let told: string | undefined
      await decider
        .decide(partition, [{ seq: 1, bytes: new Uint8Array(1) }], [], async ([, wanted]) => {
          told = wanted?.id
          throw new Error('enough is known')
        })
        .catch(() => undefined)
      return told
    }
    t.same([await tellingOf(0), await tellingOf(2), await tellingOf(3)], ['7', 'nothing', '7'])
    new Uint8Array(ipData.images[0] as SharedArrayBuffer)[0] = 8
    t.equal(await tellingOf(0), 'nothing')
    ipData = { images: [image(1), image(2)], relayIsVpn: false }
    t.same([await tellingOf(0), await tellingOf(0)], ['1,2', 'nothing'])
    await t.rejects(decider.checkpoint(HANGING))
    t.same([await tellingOf(1), await tellingOf(3), await tellingOf(0)], ['1,2', 'nothing', 'nothing'])
  },
)
