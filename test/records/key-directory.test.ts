// How long a process that cannot read keys goes by those it knows: as long as nothing was changed since that it has not seen.

import t from 'tap'
import type { Clock } from '../../src/lib/clock.ts'
import { Unavailable } from '../../src/lib/failures.ts'
import { KEYS_STALE_MS, openKeyDirectory } from '../../src/records/key-directory.ts'
import { CHANGES_READER } from '../../src/records/scopes.ts'

/** A directory over `changes` and a kv that the test moves on; `later` lets time pass in which it looks several times. */
async function open() {
  let time = 0
  let sleeping: (() => void)[] = []
  const store = { last: 5, applied: 5, isAway: false }
  const clock: Clock = {
    now: () => time,
    monotonic: () => time,
    sleep: (_ms, signal) =>
      new Promise((wake) => {
        sleeping.push(wake)
        signal?.addEventListener('abort', () => wake())
      }),
  }
  async function read<T>(value: T): Promise<T> {
    if (store.isAway) throw new Unavailable('the kv is away')
    return value
  }
  const directory = await openKeyDirectory({
    kv: {
      get: (_scope, wanted) => read(wanted.map(() => null)),
      scan: () => read([]),
      position: (_scope, source) => read(source === CHANGES_READER ? store.applied : 1),
    },
    log: { last: async () => store.last },
    bus: { publish() {}, subscribe: () => () => {}, close: async () => {}, isLossy: true },
    clock,
    sealer: null,
    report: (error) => t.fail(String(error)),
  })
  t.teardown(() => directory.close())
  async function later(ms: number): Promise<void> {
    for (const until = time + ms; time < until; ) {
      time += 500
      const woken = sleeping
      sleeping = []
      for (const wake of woken) wake()
      await new Promise((resolve) => setImmediate(resolve))
    }
  }
  return { directory, store, later }
}

t.test('without a kv the keys stay confirmed while nothing was added to what was applied', async (t) => {
  const { directory, store, later } = await open()
  await later(1_000)
  store.isAway = true
  await later(3 * KEYS_STALE_MS)
  t.equal(directory.isFresh(), true)
  store.last = 6
  await later(KEYS_STALE_MS)
  t.equal(directory.isFresh(), false)
})

t.test('a command that was seen before it was applied confirms no keys once the kv is gone', async (t) => {
  const { directory, store, later } = await open()
  store.last = 6
  await later(1_000)
  store.isAway = true
  await later(KEYS_STALE_MS)
  t.equal(directory.isFresh(), false, 'it may have revoked one')
  store.isAway = false
  store.applied = 6
  await later(1_000)
  store.isAway = true
  await later(3 * KEYS_STALE_MS)
  t.equal(directory.isFresh(), true)
})
