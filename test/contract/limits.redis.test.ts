// The limits on Redis and on a Redis Cluster: the common guarantees, counting together, and what is left on the server.
import t from 'tap'
import { systemClock } from '../../src/lib/clock.ts'
import { Unavailable } from '../../src/lib/failures.ts'
import type { Limits } from '../../src/limits/limits.ts'
import { openLimits } from '../../src/limits/open.ts'
import { sized } from '../helpers/depth.ts'
import { type RedisServer, startRedis } from '../helpers/redis.ts'
import { limitsContract } from './limits.ts'

let prefixes = 0

function openOn({ url, port }: RedisServer, cluster: boolean, prefix?: string): Promise<Limits> {
  prefixes += 1
  return openLimits({
    backend: 'redis',
    redis: { url, clusterNodes: cluster ? [`127.0.0.1:${port}`] : [], name: 'test', clock: systemClock },
    prefix: prefix ?? `test${prefixes}`,
  })
}

const server = await startRedis()
t.teardown(() => server.remove())
const clustered = await startRedis({ cluster: true })
t.teardown(() => clustered.remove())

t.jobs = 3
for (const cluster of sized({ quick: [true], usual: [false, true], long: [false, true] })) {
  limitsContract(t, cluster ? 'redis cluster' : 'redis', async () => ({
    limits: await openOn(cluster ? clustered : server, cluster),
    pass: systemClock.sleep,
    now: async () => Date.now(),
  }))
}

t.test('processes count together, and what they counted leaves the server by itself', { buffered: true }, async (t) => {
  const [one, two] = [await openOn(server, false, 'same'), await openOn(server, false, 'same')]
  t.teardown(() => Promise.all([one.close(), two.close()]))
  const rules = [
    { name: 'class', kind: 'fixed', limit: 10, windowMs: 3_000 },
    { name: 'burst', kind: 'sliding', limit: 3, windowMs: 3_000 },
  ] as const
  const taken = await Promise.all([one, two, one, two].map((limits) => limits.take('key', rules)))
  t.equal(taken.filter(({ allowed }) => allowed).length, 3)
  const client = await server.client()
  t.equal((await client.keys('same:limits:{key}:*')).length > 0, true)
  const kept = () => client.keys('same:*')
  for (const deadline = performance.now() + 30_000; (await kept()).length > 0 && performance.now() < deadline; ) {
    await systemClock.sleep(50)
  }
  t.same(await kept(), [])
})

t.test(
  'without the server a take fails within its time-out, and works again with it',
  { buffered: true },
  async (t) => {
    const server = await startRedis()
    t.teardown(() => server.remove())
    const limits = await openOn(server, false)
    t.teardown(() => limits.close())
    const rule = { name: 'class', kind: 'fixed', limit: 10, windowMs: 60_000 } as const
    await limits.take('key', [rule])
    await server.kill9()
    await t.rejects(limits.take('key', [rule]), Unavailable)
    await server.restart()
    let taken: unknown = null
    for (const deadline = performance.now() + 60_000; taken === null && performance.now() < deadline; ) {
      taken = await limits.take('key', [rule]).catch(() => null)
      await systemClock.sleep(20)
    }
    t.match(taken, { allowed: true, windows: [{ remaining: 9 }] })
  },
)
