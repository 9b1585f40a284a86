// The whole way: a service in a process of its own, identifications by HTTP, receivers over TLS.

import { setTimeout as pause } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { verifyWebhook } from '../../src/domain/webhook-signature.ts'
import { eventually } from '../helpers/client.ts'
import { deviceOf } from '../helpers/devices.ts'
import { answer, openReceiver, type Receiver } from '../helpers/receiver.ts'
import { cleanUp, SHARED_ENV } from '../helpers/server.ts'
import { openTenant } from '../helpers/tenant.ts'

t.teardown(cleanUp)

const { server, ...client } = await openTenant()
const BACKLOG_MAX = Number(SHARED_ENV.FINGERPOST_WEBHOOKS_BACKLOG_MAX)
let visitors = 0

/** The workspace is shared: each test has a receiver of its own and takes its webhooks away. */
async function open(t: Test) {
  const receiver = await openReceiver(t, server.receiverTls)
  const url = `https://localhost:${receiver.port}/hook`
  const make = async (body: object = {}) => {
    const made = await client.send('POST', '/v1/webhooks', { body: { url, ...body } })
    t.equal(made.status, 201, made.text)
    t.teardown(() => client.send('DELETE', `/v1/webhooks/${made.body.id}`))
    return made.body
  }
  const call = (method: string, path: string, body?: unknown) =>
    client.send(method, `/v1/webhooks/${path}`, body === undefined ? {} : { body })
  /** Of somebody new. */
  const visit = async () => {
    const { mock, ...body } = deviceOf(++visitors)
    const event = (await client.identify(body, { headers: { 'X-Forwarded-For': mock.ip } })).body
    t.equal(event.visitorFound, false)
    return event
  }
  /** Resolves when the service has told of what happened from now on, to whom it may. */
  const told = async () => {
    const seen = await openReceiver(t, server.receiverTls)
    await make({ url: `https://localhost:${seen.port}/told`, events: ['identification.complete'] })
    return async () => void (await hitsOf(seen, 1))
  }
  return { ...client, receiver, url, make, call, visit, told }
}

const hitsOf = (receiver: Receiver, count: number) =>
  eventually(
    async () => receiver.hits,
    (hits) => hits.length >= count,
  )

t.test('both shapes are told of an identification, signed, in their own form', async (t) => {
  const { make, visit, receiver, call } = await open(t)
  const a = await make({ events: ['identification'] })
  const b = await make({ events: ['identification.complete'] })
  const event = await visit()
  const hits = await hitsOf(receiver, 2)
  t.equal(hits.length, 2)
  const plain = hits.find(({ headers }) => headers['x-service-event'] === 'identification')
  const full = hits.find(({ headers }) => headers['x-service-event'] === 'identification.complete')
  if (plain === undefined || full === undefined) return t.fail('a shape is missing')
  t.ok(verifyWebhook(plain.body, plain.headers, a.secret))
  t.ok(verifyWebhook(full.body, full.headers, b.signingSecret))
  t.notOk(verifyWebhook(full.body, full.headers, a.secret))
  const { requestId, visitorId, verdict, signals } = event
  t.same(JSON.parse(plain.body), {
    event: 'identification',
    timestamp: JSON.parse(plain.body).timestamp,
    data: { requestId, visitorId, verdict, signals },
  })
  const envelope = JSON.parse(full.body)
  t.same(Object.keys(envelope), [
    ...['webhookId', 'eventId', 'eventType', 'apiVersion', 'createdAt', 'idempotencyKey', 'data'],
  ])
  t.match(envelope, { webhookId: b.id, eventType: 'identification.complete', apiVersion: '2026-11-01' })
  t.equal(envelope.idempotencyKey, envelope.eventId.replace('evt_', 'ik_'))
  t.equal(full.headers['x-service-delivery'], envelope.eventId)
  t.match(envelope.data, { requestId, visitorId, device: { platform: 'Windows', screenRes: '1100x750' } })
  t.match(envelope.data.signals, {
    proxy: { detected: false, type: null },
    tor: false,
    rootedDevice: false,
    clonedApp: false,
  })
  const { storageToken: _, ...shown } = event
  t.same(
    Object.keys(shown).filter((name) => !(name in envelope.data)),
    [],
    'every member of the event has its place',
  )
  const told = [
    'linkedId',
    'tag',
    'url',
    'email',
    'request',
    'timestamp',
    'identity',
    'matchedRule',
    'challengeType',
    'label',
  ]
  for (const name of told) t.same(envelope.data[name], event[name], name)

  const listed = await eventually(
    () => call('GET', `${b.id}/deliveries?status=delivered`),
    ({ body }) => body.data.length === 1,
  )
  t.match(listed.body.data[0], { eventId: envelope.eventId, attempts: 1, lastStatusCode: 200, lastError: null })
  const one = await call('GET', `${b.id}/deliveries/${listed.body.data[0].deliveryId}`)
  t.match(one.body, { attempts: [{ n: 1, trigger: 'auto', statusCode: 200, error: null }], payload: envelope })
  t.match((await call('GET', b.id)).body, { successRate: 1, lastDeliveryAt: /Z$/ })
})

t.test('a failed delivery waits for its time and can be sent again by hand with the same bytes', async (t) => {
  const { make, visit, receiver, call } = await open(t)
  receiver.behave = answer(500)
  const { id, signingSecret } = await make({ events: ['visitor.new'] })
  await visit()
  const listed = await eventually(
    () => call('GET', `${id}/deliveries?status=pending`),
    ({ body }) => body.data[0]?.attempts === 1,
  )
  const [delivery] = listed.body.data
  t.match(delivery, { lastStatusCode: 500, lastError: 'http_status', attempts: 1 })
  const inMs = Date.parse(delivery.nextAttemptAt) - (receiver.hits[0]?.at ?? 0)
  t.ok(inMs >= 300_000 && inMs < 330_000, `the next attempt comes ${inMs} ms after the first`)
  receiver.behave = answer(204)
  // Signatures name the second.
  while (Math.floor(Date.now() / 1_000) <= Number(receiver.hits[0]?.headers['x-service-timestamp'])) await pause(20)
  t.equal((await call('POST', `${id}/deliveries/${delivery.deliveryId}/redeliver`)).status, 202)
  const hits = await hitsOf(receiver, 2)
  t.equal(hits.length, 2)
  t.equal(hits[0]?.body, hits[1]?.body, 'the same bytes')
  t.not(hits[0]?.headers['x-service-timestamp'], hits[1]?.headers['x-service-timestamp'])
  t.ok(verifyWebhook(hits[1]?.body ?? '', hits[1]?.headers ?? {}, signingSecret))
  const after = await eventually(
    () => call('GET', `${id}/deliveries/${delivery.deliveryId}`),
    ({ body }) => body.status === 'delivered',
  )
  t.match(after.body, { status: 'delivered', attempts: [{ trigger: 'auto' }, { trigger: 'manual', n: 2 }] })
})

t.test('a pause holds deliveries, the end of it lets them go, and after a DELETE nothing is sent', async (t) => {
  const { make, visit, receiver, call, told } = await open(t)
  const { id } = await make({ events: ['identification.complete'] })
  await call('PUT', id, { enabled: false })
  const isTold = await told()
  await visit()
  await isTold()
  t.equal(receiver.hits.length, 0)
  const waiting = await eventually(
    () => call('GET', `${id}/deliveries?status=pending`),
    ({ body }) => body.data.length === 1,
  )
  t.equal(waiting.body.data.length, 1)
  await call('PUT', id, { enabled: true })
  t.equal((await hitsOf(receiver, 1)).length, 1)
  await call('PUT', id, { enabled: false })
  await visit()
  await call('DELETE', id)
  const isToldAfter = await told()
  await visit()
  await isToldAfter()
  t.equal(receiver.hits.length, 1)
})

t.test('a test is sent at once and told as it went, and counts for nothing', async (t) => {
  const { make, receiver, call } = await open(t)
  const { id, secret } = await make()
  const good = await call('POST', `${id}/test`, { eventType: 'list_update' })
  t.match(good.body, { success: true, statusCode: 200, error: null, eventType: 'list_update', status: 'delivered' })
  t.ok(verifyWebhook(receiver.hits[0]?.body ?? '', receiver.hits[0]?.headers ?? {}, secret))
  t.equal(JSON.parse(receiver.hits[0]?.body ?? '{}').data.test, true)
  receiver.behave = answer(302)
  t.match((await call('POST', `${id}/test`)).body, { success: false, statusCode: 302, error: 'http_status' })
  t.match((await call('GET', id)).body, { successRate: 1, failingSince: null })
  t.match((await call('GET', `${id}/deliveries?status=failed`)).body.data, [{ eventType: 'identification' }])
  t.equal((await call('POST', `${id}/test`, { eventType: 'visitor.new' })).status, 400)
})

t.test('entries of lists and rules that match are told, and a rule can name a webhook', async (t) => {
  const { make, visit, receiver, send, told } = await open(t)
  await make({ events: ['list.entry.added'] })
  const named = await make({ events: ['alert.triggered'] })
  await make({ filters: { verdict: ['allow'] }, events: ['rule_match'] })
  await send('POST', '/v1/lists', { body: { name: 'seen', type: 'visitor' } })
  const conditions = { operator: 'AND', rules: [{ field: 'visitorFound', operator: 'equals', value: false }] }
  const sideEffects = [
    { type: 'addToList', list: 'seen' },
    { type: 'webhook', webhookId: named.id },
  ]
  const rule = { name: 'New', conditions, action: { verdict: 'block', sideEffects }, status: 'live' }
  const ruled = await send('POST', '/v1/rules', { body: rule })
  t.equal(ruled.status, 201)
  t.teardown(() => send('DELETE', `/v1/rules/${ruled.body.id}`))
  const { requestId, visitorId } = await visit()
  const hits = await hitsOf(receiver, 2)
  const isTold = await told()
  await visit()
  await isTold()
  t.equal(
    receiver.hits.filter(({ body }) => JSON.parse(body).event === 'rule_match').length,
    0,
    'the filter wanted another verdict',
  )
  const bodies = hits.map(({ body }) => JSON.parse(body))
  t.match(bodies.find(({ eventType }) => eventType === 'list.entry.added')?.data, {
    listName: 'seen',
    value: visitorId,
    expiresAt: null,
    source: 'rule',
    requestId,
  })
  t.match(
    bodies.find(({ eventType }) => eventType === 'rule.matched'),
    {
      webhookId: named.id,
      data: { requestId, rule: { name: 'New', verdict: 'block' }, deciding: true },
    },
  )
})

t.test('of what waits beyond the bound the oldest fail, and say so; the rest goes out when it may', async (t) => {
  const { make, receiver, call, send } = await open(t)
  const { id } = await make({ events: ['list.entry.added'], enabled: false })
  const list = (await send('POST', '/v1/lists', { body: { name: 'many', type: 'email' } })).body
  const enter = async (from: number, count: number) => {
    const add = Array.from({ length: count }, (_, n) => `entry${from + n}@shop.example`)
    t.equal((await send('PATCH', `/v1/lists/${list.id}/entries`, { body: { add } })).status, 200)
  }
  const counts = async () => {
    const of = async (status: string) =>
      (await call('GET', `${id}/deliveries?status=${status}&limit=100`)).body.data as Record<string, unknown>[]
    return { pending: await of('pending'), failed: await of('failed') }
  }
  const dropped = async () =>
    Number(/^fingerpost_webhook_backlog_dropped_total (\d+)$/m.exec((await send('GET', '/metrics')).text)?.[1])
  const droppedBefore = await dropped()
  await enter(0, 60)
  const before = await eventually(counts, ({ pending }) => pending.length === 60)
  t.equal(before.failed.length, 0)
  await enter(60, 70)
  const after = await eventually(
    counts,
    ({ pending, failed }) => failed.length === 30 && pending.length === BACKLOG_MAX,
  )
  t.equal(after.failed.length, 30)
  t.equal(after.pending.length, BACKLOG_MAX)
  t.ok(after.failed.every(({ lastError, attempts }) => lastError === 'backlog_overflow' && attempts === 0))
  const oldest = new Set(before.pending.map(({ deliveryId }) => deliveryId))
  t.ok(
    after.failed.every(({ deliveryId }) => oldest.has(deliveryId)),
    'the oldest gave way',
  )
  t.equal((await call('GET', id)).body.successRate, 0)
  t.ok((await dropped()) - droppedBefore >= 30)
  await call('PUT', id, { enabled: true })
  await hitsOf(receiver, BACKLOG_MAX)
  const ended = await eventually(counts, ({ pending }) => pending.length === 0)
  t.equal(ended.failed.length, 30)
  t.equal(receiver.hits.length, BACKLOG_MAX, 'what has failed is not sent')
  t.ok(
    receiver.hits.some(({ body }) => JSON.parse(body).data.value === 'entry129@shop.example'),
    'the newest is',
  )
})

t.test('what was not sent yet of an erased visitor is never sent', async (t) => {
  const { make, visit, receiver, call, send, told } = await open(t)
  const { id } = await make({ events: ['identification.complete'], enabled: false })
  const { visitorId } = await visit()
  await eventually(
    () => call('GET', `${id}/deliveries`),
    ({ body }) => body.data.length === 1,
  )
  t.equal((await send('DELETE', `/v1/visitors/${visitorId}`)).status, 200)
  await call('PUT', id, { enabled: true })
  const isTold = await told()
  const next = await visit()
  await isTold()
  const [hit] = await hitsOf(receiver, 1)
  t.equal(receiver.hits.length, 1)
  t.equal(JSON.parse(hit?.body ?? '{}').data.visitorId, next.visitorId)
})
