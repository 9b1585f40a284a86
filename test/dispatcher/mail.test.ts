// Mails about webhooks that fail: once for each state, over a real mail server, whatever that does meanwhile, and beside deliveries.

import { setMaxListeners } from 'node:events'
import t, { type Test } from 'tap'
import type { Attempts } from '../../src/dispatcher/attempt.ts'
import { openMailer } from '../../src/dispatcher/mail.ts'
import { type OutboxEntries, outboxEntriesOf } from '../../src/dispatcher/match.ts'
import { storeOutbox } from '../../src/dispatcher/outbox.ts'
import { startDispatcher } from '../../src/dispatcher/role.ts'
import { sampleOf } from '../../src/dispatcher/samples.ts'
import { openSubscriptions } from '../../src/dispatcher/subscriptions.ts'
import { type Clock, systemClock } from '../../src/lib/clock.ts'
import { openMetrics } from '../../src/lib/metrics.ts'
import { must } from '../../src/lib/must.ts'
import { readDeliveries } from '../../src/records/deliveries.ts'
import { publishHint } from '../../src/records/hints.ts'
import { eventually } from '../helpers/client.ts'
import { createWorkspace, openPorts, prepare, random, startOwner, startSubmit } from '../helpers/control-plane.ts'
import { sized } from '../helpers/depth.ts'
import { openSmtp } from '../helpers/smtp.ts'

const HOUR = 3_600_000
const PASSWORD = 'a password nobody may see'
const ID = 'wh_00000000000000000001'

/** A whole dispatcher with a receiver that answers 500 to everything and a clock that can leap. */
async function open(t: Test, smtpPort: number) {
  const ports = await openPorts(t)
  await prepare(ports)
  startOwner(t, ports)
  const submit = startSubmit(t, ports)
  await submit(createWorkspace('ws_1'))
  let leapMs = 0
  const clock: Clock = { ...systemClock, now: () => systemClock.now() + leapMs }
  let made = 0
  const fail = async (n: number, trigger: 'auto' | 'manual' | 'test') => {
    made += 1
    return { n, trigger, startedAt: clock.now(), durationMs: 1, statusCode: 500, error: 'http_status' }
  }
  const attempts: Attempts = {
    hasRoom: () => true,
    deliver: (_, { n, trigger }) => fail(n, trigger),
    deliverToSlack: (_, __, { n, trigger }) => fail(n, trigger),
  }
  const logged: string[] = []
  const log = (...said: unknown[]) => {
    logged.push(
      said.map((one) => JSON.stringify(one, (_, v) => (v instanceof Error ? { ...v, m: v.stack } : v))).join(),
    )
  }
  const logger = { debug: log, info: log, warn: log, error: log, fatal: log }
  const mailer = openMailer({
    host: '127.0.0.1',
    port: smtpPort,
    tls: 'none',
    user: 'fingerpost',
    password: PASSWORD,
    from: 'fingerpost@shop.example',
    to: ['ops@shop.example', 'second@shop.example'],
  })
  function start() {
    const stopping = new AbortController()
    setMaxListeners(0, stopping.signal)
    const holds: Promise<void>[] = []
    startDispatcher({
      ...ports,
      ...{
        clock,
        random,
        attempts,
        mailer,
        logger: logger as never,
        partitions: 0,
        inFlightMax: 64,
        backlogMax: 1_000,
      },
      metrics: openMetrics(null),
      own(names, hold) {
        for (const name of names) holds.push(hold(name, stopping.signal))
      },
    })
    return async () => {
      stopping.abort()
      await Promise.all(holds)
    }
  }
  const fields = { url: 'https://shop.example/', events: ['*'], filters: null, description: null, sealed: 'x' }
  const data = { id: ID, shape: 'B', ...fields, status: 'active', webhooksMax: 100 } as const
  t.ok((await submit({ type: 'webhook.create', workspace: 'ws_1', env: 'live', actor: 'test', data })).ok)
  const subscriptions = openSubscriptions(ports.kv)
  async function happen(name: string) {
    const told: OutboxEntries = { payloads: [], deliveries: [] }
    const tenant = must(await subscriptions.tenant('ws_1', 'live'))
    const found = { occurrence: sampleOf('identification.complete', 1_000_000, name), verdict: null, ruleId: null }
    outboxEntriesOf(
      told,
      tenant,
      { ...found, botDetected: null },
      { payloadAt: 'p/0', nowMs: clock.now(), visitorId: null },
    )
    for (const [shard, ids] of (await storeOutbox(ports.kv, told, clock.now())).woken) {
      publishHint(ports.bus, 'deliveries.due', { shard, webhookIds: [...ids] })
    }
  }
  const attempted = async (name: string) => {
    const before = made
    await happen(name)
    await eventually(
      async () => made,
      (count) => count > before,
    )
    t.ok(made > before, `${name} was attempted`)
  }
  const deliveries = async () =>
    (await readDeliveries(ports.kv, ID, { holds: () => true }, 100, null)).deliveries.map(({ delivery }) => delivery)
  return { start, attempted, deliveries, logged, leap: (ms: number) => (leapMs += ms) }
}

const subjectOf = (text: string) => /^Subject: (.*)$/m.exec(text)?.[1]

t.test(
  'half a day and a whole one of failures are told once each, over restarts, and a server that refuses',
  async (t) => {
    const smtp = await openSmtp('fingerpost', PASSWORD)
    t.teardown(() => smtp.close())
    const { start, attempted, deliveries, logged, leap } = await open(t, smtp.port)
    let stop = start()
    await attempted('first')
    leap(13 * HOUR)
    smtp.refusal = '451 come back later'
    await attempted('second')
    const refused = await eventually(
      async () => logged.filter((line) => line.includes('451')).length,
      (count) => count > 0,
    )
    t.ok(refused > 0, 'the refusal is told, and tried again later')
    t.equal(smtp.letters.length, 0)
    await attempted('third, while the mail waits')
    smtp.refusal = ''
    leap(120_000)
    await eventually(
      async () => smtp.letters.length,
      (count) => count > 0,
    )
    t.match(smtp.letters, [{ from: 'fingerpost@shop.example', to: ['ops@shop.example', 'second@shop.example'] }])
    t.equal(subjectOf(smtp.letters[0]?.text ?? ''), `Webhook ${ID} has been failing for 12 hours`)
    await stop()
    stop = start()
    await attempted('fourth')
    leap(12 * HOUR)
    await attempted('fifth')
    await eventually(
      async () => smtp.letters.length,
      (count) => count > 1,
    )
    t.equal(subjectOf(smtp.letters[1]?.text ?? ''), `Webhook ${ID} is disabled`)
    const ended = await eventually(deliveries, (all) => all.every(({ status }) => status === 'failed'))
    t.ok(ended.every(({ status }) => status === 'failed'))
    await stop()
    stop = start()
    await systemClock.sleep(sized({ usual: 500, long: 3_000 }))
    await stop()
    t.equal(smtp.letters.length, 2, 'nothing is said twice')
    const encoded = Buffer.from(`\0fingerpost\0${PASSWORD}`).toString('base64')
    t.ok(
      smtp.said.some((line) => line.includes(encoded)),
      'it did sign in',
    )
    t.notOk(
      logged.some((line) => line.includes(PASSWORD) || line.includes(encoded)),
      'and no log has the password',
    )
  },
)

t.test('a wrong password is told without it, and nobody is written to without a server', async (t) => {
  const smtp = await openSmtp('fingerpost', 'another')
  t.teardown(() => smtp.close())
  const settings = {
    ...{
      host: '127.0.0.1',
      port: smtp.port,
      user: 'fingerpost',
      password: PASSWORD,
      from: '',
      to: ['ops@shop.example'],
    },
    tls: 'none' as const,
  }
  const letter = { name: 'one', subject: 'x', text: 'y' }
  const failure = (await openMailer(settings)
    ?.send(letter)
    .catch((error: unknown) => error)) as Error
  t.match(failure, { name: 'MailRefused', message: /EAUTH 535/ })
  t.notMatch(`${failure.stack}${JSON.stringify(failure)}`, PASSWORD)
  t.equal(failure.cause, undefined)
  await t.rejects(must(openMailer({ ...settings, tls: 'starttls' })).send(letter), { name: 'MailRefused' })
  t.equal(smtp.letters.length, 0, 'nothing without encryption where that is asked for')
  t.equal(openMailer({ ...settings, host: '' }), null)
  t.equal(openMailer({ ...settings, to: [] }), null)
})
