// Work stays with one shard while that can bear it, and spreads to others when it is full and cores are idle: nothing that was accepted
// while partitions moved is lost or decided twice, and nobody is refused for it.

import t, { type Test } from 'tap'
import { must } from '../../src/lib/must.ts'
import { createSpreading, FULL, IDLE_CORES_MIN, LOOKS } from '../../src/shards/spreading.ts'
import { clientOf } from '../helpers/client.ts'
import { startCluster } from '../helpers/cluster.ts'
import { inParallel } from '../helpers/http.ts'
import { until } from '../helpers/processes.ts'
import { cleanUp, type Server, startServer } from '../helpers/server.ts'
import { openFlood } from './flood.ts'

t.teardown(cleanUp)

const SHARDS = 4
const PARTITIONS = 4
const CONNECTIONS = 400
const SPREAD = 'more shards decide now'
const LOOKED_AT = 200
const env = {
  FINGERPOST_ENGINE_THREADS: String(SHARDS),
  FINGERPOST_ENGINE_THREADS_MIN: '1',
  FINGERPOST_HTTP_PER_IP_CONNECTIONS_MAX: String(2 * CONNECTIONS),
  FINGERPOST_LOG_LEVEL: 'info',
}
const nodeArgs = ['--import', new URL('../helpers/idle-hook.js', import.meta.url).href]

interface Look {
  readonly pending: number
  readonly busy: number
  readonly idle: number
  /** Of shards that decide nothing. */
  readonly listening?: Pick<Look, 'pending' | 'busy'>
}
const RESTING = { pending: 0, busy: 0 }
const BUSY: Look = { ...FULL, idle: IDLE_CORES_MIN }

const CASES: [what: string, looks: readonly Look[], shards: number][] = [
  ['full as often as it takes, with a core idle', Array<Look>(LOOKS).fill(BUSY), 2],
  ['not quite as often', Array<Look>(LOOKS - 1).fill(BUSY), 1],
  ['full while no core is idle', Array<Look>(3 * LOOKS).fill({ ...BUSY, idle: 0.5 * IDLE_CORES_MIN }), 1],
  ['many that wait for something else than the thread', Array<Look>(3 * LOOKS).fill({ ...BUSY, busy: 0.8 }), 1],
  ['idle cores and not full', Array<Look>(3 * LOOKS).fill({ ...BUSY, pending: FULL.pending - 1 }), 1],
  [
    'busy, and what waits for it waits where it came in',
    Array<Look>(LOOKS).fill({ ...BUSY, pending: 0, listening: { pending: FULL.pending, busy: 0 } }),
    2,
  ],
  ['listening is what is full', Array<Look>(LOOKS).fill({ ...BUSY, ...RESTING, listening: FULL }), 2],
  ['few wait, wherever', Array<Look>(3 * LOOKS).fill({ ...BUSY, pending: 0, listening: { pending: 8, busy: 0 } }), 1],
  [
    'full now and then',
    Array.from({ length: 3 * LOOKS }, (_, n) => (n % LOOKS === 0 ? { ...BUSY, pending: 0 } : BUSY)),
    1,
  ],
  ['for so long that twice as many are full', Array<Look>(2 * LOOKS).fill(BUSY), 4],
  ['for ever', Array<Look>(20 * LOOKS).fill(BUSY), SHARDS],
]

t.test('more shards decide only while those that do are full and a core is idle', async (t) => {
  for (const [what, looks, expected] of CASES) {
    const owner = new Int32Array(2 * SHARDS)
    const joined = new Set<number>()
    let now: Look = BUSY
    const look = createSpreading({
      owner,
      shards: SHARDS,
      loadOf: (index) => (owner.includes(index) ? now : (now.listening ?? RESTING)),
      idleCores: () => now.idle,
      join: async (index) => void joined.add(index),
      async move(partition, to) {
        t.ok(joined.has(to), 'what takes a partition listens')
        owner[partition] = to
      },
      onSpread: () => undefined,
    })
    for (now of looks) await look()
    const counts = Array.from({ length: SHARDS }, (_, index) => owner.filter((one) => one === index).length)
    t.same(
      counts,
      counts.map((_, index) => (index < expected ? (2 * SHARDS) / expected : 0)),
      what,
    )
  }
})

async function testSpreading(t: Test, server: Server): Promise<void> {
  const { get } = clientOf(server)
  const spreads = () => server.logs().split(SPREAD).length - 1
  const flood = openFlood(server, CONNECTIONS)
  await until('four shards', 60_000, () => spreads() === 2)
  const before = flood.accepted.length
  await until('a partition in each of them', 60_000, async () => {
    const { text } = await get('/metrics')
    return Array.from({ length: SHARDS }, (_, index) => `fingerpost_shard_partitions{shard="${index}"} 1\n`).every(
      (line) => text.includes(line),
    )
  })
  await until('answers from all of them', 60_000, () => flood.accepted.length > before + 4 * CONNECTIONS)
  await flood.end()
  const { accepted, statuses } = flood
  t.comment(`${accepted.length} accepted, statuses ${JSON.stringify([...statuses])}`)
  t.same([...statuses.keys()], [200], 'nobody is refused, and nobody waits for long')
  t.equal(new Set(accepted).size, accepted.length)
  const every = Math.ceil(accepted.length / LOOKED_AT)
  await inParallel(
    accepted.filter((_, n) => n % every === 0),
    8,
    async (requestId) => {
      const { status } = await get(`/v1/events/${requestId}`)
      if (status !== 200) t.fail(`${requestId} was accepted and is ${status}`)
    },
  )
  t.equal(await server.stop(), 0)
}

t.test('embedded: partitions move under load', async (t) => {
  await testSpreading(
    t,
    await startServer({ env: { ...env, FINGERPOST_DATA_PARTITIONS: String(PARTITIONS) }, nodeArgs }),
  )
})

t.test('in a cluster: partitions move under load', async (t) => {
  const { members, stop } = await startCluster({ roles: ['all'], partitions: PARTITIONS, env, nodeArgs })
  t.teardown(stop)
  await testSpreading(t, must(members[0], 'a process').server)
})
