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
