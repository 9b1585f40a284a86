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
  const busyUntil = Date.now() + 500
  while (Date.now() < busyUntil);
  await Promise.all(decisions)
  t.equal(performedAt.length, 3)
  for (const at of performedAt) t.ok(at < busyUntil, 'a step waited for no answer to another one')
})

t.test('a thread that hangs is replaced, and what it was given fails', async (t) => {
  const { decider } = open(t, { stepMsMax: 2_000 })
  await decider.open(0, [])
  const hanging = decider.checkpoint(HANGING)
  const behind = decider.checkpoint(0)
  await t.rejects(hanging)
  await t.rejects(behind)
  await decider.open(0, [])
  t.same(await decider.checkpoint(0), { dirty: [], matches: [], nonces: null })
})
