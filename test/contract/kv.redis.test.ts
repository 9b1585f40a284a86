// The kv on Redis and on a Redis Cluster: the common guarantees, and what only a server of its own can do to it.
import t, { type Test } from 'tap'
import { type OpenedKv, openKv } from '../../src/kv/open.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { must } from '../../src/lib/must.ts'
import { openRandom } from '../../src/lib/random.ts'
import { UnsafeRedis } from '../../src/lib/redis.ts'
import { sized } from '../helpers/depth.ts'
import { type RedisServer, startRedis } from '../helpers/redis.ts'
import { kvContract, UNSORTED } from './kv.ts'

const random = openRandom()
const DROPPED = sized({ quick: 1_000, usual: 5_000, long: 5_000 })
let prefixes = 0
function freshPrefix(): string {
  prefixes += 1
  return `test${prefixes}`
}

const openOn = ({ url, port }: RedisServer, prefix: string, cluster = false): Promise<OpenedKv> =>
  openKv({
    backend: 'redis',
    redis: { url, clusterNodes: cluster ? [`127.0.0.1:${port}`] : [], name: 'test', clock: systemClock },
    prefix,
    unsorted: UNSORTED,
    random,
  })

function contractOn(name: string, server: RedisServer, cluster: boolean): void {
  kvContract(t, name, async () => {
    const prefix = freshPrefix()
    const kv = await openOn(server, prefix, cluster)
    return {
      kv,
      reopen: async () => {
        await kv.close()
        const again = await openOn(server, prefix, cluster)
        t.teardown(() => again.close())
        return again
      },
    }
  })
}

async function started(t: Test, options: Parameters<typeof startRedis>[0] = {}): Promise<RedisServer> {
  const server = await startRedis(options)
  t.teardown(() => server.remove())
  return server
}

const single = await started(t)
const clustered = await started(t, { cluster: true })
// Beside each other, for they wait.
t.jobs = 3
contractOn('redis', single, false)
if (sized({ quick: false, usual: true, long: true })) contractOn('redis cluster', clustered, true)

t.test('a collection of passing records leaves nothing on the server but its latest', async (t) => {
  const prefix = freshPrefix()
  const kv = await openOn(single, prefix)
  t.teardown(() => kv.close())
  const client = await single.client()
  const ids = (from: number, to: number) =>
    Array.from({ length: to - from }, (_, at) => String(from + at).padStart(6, '0'))
  const write = (from: number, to: number, ttlMs: number) =>
    kv.commit([{ scope: 'p/0', put: ids(from, to).map((id) => ({ key: ['nonce', id] as const, value: id, ttlMs })) }])
  const kept = () => Promise.all([client.zcard(`${prefix}:{p/0}:i:nonce`), client.zcard(`${prefix}:{p/0}:x:nonce`)])

  // Long enough for a busy machine to look at them before they expire.
  await write(0, 2_000, 5_000)
  await write(2_000, 2_003, 60_000)
  await kv.commit([{ scope: 'p/0', put: [{ key: ['nonce', '000005'], value: 'lasting' }] }])
  t.same(await kept(), [2_003, 2_002])
  await systemClock.sleep(5_100)
  const alive = ['000005', '002000', '002001', '002002']
  const scan = async (range: object) => (await kv.scan('p/0', 'nonce', { limit: 3, ...range })).map(({ key }) => key[1])
  t.same(await scan({}), alive.slice(0, 3), 'a page is full although hundreds before it have expired')
  t.same(await kept(), [1_003, 1_002], 'a scan clears what it met, within bounds')
  t.same(await scan({ reverse: true }), alive.toReversed().slice(0, 3))
  for (let id = 3_000; id < 3_100; id += 1) await write(id, id + 1, 60_000)
  t.same(await kept(), [104, 103], 'every commit clears more than it adds')
  t.same(await scan({ limit: 4 }), alive)
})

t.test('scopes lie in one slot each and keys of different deployments apart', async (t) => {
  const [one, two] = [await openOn(single, 'a'), await openOn(single, 'a:b')]
  t.teardown(() => Promise.all([one.close(), two.close()]))
  const put = (value: string) => [{ scope: 'b/p', put: [{ key: ['c', 'k'] as const, value }] }]
  await one.commit(put('one'))
  await two.commit(put('two'))
  t.equal((await one.get('b/p', [['c', 'k']]))[0]?.value, 'one')
  t.equal((await two.get('b/p', [['c', 'k']]))[0]?.value, 'two')
  const client = await single.client()
  const keys = (await client.keys('a:*')).sort()
  t.same(keys, ['a:b:{b/p}:i:c', 'a:b:{b/p}:r1:c/k', 'a:{b/p}:i:c', 'a:{b/p}:r1:c/k'])
  const slots = await Promise.all(keys.map((key) => clusterSlot(key)))
  t.equal(new Set(slots).size, 1)

  async function clusterSlot(key: string): Promise<unknown> {
    return (await clustered.client()).call('CLUSTER', 'KEYSLOT', key)
  }
})

t.test('a version from before a wipe holds for nothing that was written after it', async (t) => {
  const server = await started(t)
  const kv = await openOn(server, freshPrefix())
  t.teardown(() => kv.close())
  const key = ['c', 'k'] as const
  const put = { scope: 'p/0', put: [{ key, value: 'same' }] }
  await kv.commit([put])
  const { version } = must((await kv.get('p/0', [key]))[0])
  await (await server.client()).flushall()
  t.same(await kv.get('p/0', [key]), [null])
  await kv.commit([put])
  t.same(await kv.commit([{ scope: 'p/0', check: [[key, version]], drop: [key] }]), [false])
})

t.test('what is dropped leaves nothing on the server', async (t) => {
  const prefix = freshPrefix()
  const kv = await openOn(single, prefix)
  t.teardown(() => kv.close())
  const keys = Array.from({ length: DROPPED }, (_, id) => ['c', `${id}`] as const)
  const passing = [['passing', 'k']] as const
  const counter = [['n', 'k']] as const
  await kv.commit([
    {
      scope: 'p/0',
      put: [...keys.map((key) => ({ key, value: 1 })), { key: passing[0], value: 1, ttlMs: 60_000 }],
      add: [[counter[0], 1]],
    },
  ])
  const client = await single.client()
  t.equal((await client.keys(`${prefix}:*`)).length, DROPPED + 1 + 2 + 2 + 1, 'records, indexes, an expiry')
  t.same(await kv.commit([{ scope: 'p/0', drop: [...keys, ...passing, ...counter] }]), [true])
  t.same(await client.keys(`${prefix}:*`), [])
})

t.test('the script is sent again to a server that forgot it', async (t) => {
  const kv = await openOn(single, freshPrefix())
  t.teardown(() => kv.close())
  const puts = (id: string) => ({ scope: 'p/0', put: [{ key: ['c', id] as const, value: id }] })
  await kv.commit([puts('a')])
  await (await single.client()).script('FLUSH')
  const check = [[['c', 'b'], null]] as const
  t.same(await kv.commit([puts('b'), { ...puts('b'), check }, puts('c')]), [true, false, true])
})

t.test('a server that would lose records is refused', async (t) => {
  const server = await started(t)
  const client = await server.client()
  await client.config('SET', 'maxmemory-policy', 'allkeys-lru')
  await t.rejects(openOn(server, 'a'), UnsafeRedis)
  await client.config('SET', 'maxmemory-policy', 'noeviction')
  await client.replicaof('127.0.0.1', single.port)
  await t.rejects(openOn(server, 'a'), UnsafeRedis)
  await client.replicaof('NO', 'ONE')
  const kv = await openOn(server, 'a')
  t.match(await kv.facts(), {
    isCluster: false,
    nodes: [
      { isMaster: true, appendonly: false, appendfsync: 'everysec', maxmemoryPolicy: 'noeviction', maxmemoryBytes: 0 },
    ],
  })
  await kv.close()
  const ofCluster = await openOn(clustered, 'a', true)
  t.match(await ofCluster.facts(), { isCluster: true, nodes: [{ version: /^\d+\./ }] })
  await ofCluster.close()
})

t.test('a server that tells no settings is taken, and they are unknown', async (t) => {
  const server = await started(t, { args: ['--rename-command', 'CONFIG', ''] })
  const kv = await openOn(server, 'a')
  t.match(await kv.facts(), { nodes: [{ appendfsync: null, maxmemoryPolicy: 'noeviction', appendonly: false }] })
  await kv.close()
})
