// The kv while its Redis server is killed, wiped, paused, cut off and full: commits stay whole, failures are told in time, and
// everything goes on by itself afterwards.
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import t, { type Test } from 'tap'
import type { Commit } from '../../src/kv/kv.ts'
import { type OpenedKv, openKv } from '../../src/kv/open.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { Full, Unavailable } from '../../src/lib/failures.ts'
import { must } from '../../src/lib/must.ts'
import { openRandom } from '../../src/lib/random.ts'
import { patiently } from '../helpers/patiently.ts'
import { type RedisServer, startRedis } from '../helpers/redis.ts'

const COMMAND_MS_MAX = 2_000
/** Where no call is to fail for its time-out. */
const PATIENT_MS = 30_000
const HOUR_MS = 3_600_000
const WRITERS = ['p/0', 'p/1', 'p/2', 'p/3']
const ROWS = 40
const SOURCE = 'log'
const { sleep } = systemClock

const openOn = (url: string, commandMsMax = COMMAND_MS_MAX): Promise<OpenedKv> =>
  openKv({
    backend: 'redis',
    redis: { url, name: 'test', clock: systemClock, commandMsMax },
    prefix: 'test',
    unsorted: ['heap'],
    random: openRandom(),
  })

async function opened(t: Test, options: Parameters<typeof startRedis>[0], commandMsMax = COMMAND_MS_MAX) {
  const server = await startRedis(options)
  const kv = await openOn(server.url, commandMsMax)
  t.teardown(async () => {
    await kv.close()
    await server.remove()
  })
  return { server, kv }
}

/** One step of a writer: everything it writes says which step it was. */
const step = (scope: string, at: number): Commit => ({
  scope,
  guard: { source: SOURCE, expect: at === 0 ? null : at, next: at + 1 },
  put: [
    ...Array.from({ length: ROWS }, (_, row) => ({ key: ['heap', `${row}`] as const, value: at + 1 })),
    { key: ['rows', String(at + 1).padStart(8, '0')], value: at + 1 },
    { key: ['passing', `${at + 1}`], value: at + 1, ttlMs: 600_000 },
  ],
  drop: [['rows', String(at - 1).padStart(8, '0')]],
  add: [[['counters', 'n'], 1]],
})

/** What is wrong with the state that steps up to `position` should have left. */
async function flaws(kv: OpenedKv, scope: string, position: number): Promise<string[]> {
  const found: string[] = []
  const heap = await kv.get(
    scope,
    Array.from({ length: ROWS }, (_, row) => ['heap', `${row}`] as const),
  )
  if (heap.some((entry) => entry?.value !== position)) found.push('heap')
  const rows = (await kv.scan<number>(scope, 'rows', { limit: 10 })).map(({ value }) => value)
  if (rows.join() !== [position - 1, position].filter((at) => at > 0).join()) found.push(`rows ${rows}`)
  const passing = await kv.scan(scope, 'passing', { limit: 10_000 })
  if (passing.length !== position) found.push(`passing ${passing.length}`)
  const [counter] = await kv.get(scope, [['counters', 'n']])
  if (counter?.value !== position) found.push(`counter ${counter?.value}`)
  return found.map((flaw) => `${scope} at ${position}: ${flaw}`)
}

// While it waits for a slow disk, a server that syncs once a second holds back the latest it has acknowledged; the log has them.
const KEPT = { always: 'every acknowledged one is there', everysec: 'none is missing before one that is there' }
for (const aof of ['always', 'everysec'] as const) {
  t.test(`killed with appendfsync ${aof}, every commit is whole and ${KEPT[aof]}`, async (t) => {
    const { server, kv } = await opened(t, { aof })
    const acknowledged = new Map<string, number>()
    let stopping = false
    let unknown = 0
    const write = async (scope: string) => {
      for (let at = 0; !stopping; ) {
        try {
          const [done] = await kv.commit([step(scope, at)])
          if (done !== true) return t.fail(`${scope}: step ${at} was refused`)
          at += 1
          acknowledged.set(scope, at)
        } catch (error) {
          if (!(error instanceof Unavailable)) throw error
          unknown += 1
          at = (await patiently(() => kv.position(scope, SOURCE))) ?? 0
          const last = acknowledged.get(scope) ?? 0
          if (at < last && aof === 'always') t.fail(`${scope}: ${last} was acknowledged, ${at} is there`)
          acknowledged.set(scope, at)
        }
      }
    }
    const writing = Promise.all(WRITERS.map(write))
    for (let cycle = 0; cycle < 4; cycle += 1) {
      await sleep(150 + 37 * cycle)
      await server.kill9()
      await sleep(50)
      await server.restart()
      for (const scope of WRITERS) await patiently(() => kv.position(scope, SOURCE))
    }
    const hasMoved = (scope: string) => (acknowledged.get(scope) ?? 0) > 10
    for (const from = performance.now(); !WRITERS.every(hasMoved) && performance.now() - from < 60_000; )
      await sleep(100)
    stopping = true
    await writing
    t.ok(unknown >= 4, 'commits were in flight when it was killed')
    for (const scope of WRITERS) {
      const position = must(await kv.position(scope, SOURCE))
      t.ok(position >= must(acknowledged.get(scope)) && position > 10)
      t.same(await flaws(kv, scope, position), [])
    }
  })
}

t.test('wiped while in use, guarded commits are refused and nothing else fails', async (t) => {
  const { server, kv } = await opened(t, {}, PATIENT_MS)
  const doneTo = new Map<string, number>()
  const refusedAt = new Map<string, number>()
  const write = async (scope: string) => {
    for (let at = 0; ; at += 1) {
      const [done] = await kv.commit([step(scope, at)])
      doneTo.set(scope, at)
      if (done === true) continue
      refusedAt.set(scope, at)
      return
    }
  }
  const writing = Promise.all(WRITERS.map(write))
  const hasMoved = (scope: string) => (doneTo.get(scope) ?? 0) > 10
  for (const from = performance.now(); !WRITERS.every(hasMoved) && performance.now() - from < 60_000; ) await sleep(50)
  await (await server.client()).flushall()
  await writing
  for (const scope of WRITERS) {
    t.ok(must(refusedAt.get(scope)) > 10)
    t.equal(await kv.position(scope, SOURCE), null)
    t.same(await kv.scan(scope, 'rows', { limit: 10 }), [])
    t.same(await kv.commit([step(scope, 0)]), [true])
    t.same(await flaws(kv, scope, 1), [])
  }
})

t.test('restarted empty, it is a server with nothing on it', async (t) => {
  const { server, kv } = await opened(t, {}, HOUR_MS)
  await kv.commit([step('p/0', 0)])
  await server.kill9()
  // Without a connection nothing waits for the time of a command: an hour of it would outlast the test.
  await t.rejects(kv.position('p/0', SOURCE), Unavailable)
  await t.rejects(kv.commit([step('p/0', 1)]), Unavailable)
  await t.rejects(openOn(server.url), Unavailable)
  await server.restart()
  t.equal(await patiently(() => kv.position('p/0', SOURCE)), null)
  t.same(await kv.commit([step('p/0', 1)]), [false])
})

t.test('a server that stands still fails calls within their time-out, and is used again when it moves', async (t) => {
  const { server, kv } = await opened(t, {})
  await kv.commit([step('p/0', 0)])
  server.pause()
  const before = performance.now()
  const calls = Array.from({ length: 300 }, (_, at) =>
    at % 2 === 0 ? kv.commit([step('p/0', 1)]) : kv.get('p/0', [['heap', '0']]),
  )
  const outcomes = await Promise.allSettled(calls)
  const tookMs = performance.now() - before
  t.ok(outcomes.every((outcome) => outcome.status === 'rejected' && outcome.reason instanceof Unavailable))
  t.ok(tookMs >= COMMAND_MS_MAX - 50, 'they had their time')
  await sleep(Math.max(3_000 - tookMs, 0))
  server.resume()
  t.equal(
    await patiently(() => kv.position('p/0', SOURCE)),
    2,
    'one of those nobody waited for any more was done, once',
  )
  t.same(await flaws(kv, 'p/0', 2), [])
  t.same(await kv.commit([step('p/0', 2)]), [true])
})

t.test('a link that goes silent is replaced, even if nobody uses it', async (t) => {
  const server = await startRedis()
  const proxy = await startProxy(server)
  const kv = await openOn(proxy.url)
  t.teardown(async () => {
    await kv.close()
    await proxy.close()
    await server.remove()
  })
  await kv.commit([step('p/0', 0)])
  const connections = proxy.connections()
  proxy.silence()
  const before = performance.now()
  while (proxy.connections() === connections && performance.now() - before < 120_000) await sleep(50)
  t.ok(proxy.connections() > connections)
  await patiently(() => kv.commit([step('p/0', 1)]))
  t.equal(await kv.position('p/0', SOURCE), 2)
})

t.test('a full server takes nothing of a commit, still serves, and takes again what was made room for', async (t) => {
  const { server, kv } = await opened(t, { args: ['--maxmemory', '12mb'] }, PATIENT_MS)
  const fill = (at: number): Commit => ({
    scope: 'p/0',
    guard: { source: SOURCE, expect: at === 0 ? null : at, next: at + 1 },
    put: ['a', 'b', 'c'].map((id) => ({ key: ['c', `${at}${id}`] as const, value: new Uint8Array(100_000) })),
    add: [[['counters', 'n'], 1]],
  })
  let at = 0
  const outcome = (commit: Commit) =>
    kv.commit([commit]).then(
      ([done]) => done,
      (error: unknown) => error,
    )
  let refusal: unknown = true
  while (refusal === true && at < 1_000) {
    refusal = await outcome(fill(at))
    if (refusal === true) at += 1
  }
  t.ok(refusal instanceof Full)
  t.ok(at > 5)
  const state = async () => [
    await kv.position('p/0', SOURCE),
    (await kv.get('p/0', [['counters', 'n']]))[0]?.value,
    (await kv.scan('p/0', 'c', { limit: 1_000 })).length,
  ]
  t.same(await state(), [at, at, 3 * at])
  const client = await server.client()
  await client.config('SET', 'maxmemory', '1mb')
  const swap = { scope: 'p/0', put: [{ key: ['c', 'x'] as const, value: 1 }], drop: [['c', '0a'] as const] }
  t.ok((await outcome(swap)) instanceof Full)
  t.same(await state(), [at, at, 3 * at], 'the drop of a refused commit is not done')
  const drops = Array.from({ length: 5 }, (_, row) => ['a', 'b', 'c'].map((id) => ['c', `${row}${id}`] as const)).flat()
  t.same(await kv.commit([{ scope: 'p/0', drop: drops }]), [true], 'what frees room is taken')
  await client.config('SET', 'maxmemory', '12mb')
  t.same(await kv.commit([fill(at)]), [true])
})

/** Passes bytes on until `silence`: then open connections stay open and nothing comes through them; new ones work. */
async function startProxy({ port }: RedisServer) {
  const sockets = new Set<Socket>()
  let silenced = new Set<Socket>()
  let connections = 0
  const server = createServer((from) => {
    connections += 1
    const to = connect(port, '127.0.0.1')
    for (const [one, other] of [
      [from, to],
      [to, from],
    ] as const) {
      sockets.add(one)
      one.on('data', (bytes) => silenced.has(one) || other.write(bytes))
      one.on('error', () => undefined)
      one.on('close', () => {
        sockets.delete(one)
        other.destroy()
      })
    }
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `redis://127.0.0.1:${(server.address() as { port: number }).port}`,
    connections: () => connections,
    silence() {
      silenced = new Set(sockets)
    },
    async close() {
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}
