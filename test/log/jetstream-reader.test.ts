// Who reads on JetStream what it appends itself: from memory while nobody else appends, and all of it, in order, when somebody does.

import t from 'tap'
import { systemClock } from '../../src/lib/clock.ts'
import { connectNats } from '../../src/lib/nats.ts'
import { openJetStreamLog } from '../../src/log/jetstream.ts'
import type { Log } from '../../src/log/log.ts'
import { startNats } from '../helpers/nats.ts'
import { ALL, follow, textOf } from '../helpers/nats-log.ts'
import { until } from '../helpers/processes.ts'

const RECORD_BYTES = 20_000
const OWN = 600
/** What a feed takes that nobody reads from, and as much again for answers. */
const SENT_BACK_BYTES_MAX = 8 * 1024 * 1024
/** Longer than nobody else must have appended. */
const ALONE_FOR_MS = 11_000
/** Further appends until what somebody else appended is read: each of them tells of it. */
const BEHIND_MAX = 20

const server = await startNats()
t.teardown(() => server.remove())
let skewMs = 0
const clock = { ...systemClock, monotonic: () => systemClock.monotonic() + skewMs }

async function opened(id: string) {
  const connection = await connectNats({ servers: [server.url], name: id })
  const ids = { partitions: 1, replicas: 1, prefix: 'test', makeDeploymentId: () => id }
  const { log } = await openJetStreamLog({ connection, clock, bytesMax: 1e9, report: () => undefined, ...ids })
  t.teardown(async () => {
    await log.close()
    await connection.close()
  })
  async function consumers(stream: string): Promise<number> {
    const answer = await connection.request(`$JS.API.STREAM.INFO.${stream}`)
    return answer.json<{ readonly state: { readonly consumer_count: number } }>().state.consumer_count
  }
  return { log, inBytes: () => connection.stats().inBytes, consumers }
}

const record = (name: string) => Buffer.alloc(RECORD_BYTES, ' ').fill(name, 0, name.length)

t.test('what only this process appends is not sent back to it, and what another one appends is read', async (t) => {
  const [own, other] = [await opened('own'), await opened('other')]
  const appended: string[] = []
  async function append({ log }: { readonly log: Log }, name: string): Promise<void> {
    await log.append('identifications', 0, [record(name)])
    appended.push(name)
  }
  const reader = follow(own.log, 'identifications', 0)
  const names = () => reader.seen.map((one) => textOf(one).trim())
  await append(own, 'first')
  await until('the first record', 30_000, () => reader.seen.length === 1)
  skewMs += ALONE_FOR_MS

  const before = own.inBytes()
  for (let n = 0; n < OWN; n++) await append(own, `own ${n}`)
  await until('all of them', 30_000, () => reader.seen.length === appended.length)
  const sentBack = own.inBytes() - before
  t.ok(sentBack < SENT_BACK_BYTES_MAX, `${sentBack} of ${OWN * RECORD_BYTES} bytes came back`)

  await append(other, 'other')
  for (let n = 0; n < BEHIND_MAX && !names().includes('other'); n++) {
    await append(own, `late ${n}`)
    await systemClock.sleep(10)
  }
  t.ok(names().includes('other'), 'while this process goes on')
  await append(other, 'last')
  await until('what was appended last by another one', 30_000, () => reader.seen.length === appended.length)
  t.same(names(), appended)
  await reader.stop()
})

t.test('somebody who asks once while this process appends is answered, and has no consumer made', async (t) => {
  const { log, consumers } = await opened('once')
  for (let n = 1; n <= BEHIND_MAX; n++) {
    const seq = await log.append('events', 0, [record(`own ${n}`)])
    const records = await log.read('events', 0, seq - 1, ALL)
    t.same(
      records.map((one) => one.seq),
      [seq],
    )
  }
  t.equal(await consumers('test_events_0'), 0)
})
