// Room for what is accepted: which store has none, and that somebody is told before.

import t from 'tap'
import { watchCapacity } from '../../src/ingress/capacity.ts'
import { Unavailable } from '../../src/lib/failures.ts'

t.test('the state has a cap of its own, and warns well before it', async (t) => {
  let kvBytes: number | Error = 100
  let logBytes = 0
  const warned: number[] = []
  const told: (number | null)[] = []
  const wakes: (() => void)[] = []
  const capacity = await watchCapacity({
    log: { usage: async () => ({ bytes: logBytes, bytesMax: 1_000 }) },
    kv: {
      async usage() {
        if (kvBytes instanceof Error) throw kvBytes
        return kvBytes
      },
    },
    clock: { monotonic: () => 0, sleep: () => new Promise<void>((resolve) => wakes.push(resolve)) } as never,
    dir: null,
    freeBytesMin: 0,
    kvBytesMax: 1_000,
    onUsage: ({ kvBytes }) => told.push(kvBytes),
    onNearlyFull: (bytes) => warned.push(bytes),
  })
  async function look(bytes: number | Error) {
    kvBytes = bytes
    const looks = told.length
    wakes.shift()?.()
    while (told.length === looks || wakes.length === 0) await new Promise((resolve) => setImmediate(resolve))
    return [capacity.refusal(), capacity.kv(), capacity.log()]
  }
  const full = 'kv: no room for more visitors'
  t.same(await look(799), [null, null, null])
  t.same(warned, [])
  t.same(await look(800), [null, null, null])
  t.same(await look(999), [null, null, null])
  t.same(warned, [800], 'once')
  t.same(await look(1_000), [full, full, null])
  t.same(await look(new Unavailable('away')), [full, full, null], 'what was known counts while nobody answers')
  t.same(await look(500), [null, null, null])
  await look(900)
  t.same(warned, [800, 900], 'and again when it comes near once more')
  logBytes = 950
  t.match(await look(1_000), [/^log: /, full, /^log: /])
  capacity.stop()
})

t.test(
  'while nothing is appended it looks less often, but not while something is full or does not answer',
  async (t) => {
    let logBytes: number | Error = 0
    let kvBytes: number | Error = 0
    const answer = async (now: number | Error) => {
      if (now instanceof Error) throw now
      return now
    }
    const pauses: number[] = []
    let wake: (() => void) | null = null
    const capacity = await watchCapacity({
      log: { usage: async () => ({ bytes: await answer(logBytes), bytesMax: 1_000 }) },
      kv: { usage: () => answer(kvBytes) },
      clock: {
        monotonic: () => 0,
        sleep(ms: number) {
          pauses.push(ms)
          return new Promise<void>((resolve) => {
            wake = resolve
          })
        },
      } as never,
      dir: null,
      freeBytesMin: 0,
      kvBytesMax: 1_000,
      onUsage: () => undefined,
      onNearlyFull: () => undefined,
    })
    async function pauseBehind(log: number | Error, kv: number | Error = 0) {
      ;[logBytes, kvBytes] = [log, kv]
      const before = pauses.length
      wake?.()
      while (pauses.length === before) await new Promise((resolve) => setImmediate(resolve))
      return pauses.at(-1)
    }
    const [busy, still] = [2_000, 5_000]
    t.same(pauses, [busy], 'from the beginning')
    t.equal(await pauseBehind(0), still, 'nothing was appended')
    t.equal(await pauseBehind(100), busy, 'something was')
    t.equal(await pauseBehind(100), still)
    t.equal(await pauseBehind(new Unavailable('away')), busy, 'the log does not answer')
    t.equal(await pauseBehind(100, new Unavailable('away')), busy, 'the state does not answer')
    t.equal(await pauseBehind(100, 1_000), busy, 'the state is full')
    t.equal(await pauseBehind(100), still)
    t.equal(await pauseBehind(950), busy)
    t.equal(await pauseBehind(950), busy, 'the log is full')
    capacity.stop()
  },
)
