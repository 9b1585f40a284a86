// The limits in memory: the common guarantees, and how they stay small.
import t from 'tap'
import { type Clock, systemClock } from '../../src/lib/clock.ts'
import { openLimits } from '../../src/limits/open.ts'
import { limitsContract } from './limits.ts'

/** A clock that only moves when told. */
function handClock(): Clock & { set(ms: number): void } {
  let now = 1_790_000_000_123
  return {
    ...systemClock,
    now: () => now,
    set(ms) {
      now = ms
    },
  }
}

limitsContract(t, 'memory', async () => {
  const clock = handClock()
  return {
    limits: await openLimits({ backend: 'memory', clock }),
    pass: async (ms) => clock.set(clock.now() + ms),
    now: async () => clock.now(),
  }
})

t.test('beyond the bound the key used longest ago is forgotten, a busy one never', async (t) => {
  const limits = await openLimits({ backend: 'memory', clock: handClock(), countersMax: 10 })
  const rule = { name: 'class', kind: 'fixed', limit: 1, windowMs: 60_000 } as const
  const allowed = async (key: string) => (await limits.take(key, [rule])).allowed
  t.equal(await allowed('busy'), true)
  t.equal(await allowed('quiet'), true)
  for (let other = 0; other < 30; other += 1) {
    await allowed(`other${other}`)
    if (await allowed('busy')) t.fail(`forgotten after ${other} others`)
  }
  t.equal(await allowed('quiet'), true)
  await limits.close()
})

t.test('a clock that is set back refuses nobody for long', async (t) => {
  const clock = handClock()
  const limits = await openLimits({ backend: 'memory', clock })
  const rules = [
    { name: 'class', kind: 'fixed', limit: 1, windowMs: 60_000 },
    { name: 'burst', kind: 'sliding', limit: 1, windowMs: 1_000 },
  ] as const
  t.equal((await limits.take('key', rules)).allowed, true)
  clock.set(clock.now() - 3_600_000)
  t.equal((await limits.take('key', rules)).allowed, true)
  t.equal((await limits.take('key', rules)).allowed, false)
  await limits.close()
})
