// The log on three NATS servers: one may be killed at any time, and with two of them gone nothing is lost, only late.
import t from 'tap'
import { systemClock } from '../../src/lib/clock.ts'
import { Conflict, Unavailable } from '../../src/lib/failures.ts'
import { must } from '../../src/lib/must.ts'
import { connectNats, UnsafeNats } from '../../src/lib/nats.ts'
import { type JetStreamLogConfig, openJetStreamLog } from '../../src/log/jetstream.ts'
import type { Seq } from '../../src/log/log.ts'
import { startNatsCluster } from '../helpers/nats.ts'
import { ALL, follow, readAll, sleep } from '../helpers/nats-log.ts'
import { patiently } from '../helpers/patiently.ts'

/** An election takes its time. */
const PATIENCE_MS = 90_000

t.test('servers are killed under load', async (t) => {
  const cluster = await startNatsCluster(3)
  t.teardown(() => cluster.remove())
  const connection = await connectNats({ servers: cluster.urls, name: 'test' })
  let ids = 0
  const config: JetStreamLogConfig = {
    connection,
    prefix: 'test',
    partitions: 1,
    replicas: 3,
    bytesMax: 1_000_000_000,
    clock: systemClock,
    makeDeploymentId: () => {
      ids += 1
      return `id${process.pid}x${ids}`
    },
    report: () => undefined,
    monitorUrls: cluster.servers.map(({ monitorUrl }) => monitorUrl),
  }
  // Servers that have just found each other may still be choosing who leads, as at the start of a process.
  const { log, facts } = await patiently(() => openJetStreamLog(config), PATIENCE_MS)
  t.teardown(async () => {
    await log.close()
    await connection.close()
  })
  const known = await facts()
  t.match(known, { cluster: 'test', replicas: 3, acknowledged: /2 of 3 servers/ })
  t.equal(known.servers.length, 3)
  await t.rejects(
    patiently(() => openJetStreamLog({ ...config, replicas: 5 }), PATIENCE_MS),
    UnsafeNats,
  )

  const acknowledged: { text: string; seq: Seq }[] = []
  const decided: string[] = []
  let stopping = false
  let lastAckAt = performance.now()
  const write = async (writer: number) => {
    for (let count = 0; !stopping; count += 1) {
      const text = `${writer}:${count}`
      try {
        const seq = await log.append('identifications', 0, [Buffer.from(text)])
        acknowledged.push({ text, seq })
        lastAckAt = performance.now()
      } catch (error) {
        if (!(error instanceof Unavailable)) throw error
        await sleep(20)
      }
    }
  }
  const decide = async () => {
    let last = 0
    for (let count = 0; !stopping; ) {
      const text = `${count}`
      try {
        last = await log.append('events', 0, [Buffer.from(text)], { expectLast: last })
      } catch (error) {
        if (!(error instanceof Unavailable || error instanceof Conflict)) throw error
        const [next] = await patiently(() => log.read('events', 0, last, ALL), PATIENCE_MS)
        if (next === undefined) continue
        if (Buffer.from(next.bytes).toString() !== text) return t.fail('another one decided')
        last = next.seq
      }
      decided.push(text)
      count += 1
    }
  }
  const reader = follow(log, 'identifications', 0)
  const { seen } = reader
  const work = [write(0), write(1), decide()]
  const resumed = async (since: number) => {
    while (lastAckAt < since && performance.now() - since < 120_000) await sleep(20)
    return lastAckAt >= since
  }

  const begun = async () => {
    const enough = acknowledged.length + 20
    for (const from = performance.now(); acknowledged.length < enough && performance.now() - from < 60_000; )
      await sleep(20)
  }
  await begun()
  const leader = await cluster.leaderOf('test_identifications_0')
  let since = performance.now()
  await leader.kill9()
  t.ok(await resumed(since + 300), 'without its leader it goes on')
  await leader.restart()

  const [one, two, three] = cluster.servers
  await begun()
  await Promise.all([must(one).kill9(), must(two).kill9()])
  // What they had acknowledged is heard some turns of the event loop later.
  for (let turn = 0; turn < 5; turn += 1) await sleep(40)
  since = performance.now()
  const alone = await log.append('events', 0, [Buffer.from('x')], { expectLast: 0 }).catch((error: unknown) => error)
  t.ok(alone instanceof Unavailable)
  await sleep(2_000)
  t.ok(lastAckAt < since, 'one server of three acknowledges nothing')
  await Promise.all([must(one).restart(), must(two).restart()])
  since = performance.now()
  t.ok(await resumed(since), 'with all back it goes on')
  const isEnough = () => acknowledged.length > 100 && decided.length > 50 && seen.length > 100
  for (since = performance.now(); !isEnough() && performance.now() - since < 60_000; ) await sleep(100)
  stopping = true
  await Promise.all([...work, reader.stop()])
  t.ok(must(three).pid() > 0)

  const stored = await readAll(log, 'identifications', 0)
  const places = new Map(stored.map(({ bytes, seq }) => [Buffer.from(bytes).toString(), seq]))
  t.equal(places.size, stored.length, 'nothing is there twice')
  t.same(
    acknowledged.filter(({ text, seq }) => places.get(text) !== seq),
    [],
    `${acknowledged.length} acknowledged, all there`,
  )
  const events = (await readAll(log, 'events', 0)).map(({ bytes }) => Buffer.from(bytes).toString())
  t.same(events.slice(0, decided.length), decided)
  t.same(
    seen.map(({ seq }) => seq),
    stored.slice(0, seen.length).map(({ seq }) => seq),
    'a reader got all of it in order',
  )
  t.ok(isEnough())
})
