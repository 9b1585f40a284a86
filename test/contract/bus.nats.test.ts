// The bus on a real NATS server: the common guarantees, between processes, and what becomes of messages when servers fail.
import type { NatsConnection } from 'nats'
import t, { type Test } from 'tap'
import { type NatsBusConfig, openNatsBus } from '../../src/bus/nats.ts'
import { openBus } from '../../src/bus/open.ts'
import { connectNats } from '../../src/lib/nats.ts'
import { type NatsServer, startNats } from '../helpers/nats.ts'
import { until } from '../helpers/processes.ts'
import { openProxy } from '../helpers/proxy.ts'
import { busContract } from './bus.ts'

const server: NatsServer = await startNats({ jetStream: false })
t.teardown(() => server.remove())

let opened = 0
const newPrefix = () => `test${process.pid}_${++opened}`

async function connectTo(t: Test, url = server.url): Promise<NatsConnection> {
  const connection = await connectNats({ servers: [url], name: 'bus test' })
  t.teardown(() => connection.close())
  return connection
}

/** A bus as of a process of its own. */
async function openProcess(t: Test, prefix: string, options: Partial<NatsBusConfig> & { url?: string } = {}) {
  const { url, ...rest } = options
  const connection = await connectTo(t, url)
  const errors: string[] = []
  const bus = openNatsBus({ connection, prefix, onError: (error) => errors.push((error as Error).message), ...rest })
  return { bus, connection, errors }
}

busContract(t, 'nats', async () => {
  const errors: unknown[] = []
  const connection = await connectTo(t)
  const bus = await openBus({
    backend: 'nats',
    connection,
    prefix: newPrefix(),
    onError: (error) => errors.push(error),
  })
  return { bus, errors }
})

t.test('another process receives everything once the server has heard of its subscription', async (t) => {
  const prefix = newPrefix()
  const [here, there] = [await openProcess(t, prefix), await openProcess(t, prefix)]
  const seen: unknown[] = []
  const own: unknown[] = []
  here.bus.subscribe('reply.ing_1', (message) => seen.push(message))
  here.bus.subscribe('reply.ing_2', () => t.fail('wrong subject'))
  there.bus.subscribe('reply.ing_1', (message) => own.push(message))
  // Any answer of the server will do: it reads what comes over one connection in order.
  await here.connection.rtt()
  const messages = Array.from({ length: 500 }, (_, count) => ({
    count,
    text: 'é😀',
    none: null,
    list: [count, [true]],
  }))
  for (const message of messages) there.bus.publish('reply.ing_1', message)
  await until('all messages', 15_000, () => seen.length + own.length >= 2 * messages.length)
  t.same(seen, messages)
  t.same(own, messages)
  t.same([...here.errors, ...there.errors], [])
})

t.test('any text is a subject of its own', async (t) => {
  const { bus, errors } = await openProcess(t, newPrefix())
  const subjects = ['a', 'a.b', 'a.*', '*', '>', 'a.>', '', '.', '..', '...', 'a..b', 'a.', '.a', '=', '=2e', 'a=2eb']
  subjects.push('a b', 'a\tb', 'a\r\nPUB x 0\r\n', 'é', '😀', '\0', 'reply.ing_0Z', 'A', '$SYS.x', 'a-b', '%2e')
  const seen = new Map<string, unknown[]>(subjects.map((subject) => [subject, []]))
  for (const [subject, messages] of seen) bus.subscribe(subject, (message) => messages.push(message))
  for (const subject of subjects) bus.publish(subject, subject)
  await until('all messages', 15_000, () => [...seen.values()].every((messages) => messages.length > 0))
  for (const [subject, messages] of seen) t.same(messages, [subject], JSON.stringify(subject))
  t.throws(() => bus.subscribe('x'.repeat(2_000), () => undefined), RangeError)
  bus.publish('x'.repeat(2_000), 1)
  t.match(errors, [/too long/])
})

t.test('a message the server would refuse is reported and lost, and nothing else with it', async (t) => {
  const { bus, errors } = await openProcess(t, newPrefix())
  const seen: unknown[] = []
  bus.subscribe('s', (message) => seen.push(message))
  bus.publish('s', 'before')
  bus.publish('s', 'x'.repeat(1_100_000))
  bus.publish('s', 'after')
  await until('the others', 15_000, () => seen.length === 2)
  t.same(seen, ['before', 'after'])
  t.match(errors, [/MAX_PAYLOAD/i])
})

t.test('bytes that are no message are reported and ignored', async (t) => {
  const prefix = newPrefix()
  const { bus, connection, errors } = await openProcess(t, prefix)
  const seen: unknown[] = []
  bus.subscribe('s', (message) => seen.push(message))
  for (const bytes of [[], [0xc1], [0x93, 1], [0xc0], [0x92, 1, 2], [0xff, 0xfe, 0xfd]]) {
    connection.publish(`${prefix}.bus.s`, Uint8Array.from(bytes))
  }
  bus.publish('s', null)
  await until('the message', 15_000, () => seen.length > 0)
  t.same(seen, [null])
  t.equal(errors.length, 6)
  t.match(errors[0], /cannot be read/)
})

t.test('an outage loses messages, says how many once, and ends without a trace', async (t) => {
  const own = await startNats({ jetStream: false })
  t.teardown(() => own.remove())
  const { bus, connection, errors } = await openProcess(t, 'outage', { url: own.url })
  const early: unknown[] = []
  const late: unknown[] = []
  bus.subscribe('early', (message) => early.push(message))
  bus.publish('early', 'before')
  await until('the first', 15_000, () => early.length === 1)
  await own.kill9()
  await until('the loss', 15_000, () => {
    bus.publish('early', 'x'.repeat(10_000))
    return connection.info === undefined
  })
  for (let count = 0; count < 5_000; count += 1) bus.publish('early', 'x'.repeat(10_000))
  t.same(errors, [], 'nothing yet: the count is not known')
  bus.subscribe('late', (message) => late.push(message))
  bus.subscribe('left', () => t.fail('left during the outage'))()
  await own.restart()
  await until('the report', 10_000, () => errors.length > 0)
  for (const subject of ['early', 'late', 'left']) bus.publish(subject, 'after')
  await until('both', 15_000, () => early.length >= 2 && late.length >= 1)
  await connection.rtt()
  t.same([early, late], [['before', 'after'], ['after']])
  t.equal(errors.length, 1)
  const lost = Number(/^(\d+) messages/.exec(errors[0] ?? '')?.[1])
  t.ok(lost >= 5_000 && lost < 6_000, errors[0] ?? 'none')
})

t.test('a silent link keeps a bounded number of bytes waiting', async (t) => {
  const proxy = await openProxy({ target: { port: Number(new URL(server.url).port) } })
  t.teardown(() => proxy.close())
  const url = `nats://127.0.0.1:${proxy.port}`
  const { bus, errors } = await openProcess(t, newPrefix(), { url, unconfirmedBytesMax: 1_000_000 })
  const seen: number[] = []
  bus.subscribe('s', (message) => seen.push((message as { count: number }).count))
  proxy.mode({ kind: 'blackhole' })
  const text = 'x'.repeat(50_000)
  for (let count = 0; count < 200; count += 1) bus.publish('s', { count, text })
  proxy.mode({ kind: 'pass' })
  await until('the report', 15_000, () => errors.length > 0)
  t.match(errors, [/^1[78]\d messages .* NATS took no more/])
  bus.publish('s', { count: -1, text: '' })
  await until('the last', 15_000, () => seen.at(-1) === -1)
  t.ok(seen.length < 30, `${seen.length} were kept`)
  t.same(
    seen.slice(0, -1),
    Array.from({ length: seen.length - 1 }, (_, count) => count),
  )
})

t.test('what the server does not permit is reported', async (t) => {
  const limits = '{ deny: "p.bus.no.>" }'
  const own = await startNats({
    jetStream: false,
    config: `no_auth_user: all
      authorization { users: [
        { user: all, password: all },
        { user: some, password: some, permissions: { publish: ${limits}, subscribe: ${limits} } } ] }`,
  })
  t.teardown(() => own.remove())
  const connection = await connectNats({ servers: [own.url], name: 'bus test', user: 'some', password: 'some' })
  t.teardown(() => connection.close())
  const errors: string[] = []
  const bus = openNatsBus({ connection, prefix: 'p', onError: (error) => errors.push((error as Error).message) })
  const seen: unknown[] = []
  bus.subscribe('yes', (message) => seen.push(message))
  bus.subscribe('no.a', () => t.fail('not permitted'))
  bus.publish('no.b', 1)
  bus.publish('yes', 2)
  await until('both reports', 15_000, () => errors.length === 2 && seen.length === 1)
  t.match(errors, [/no subscription of p\.bus\.no\.a/, /no publish of p\.bus\.no\.b/])
})

t.test('a bus whose connection was closed says so once and never throws', async (t) => {
  const { bus, connection, errors } = await openProcess(t, newPrefix())
  bus.subscribe('s', () => t.fail('nothing is published'))
  await connection.close()
  await until('the report', 15_000, () => errors.length > 0)
  for (let count = 0; count < 10; count += 1) bus.publish('s', count)
  bus.subscribe('t', () => undefined)()
  t.equal(errors.length, 1)
  await bus.close()
})

t.test('what was published just before closing is delivered', async (t) => {
  const prefix = newPrefix()
  const [here, there] = [await openProcess(t, prefix), await openProcess(t, prefix)]
  const seen: unknown[] = []
  here.bus.subscribe('s', (message) => seen.push(message))
  await here.connection.rtt()
  there.bus.publish('s', 'farewell')
  await there.bus.close()
  await there.connection.close()
  await until('the farewell', 15_000, () => seen.length === 1)
  t.same(seen, ['farewell'])
})
