// The log while its NATS server is killed, paused and cut off, and while streams and consumers vanish behind its back: what was
// acknowledged is there once and in order, failures are told in time, and everything goes on by itself afterwards.
import { once } from 'node:events'
import { cpSync, rmSync } from 'node:fs'
import { connect, createServer, type Socket } from 'node:net'
import t from 'tap'
import { Conflict, Unavailable } from '../../src/lib/failures.ts'
import { must } from '../../src/lib/must.ts'
import type { Seq } from '../../src/log/log.ts'
import { type NatsServer, startNats } from '../helpers/nats.ts'
import { ALL, follow, openOn, readAll, record, sleep, started, textOf } from '../helpers/nats-log.ts'
import { patiently } from '../helpers/patiently.ts'

t.test('killed under load, every acknowledged append is there once and in order', async (t) => {
  const { server, log } = await started(t)
  const acknowledged: { text: string; seq: Seq }[][] = []
  let stopping = false
  let unknown = 0
  /** Appends without a fence, one after the other; an unknown one is given up. */
  const write = async (writer: number) => {
    const mine: { text: string; seq: Seq }[] = []
    acknowledged.push(mine)
    for (let count = 0; !stopping; count += 1) {
      const text = `${writer}:${count}`
      try {
        mine.push({ text, seq: await log.append('identifications', writer % 2, [record(text)]) })
      } catch (error) {
        if (!(error instanceof Unavailable)) throw error
        unknown += 1
      }
    }
  }
  /** Appends behind its own last one; an unknown outcome is resolved by reading the tail. */
  const decided: string[] = []
  const decide = async (partition: number) => {
    let last = 0
    for (let count = 0; !stopping; ) {
      const text = `${partition}:${count}`
      try {
        last = await log.append('events', partition, [record(text)], { expectLast: last })
      } catch (error) {
        if (!(error instanceof Unavailable)) throw error
        const [next] = await patiently(() => log.read('events', partition, last, ALL))
        if (next === undefined) continue
        if (textOf(next) !== text) return t.fail(`${textOf(next)} instead of ${text}`)
        last = next.seq
      }
      decided.push(text)
      count += 1
    }
  }
  const readers = [0, 1].map((partition) => follow(log, 'identifications', partition))
  const work = [...[0, 1, 2, 3, 4, 5].map(write), ...[0, 1].map(decide)]
  for (let cycle = 0; cycle < 4; cycle += 1) {
    await sleep(200 + 70 * cycle)
    await server.kill9()
    await sleep(60)
    await server.restart()
    await patiently(() => log.last('events', 0))
  }
  const isEnough = () => acknowledged.flat().length > 500 && decided.length > 100
  for (const from = performance.now(); !isEnough() && performance.now() - from < 60_000; ) await sleep(100)
  stopping = true
  await Promise.all(work)
  t.comment(`${acknowledged.flat().length} acknowledged, ${decided.length} decided, ${unknown} unknown`)
  t.ok(isEnough())
  for (const partition of [0, 1]) {
    const stored = await readAll(log, 'identifications', partition)
    const places = new Map<string, Seq[]>()
    for (const one of stored) places.set(textOf(one), [...(places.get(textOf(one)) ?? []), one.seq])
    t.same([...places.values()].filter((seqs) => seqs.length > 1).length, 0, 'nothing is there twice')
    const wrong = acknowledged
      .filter((_, writer) => writer % 2 === partition)
      .flatMap((mine) => mine.filter(({ text, seq }) => places.get(text)?.[0] !== seq))
    t.same(wrong, [], 'each is where the acknowledgement said')
    const expected = decided.filter((text) => text.startsWith(`${partition}:`))
    t.same((await readAll(log, 'events', partition)).map(textOf).slice(0, expected.length), expected)
    await patiently(async () => {
      if (must(readers[partition]).seen.length < stored.length) throw new Unavailable('the reader is behind')
    })
    await must(readers[partition]).stop()
    t.same(must(readers[partition]).seen.map(textOf), stored.map(textOf), 'a reader got all of it, once')
  }
})

t.test('killed after everything was trimmed, the log goes on where it was', async (t) => {
  const { server, log } = await started(t)
  for (let round = 0; round < 3; round += 1) {
    for (let count = 0; count < 20; count += 1) await log.append('events', 0, [Buffer.alloc(20_000)])
    const last = await log.last('events', 0)
    await log.trim('events', 0, last)
    await server.kill9()
    await server.restart()
    const found = await patiently(() => log.last('events', 0))
    t.equal(found, last)
    t.same(await readAll(log, 'events', 0), [])
    t.ok((await patiently(() => log.append('events', 0, [record('next')], { expectLast: last }))) > last)
  }
})

t.test(
  'a server that comes back with less than it acknowledged is told of, and stale writers are refused',
  async (t) => {
    const { server, log, facts } = await started(t)
    for (let count = 0; count < 5; count += 1) await log.append('events', 0, [record('kept')])
    await server.stop()
    const copy = `${server.dir}.copy`
    cpSync(server.dir, copy, { recursive: true })
    await server.restart()
    const last = await patiently(() => log.append('events', 0, [record('lost')]))
    await server.kill9()
    rmSync(server.dir, { recursive: true })
    cpSync(copy, server.dir, { recursive: true })
    await server.restart()
    const found = await patiently(() => log.last('events', 0))
    t.ok(found < last)
    t.match(facts, [{ kind: 'went-back', stream: 'test_events_0' }])
    await t.rejects(log.append('events', 0, [record('x')], { expectLast: last }), Conflict)
    await log.append('events', 0, [record('next')], { expectLast: found })
  },
)

t.test('streams and consumers that vanish are made again', async (t) => {
  const { server, log, facts } = await started(t)
  const other = await openOn(t, [server.url])
  const reader = follow(other, 'events', 0)
  const before = await log.append('events', 0, [record('before')])
  const api = await server.client()
  const call = async (path: string) =>
    (await api.request(`$JS.API.${path}`, '', { timeout: 30_000 })).json<{ consumers?: string[] }>()
  const until = async (text: string) => {
    for (const deadline = performance.now() + 60_000; performance.now() < deadline; await sleep(10)) {
      if (reader.seen.some((one) => textOf(one) === text)) return true
    }
    return false
  }
  t.ok(await until('before'))

  const { consumers } = await call('CONSUMER.NAMES.test_events_0')
  for (const name of must(consumers)) await call(`CONSUMER.DELETE.test_events_0.${name}`)
  await log.append('events', 0, [record('without consumers')])
  t.ok(await until('without consumers'), 'a reader goes on')

  const stale = await log.last('events', 0)
  await call('STREAM.DELETE.test_events_0')
  const fenced = await log.append('events', 0, [record('x')], { expectLast: stale }).catch((error: unknown) => error)
  t.ok(fenced instanceof Unavailable)
  const after = await patiently(() => log.append('events', 0, [record('after')]))
  t.ok(after > stale && stale > before, 'positions do not go back')
  t.ok(await until('after'), 'a reader of another process goes on')
  t.ok(
    (await log.append('events', 0, [record('x')], { expectLast: stale }).catch((error) => error)) instanceof Conflict,
  )
  await other.append('events', 0, [record('by the other')], { expectLast: after })
  t.ok(await until('by the other'))
  t.same(
    (await readAll(log, 'events', 0)).map(textOf),
    ['after', 'by the other'],
    'what was there before is lost, and nothing else',
  )
  t.ok(facts.some(({ kind, stream }) => kind === 'stream-remade' && stream === 'test_events_0'))
  await reader.stop()
  const order = reader.seen.map(({ seq }) => seq)
  t.same(
    order,
    order.toSorted((a, b) => a - b),
  )
})

t.test('what is delivered and never arrives is fetched again', async (t) => {
  const { server, log } = await started(t)
  const reader = follow(await openOn(t, [server.url]), 'events', 0)
  await log.append('events', 0, [record('first')])
  while (reader.seen.length < 1) await sleep(10)
  const thief = await server.client()
  const { consumers } = (await thief.request('$JS.API.CONSUMER.NAMES.test_events_0', '', { timeout: 30_000 })).json<{
    consumers: string[]
  }>()
  let stolen = 0
  thief.subscribe('thief', {
    callback: (_, { data }) => {
      if (data.length > 0) stolen += 1
    },
  })
  const asking = `$JS.API.CONSUMER.MSG.NEXT.test_events_0.${must(consumers[0])}`
  thief.publish(asking, JSON.stringify({ batch: 5, expires: 10_000_000_000 }), { reply: 'thief' })
  await thief.flush()
  for (let count = 0; count < 40; count += 1) await log.append('events', 0, [record(`${count}`)])
  const startedAt = performance.now()
  while (reader.seen.length < 41 && performance.now() - startedAt < 60_000) await sleep(10)
  t.ok(stolen > 0, `${stolen} messages went elsewhere`)
  t.same(reader.seen.map(textOf), ['first', ...Array.from({ length: 40 }, (_, count) => `${count}`)])
  await reader.stop()
})

t.test('while the server stands still appends fail in time, and their outcome can be told afterwards', async (t) => {
  const { server, log } = await started(t)
  const last = await log.append('events', 0, [record('first')])
  const reader = follow(log, 'identifications', 1)
  server.pause()
  const startedAt = performance.now()
  const lostFenced = log.append('events', 0, [record('mine')], { expectLast: last }).catch((error: unknown) => error)
  const riding = log.append('identifications', 1, [record('riding')])
  const lookedAt = t.rejects(log.last('events', 0), Unavailable)
  t.ok((await lostFenced) instanceof Unavailable)
  await lookedAt
  await sleep(Math.max(0, 3_000 - (performance.now() - startedAt)))
  server.resume()
  t.type(await riding, 'number', 'an append without a fence outlasts a short pause')
  const tail = await patiently(() => log.read('events', 0, last, ALL))
  t.same(tail.map(textOf), ['mine'], 'it was done although nobody heard')
  const again = log.append('events', 0, [record('mine')], { expectLast: last })
  await t.rejects(again, Conflict, 'a writer who did not look is refused')
  await log.append('events', 0, [record('next')], { expectLast: must(tail[0]).seq })
  t.same((await readAll(log, 'identifications', 1)).map(textOf), ['riding'], 'and it was done once')
  await patiently(async () => {
    if (reader.seen.length === 0) throw new Unavailable('the reader is behind')
  })
  await reader.stop()
})

t.test('without a server calls fail, and nothing is done late', async (t) => {
  const { server, log } = await started(t)
  const last = await log.append('events', 0, [record('first')])
  await server.kill9()
  await sleep(100)
  await t.rejects(log.append('events', 0, [record('x')], { expectLast: last }), Unavailable)
  await t.rejects(log.read('events', 0, last, ALL), Unavailable)
  await t.rejects(log.usage(), Unavailable)
  await t.rejects(log.append('identifications', 0, [record('x')]), Unavailable)
  await t.rejects(log.append('identifications', 0, [record('x')]), Unavailable)
  await server.restart()
  await patiently(() => log.append('events', 0, [record('second')], { expectLast: last }))
  t.same((await readAll(log, 'events', 0)).map(textOf), ['first', 'second'])
  t.same(await readAll(log, 'identifications', 0), [])
})

t.test('a link that goes silent is replaced long before TCP would give it up', async (t) => {
  const server = await startNats()
  const proxy = await startProxy(server)
  t.teardown(async () => {
    await proxy.close()
    await server.remove()
  })
  const log = await openOn(t, [proxy.url])
  const direct = await openOn(t, [server.url])
  const reader = follow(log, 'events', 0)
  await log.append('events', 0, [record('before')])
  proxy.silence()
  const startedAt = performance.now()
  await direct.append('events', 0, [record('meanwhile')])
  while (reader.seen.length < 2 && performance.now() - startedAt < 120_000) await sleep(20)
  t.same(reader.seen.map(textOf), ['before', 'meanwhile'])
  await patiently(() => log.append('events', 0, [record('after')]))
  await reader.stop()
})

/** Passes bytes on until `silence`: then open connections stay open and nothing comes through them; new ones work. */
async function startProxy(server: NatsServer) {
  const port = Number(new URL(server.url).port)
  const sockets = new Set<Socket>()
  let silenced = new Set<Socket>()
  const listener = createServer((from) => {
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
  listener.listen(0, '127.0.0.1')
  await once(listener, 'listening')
  return {
    url: `nats://127.0.0.1:${(listener.address() as { port: number }).port}`,
    silence() {
      silenced = new Set(sockets)
    },
    async close() {
      for (const socket of sockets) socket.destroy()
      listener.close()
      await once(listener, 'close')
    },
  }
}
