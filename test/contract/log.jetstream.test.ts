// The log on NATS JetStream: the common guarantees, and what only servers of their own can do to it.
import { connect, type NatsConnection } from 'nats'
import t, { type Test } from 'tap'
import { systemClock } from '../../src/lib/clock.ts'
import { Full, Unavailable, Unreadable } from '../../src/lib/failures.ts'
import { must } from '../../src/lib/must.ts'
import { connectNats, UnsafeNats } from '../../src/lib/nats.ts'
import { type JetStreamLog, type JetStreamLogConfig, type LogFact, openJetStreamLog } from '../../src/log/jetstream.ts'
import type { Log, LogRecord } from '../../src/log/log.ts'
import { sized } from '../helpers/depth.ts'
import { type NatsServer, startNats } from '../helpers/nats.ts'
import { logContract } from './log.ts'

const ALL = { recordsMax: 1_000_000, bytesMax: 1_000_000_000, waitMsMax: 0 }
const MIB = 1_048_576
let count = 0
const fresh = (what: string): string => {
  count += 1
  return `${what}${count}`
}

async function started(t: Test, options: Parameters<typeof startNats>[0] = {}): Promise<NatsServer> {
  const server = await startNats(options)
  t.teardown(() => server.remove())
  return server
}

async function connected(t: Test, server: NatsServer): Promise<NatsConnection> {
  const connection = await connectNats({ servers: [server.url], name: 'test' })
  t.teardown(() => connection.close())
  return connection
}

const server = await started(t)
const connection = await connected(t, server)

const configFor = (prefix: string, more: Partial<JetStreamLogConfig> = {}): JetStreamLogConfig => ({
  connection,
  prefix,
  partitions: 2,
  replicas: 1,
  bytesMax: 1_000 * MIB,
  clock: systemClock,
  makeDeploymentId: () => fresh('id'),
  report: () => undefined,
  ...more,
})

async function opened(t: Test, prefix: string, more: Partial<JetStreamLogConfig> = {}): Promise<JetStreamLog> {
  const found = await openJetStreamLog(configFor(prefix, more))
  t.teardown(() => found.log.close())
  return found
}

async function readAll(log: Log, partition: number): Promise<LogRecord[]> {
  const found: LogRecord[] = []
  for (;;) {
    const batch = await log.read('events', partition, found.at(-1)?.seq ?? 0, ALL)
    if (batch.length === 0) return found
    found.push(...batch)
  }
}

const api = async (path: string, body: object = {}) =>
  (await connection.request(`$JS.API.${path}`, JSON.stringify(body), { timeout: 30_000 })).json<
    Record<string, unknown>
  >()

logContract(t, 'jetstream', async () => {
  const prefix = fresh('contract')
  let { log } = await openJetStreamLog(configFor(prefix))
  return {
    log,
    reopen: async () => {
      await log.close()
      log = (await opened(t, prefix)).log
      return log
    },
  }
})

t.test('processes that start together make one deployment, and later ones find it', async (t) => {
  const prefix = fresh('together')
  const logs = await Promise.all(
    [3, 4, 5].map(async (partitions) =>
      opened(t, prefix, { connection: await connected(t, server), partitions, bytesMax: 500 * MIB }),
    ),
  )
  const [first] = logs.map(({ deployment }) => deployment)
  for (const { deployment } of logs) t.same(deployment, first)
  t.ok([3, 4, 5].includes(must(first).partitions), 'one of them was first')
  for (let partition = 0; partition < must(first).partitions; partition += 1) {
    await Promise.all(logs.map(({ log }) => log.append('events', partition, [Buffer.from('x')])))
    const [one, ...others] = await Promise.all(logs.map(({ log }) => readAll(log, partition)))
    t.equal(must(one).length, 3)
    for (const other of others) t.same(other, one)
  }
  await t.rejects(must(logs[0]).log.append('events', must(first).partitions, [Buffer.from('x')]), RangeError)
  const later = await opened(t, prefix, { partitions: 9, bytesMax: 600 * MIB })
  t.same(later.deployment, first, 'the number of partitions is that of the deployment')
  const { bytesMax } = await later.facts()
  t.ok(Math.abs(bytesMax - 600 * MIB) < 1_000, `the size may change: ${bytesMax}`)
})

t.test('a deployment that was not made to its end is completed, as a new one', async (t) => {
  const prefix = fresh('halfway')
  const { deployment, log } = await opened(t, prefix)
  await log.close()
  const { config } = (await api(`STREAM.INFO.${prefix}_changes_0`)) as { config: { description: string } }
  const description = JSON.stringify({ ...JSON.parse(config.description), complete: false })
  await api(`STREAM.UPDATE.${prefix}_changes_0`, { ...config, description })
  await api(`STREAM.DELETE.${prefix}_events_1`)
  const facts: LogFact[] = []
  const again = await opened(t, prefix, { report: (fact) => facts.push(fact) })
  t.same(again.deployment, deployment)
  t.equal(await again.log.last('events', 1), 0)
  t.same(facts, [])
  await again.log.close()
  await api(`STREAM.DELETE.${prefix}_events_1`)
  const lost = await opened(t, prefix, { report: (fact) => facts.push(fact) })
  t.ok((await lost.log.last('events', 1)) > 0, 'a stream that was lost later begins above all it held')
  t.same(facts, [{ kind: 'stream-remade', stream: `${prefix}_events_1` }])
})

t.test('the deployment is known as long as one stream is left', async (t) => {
  const prefix = fresh('left')
  const { deployment, log } = await opened(t, prefix)
  const seq = await log.append('events', 0, [Buffer.from('x')])
  await log.close()
  for (const stream of ['changes_0', 'dead_0', 'events_0', 'events_1', 'identifications_0']) {
    await api(`STREAM.DELETE.${prefix}_${stream}`)
  }
  const again = await opened(t, prefix, { partitions: 7 })
  t.same(again.deployment, deployment)
  t.ok((await again.log.last('events', 0)) > seq)
  t.equal(await again.log.last('identifications', 1), 0)
})

t.test('streams that would lose records are refused', async (t) => {
  const cases: Record<string, object> = {
    'that drop the oldest': { discard: 'old' },
    'that forget': { max_age: 3_600_000_000_000 },
    'of a stranger': { description: 'mine' },
    'of another deployment': {
      description: JSON.stringify({ format: 1, deployment: { id: 'x', partitions: 2 }, base: 0 }),
    },
  }
  for (const [what, change] of Object.entries(cases)) {
    const prefix = fresh('refused')
    await (await opened(t, prefix)).log.close()
    const { config } = await api(`STREAM.INFO.${prefix}_events_1`)
    const { error } = await api(`STREAM.UPDATE.${prefix}_events_1`, { ...(config as object), ...change })
    t.equal(error, undefined)
    await t.rejects(openJetStreamLog(configFor(prefix)), UnsafeNats, what)
  }
  const prefix = fresh('refused')
  await (await opened(t, prefix)).log.close()
  const { config } = await api(`STREAM.INFO.${prefix}_events_1`)
  await api(`STREAM.DELETE.${prefix}_events_1`)
  await api(`STREAM.CREATE.${prefix}_events_1`, { ...(config as object), storage: 'memory' })
  await t.rejects(openJetStreamLog(configFor(prefix)), UnsafeNats, 'in memory')
  const newer = fresh('refused')
  await (await opened(t, newer)).log.close()
  const info = (await api(`STREAM.INFO.${newer}_events_0`)) as { config: { description: string } }
  const description = JSON.stringify({ ...JSON.parse(info.config.description), format: 2 })
  await api(`STREAM.UPDATE.${newer}_events_0`, { ...info.config, description })
  await t.rejects(openJetStreamLog(configFor(newer)), Unreadable, 'of a newer build')
  await t.rejects(openJetStreamLog(configFor('a.b')), RangeError, 'a prefix that is no name')
})

t.test('servers that cannot carry the log are refused', async (t) => {
  await t.rejects(openJetStreamLog(configFor(fresh('r'), { replicas: 3 })), UnsafeNats, 'too few servers')
  await t.rejects(openJetStreamLog(configFor(fresh('r'), { bytesMax: 2 ** 46 })), UnsafeNats, 'too little room')
  const without = await started(t, { jetStream: false })
  const small = await started(t, { config: 'max_payload: 900000' })
  for (const one of [without, small]) {
    await t.rejects(openJetStreamLog(configFor('r', { connection: await connected(t, one) })), UnsafeNats)
  }
  const guarded = await started(t, { config: 'authorization { user: a, password: b }' })
  await t.rejects(connectNats({ servers: [guarded.url], name: 'test', user: 'a', password: 'c' }), UnsafeNats)
  const found = await connectNats({ servers: [guarded.url], name: 'test', user: 'a', password: 'b' })
  await opened(t, 'r', { connection: found })
  await found.close()
  await guarded.stop()
  await t.rejects(connectNats({ servers: [guarded.url], name: 'test' }), Unavailable)
})

t.test('what an acknowledgement means is said as it is', async (t) => {
  const prefix = fresh('facts')
  const known = await opened(t, prefix, { monitorUrls: [server.monitorUrl] })
  t.match(await known.facts(), {
    version: /^\d+\.\d+/,
    cluster: null,
    replicas: 1,
    storage: 'file',
    whenFull: 'refuses',
    servers: [{ url: server.monitorUrl, name: 'alone', version: /^\d/ }],
    acknowledged: /one server.*kill -9/,
  })
  const unknown = await opened(t, prefix, { monitorUrls: ['http://127.0.0.1:1'] })
  t.match(await unknown.facts(), {
    servers: [{ version: null, syncAlways: null }],
    acknowledged: /not a loss of power/,
  })
})

t.test('a full partition refuses, speaks for the log, and takes again after a trim', async (t) => {
  const { log } = await opened(t, fresh('full'), { bytesMax: 8 * MIB })
  const fill = async () => {
    for (let appends = 0; ; appends += 1) {
      const outcome = await log.append('events', 0, [Buffer.alloc(100_000, 1)]).catch((error: unknown) => error)
      if (typeof outcome === 'number') continue
      t.ok(outcome instanceof Full)
      return appends
    }
  }
  const first = await fill()
  t.ok(first > 10, `${first} appends fit`)
  const { bytes, bytesMax } = await log.usage()
  t.ok(bytes > 0.9 * bytesMax && bytesMax <= 8 * MIB, `${bytes} of ${bytesMax}`)
  await log.append('events', 1, [Buffer.from('there is room elsewhere')])
  const fence = { expectLast: await log.last('events', 0) }
  const fenced = await log.append('events', 0, [Buffer.alloc(100_000)], fence).catch((error: unknown) => error)
  t.ok(fenced instanceof Full)
  t.equal((await readAll(log, 0)).length, first, 'what was refused left nothing')
  await log.trim('events', 0, await log.last('events', 0))
  t.equal(await fill(), first)
})

t.test('more than may wait for its acknowledgement is refused at once', async (t) => {
  const { log } = await opened(t, fresh('queued'), { queuedBytesMax: 300_000 })
  const outcomes = await Promise.allSettled(
    Array.from({ length: 6 }, () => log.append('events', 0, [Buffer.alloc(80_000, 1)])),
  )
  t.same(
    outcomes.map(({ status }) => status),
    ['fulfilled', 'fulfilled', 'fulfilled', 'rejected', 'rejected', 'rejected'],
  )
  t.equal(await log.append('events', 0, [Buffer.from('later')]), await log.last('events', 0))
})

t.test('readers behind the writer keep one consumer each, and those that stop lose it', async (t) => {
  const prefix = fresh('consumers')
  const writer = await opened(t, prefix)
  const reader = await opened(t, prefix, { connection: await connected(t, server) })
  const consumers = async () => {
    const { state } = await api(`STREAM.INFO.${prefix}_events_0`)
    return (state as { consumer_count: number }).consumer_count
  }
  let after = 0
  for (let round = 0; round < sized({ quick: 20, usual: 40, long: 100 }); round += 1) {
    const reading = reader.log.read('events', 0, after, { ...ALL, waitMsMax: 30_000 })
    await writer.log.append('events', 0, [Buffer.from(`${round}`)])
    const found = await reading
    t.equal(Buffer.from(must(found.at(-1)).bytes).toString(), `${round}`)
    after = must(found.at(-1)).seq
  }
  // One that was lost to a silence of the machine is removed a moment later.
  const atMost = async (count: number) => {
    for (let tries = 0; (await consumers()) > count && tries < 1_000; tries += 1) await systemClock.sleep(20)
    return await consumers()
  }
  t.equal(await atMost(1), 1)
  let own = 0
  for (let round = 0; round < 20; round += 1) {
    const found = await writer.log.read('events', 0, own, ALL)
    own = must(found.at(-1)).seq
    await writer.log.append('events', 0, [Buffer.from('more')])
  }
  t.ok((await atMost(2)) <= 2)
  await reader.log.close()
  await writer.log.close()
  t.equal(await atMost(0), 0)
})

t.test('a reader that does not read holds a bounded part of what is there', async (t) => {
  const prefix = fresh('bounded')
  const { log } = await opened(t, prefix)
  for (let appends = 0; appends < 60; appends += 1) await log.append('events', 0, [Buffer.alloc(500_000, appends)])
  const other = await connect({ servers: server.url })
  t.teardown(() => other.close())
  const reader = await opened(t, prefix, { connection: other })
  const [first] = await reader.log.read('events', 0, 0, { ...ALL, recordsMax: 1, waitMsMax: 30_000 })
  await systemClock.sleep(300)
  t.ok(other.stats().inBytes < 15_000_000, `${other.stats().inBytes} bytes came`)
  let found = 1
  for (let after = must(first).seq; found < 60; ) {
    const batch = await reader.log.read('events', 0, after, { ...ALL, waitMsMax: 30_000 })
    if (batch.length === 0) break
    found += batch.length
    after = must(batch.at(-1)).seq
  }
  t.equal(found, 60)
  t.ok(other.stats().inBytes < 60 * 500_000 * 1.3, 'and nothing comes twice')
})

t.test(
  'a reader among several writers is handed what its own records were made of, once and with the right bytes',
  async (t) => {
    const prefix = fresh('origins')
    const mine = await opened(t, prefix)
    const other = await opened(t, prefix, { connection: await connected(t, server) })
    const rounds = sized({ quick: 10, usual: 30, long: 100 })
    const read = async (after: number) => mine.log.read('events', 0, after, { ...ALL, waitMsMax: 30_000 })
    await mine.log.append('events', 0, [Buffer.from('first')])
    const [first] = await read(0)
    let after = must(first).seq
    const found: LogRecord[] = []
    for (let round = 0; round < rounds; round += 1) {
      const records = [`mine ${round} a`, `mine ${round} b`].map((text) => Buffer.from(text))
      const appends = [
        other.log.append('events', 0, [Buffer.from(`other ${round}`)], { attached: ['of the other'] }),
        mine.log.append('events', 0, records, { attached: records.map(String) }),
      ]
      const batch = await read(after)
      await Promise.all(appends)
      found.push(...batch)
      after = must(batch.at(-1)).seq
    }
    while (found.length < rounds * 3) {
      const batch = await read(must(found.at(-1)).seq)
      if (batch.length === 0) break
      found.push(...batch)
    }
    t.equal(found.length, rounds * 3)
    let handedOut = 0
    for (const { bytes, attached } of found) {
      const text = Buffer.from(bytes).toString()
      if (attached === undefined) continue
      handedOut += 1
      t.equal(attached, text)
    }
    t.equal(handedOut, rounds * 2, 'all of its own')
    const again = await read(must(first).seq)
    t.ok(again.length > 0)
    t.ok(again.every(({ attached }) => attached === undefined))
  },
)
