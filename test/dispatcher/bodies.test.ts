// Every type of event as receivers get it from a whole service, held to the schema that the reference gives for it. That a whole
// service cuts what is too long is in bodies.long.test.ts.

import t from 'tap'
import { bodyFor, renderPayload } from '../../src/dispatcher/envelope.ts'
import { sampleOf } from '../../src/dispatcher/samples.ts'
import { EVENT_TYPES, PAYLOAD_BYTES_MAX, PLAIN_EVENT_NAMES } from '../../src/domain/webhook.ts'
import { must } from '../../src/lib/must.ts'
import { browserBody, CHROME, eventually } from '../helpers/client.ts'
import { fetchDescription } from '../helpers/described.ts'
import { openReceiver } from '../helpers/receiver.ts'
import { cleanUp } from '../helpers/server.ts'
import { openTenant, removeAlerts } from '../helpers/tenant.ts'

const { server, ...client } = await openTenant()
t.teardown(async () => {
  await removeAlerts({ server, send: client.send })
  await cleanUp()
})
const receiver = await openReceiver(t, server.receiverTls)
const { testSecret } = server.keys
const description = await fetchDescription(server.url)

const send = async (method: string, path: string, body: object) => {
  const answer = await client.send(method, path, { key: testSecret, body })
  if (answer.status >= 300) t.fail(`${method} ${path}: ${answer.text}`)
  return answer.body
}
const faultsOf = (bodies: readonly string[]) =>
  bodies.flatMap((body) => description?.deliveryFaults(body) ?? ['no API'])
const typeOf = (body: string): string => {
  const { eventType, event } = JSON.parse(body)
  return eventType ?? event
}

t.test('what is sent of every type has the schema of its type, in both forms', async (t) => {
  const url = `https://localhost:${receiver.port}/hook`
  await send('POST', '/v1/webhooks', { url, events: ['*'] })
  await send('POST', '/v1/webhooks', { url, events: [...PLAIN_EVENT_NAMES] })
  const list = await send('POST', '/v1/lists', { name: 'bots', type: 'visitor', ttl: 1 })
  await send('PATCH', `/v1/lists/${list.id}/entries`, { add: [{ value: 'pv_00000000000000000009', ttl: 2 }] })
  const alert = { metric: 'events', operator: 'gte', threshold: 1, windowSeconds: 60, filters: { platform: 'Windows' } }
  await send('POST', '/v1/alerts', { ...alert, name: 'Anybody' })
  const ruleOn = (signal: string, name: string, action: object) =>
    send('POST', '/v1/rules', {
      name,
      action,
      status: 'live',
      conditions: {
        operator: 'AND',
        rules: [{ field: `signals.${signal}.detected`, operator: 'equals', value: true }],
      },
    })
  const sideEffects = [{ type: 'addToList', list: 'bots' }]
  await ruleOn('bot', 'Bots', { verdict: 'block', sideEffects })
  await ruleOn('vpn', 'Tunnels', { verdict: 'challenge', challengeType: 'otp' })
  const wanted = new Set<string>([...EVENT_TYPES, ...PLAIN_EVENT_NAMES])
  const { visitorId: first } = (await client.identify({ userAgent: CHROME }, { key: testSecret })).body
  const seen = await eventually(
    async () => {
      const mocks = [{}, { signals: { bot: true } }, { signals: { vpn: true } }]
      for (const mock of mocks) {
        await client.identify({ userAgent: CHROME, mock: { ip: '203.0.113.9', ...mock } }, { key: testSecret })
      }
      const { body } = await client.identify({ ...browserBody(), userAgent: CHROME }, { key: testSecret })
      if (body.visitorId !== first)
        await client.send('POST', `/v1/visitors/${first}/merge`, {
          key: testSecret,
          body: { visitorId: body.visitorId },
        })
      return new Set(receiver.hits.map(({ body }) => typeOf(body)))
    },
    (types) => types.size === wanted.size,
    120_000,
  )
  t.same(
    [...wanted].filter((type) => !seen.has(type)),
    [],
    'every type was sent',
  )
  t.same(faultsOf(receiver.hits.map(({ body }) => body)), [])
})

t.test('so has a body that was too long and kept its ids alone', async (t) => {
  const { data, plainData, ...sample } = sampleOf('identification.complete', Date.now(), 'x')
  const more = 'x'.repeat(PAYLOAD_BYTES_MAX)
  const long = { ...sample, data: { ...data, more }, plainData: { ...plainData, more } }
  const payload = renderPayload(long, '2026-11-01', new Set(['A', 'B']))
  for (const [shape, id] of [
    ['A', 'whk_00000000000000000001'],
    ['B', 'wh_00000000000000000001'],
  ] as const) {
    const body = must(bodyFor({ id, shape }, payload)).toString('utf8')
    const { data: kept, ...head } = JSON.parse(body)
    t.equal(kept.truncated, true)
    t.same(faultsOf([body]), [])
    t.not(faultsOf([JSON.stringify({ ...head, data: { ...kept, truncated: false } })]).length, 0)
  }
})

t.test('so has the sample that a test sends', async (t) => {
  const url = `https://localhost:${receiver.port}/sample`
  const full = await send('POST', '/v1/webhooks', { url, events: ['alert.triggered'] })
  const plain = await send('POST', '/v1/webhooks', { url, events: ['list_update'] })
  const types = { [full.id]: EVENT_TYPES, [plain.id]: PLAIN_EVENT_NAMES }
  const before = receiver.hits.length
  for (const [id, names] of Object.entries(types)) {
    for (const eventType of names) {
      // Ten a minute are allowed of one webhook.
      const of = id === full.id && names.indexOf(eventType as never) === 10 ? await another(url) : id
      const { success } = await send('POST', `/v1/webhooks/${of}/test`, { eventType })
      t.equal(success, true, eventType)
    }
  }
  const bodies = receiver.hits.slice(before).filter(({ path }) => path === '/sample')
  t.ok(bodies.length >= EVENT_TYPES.length + PLAIN_EVENT_NAMES.length)
  t.same(faultsOf(bodies.map(({ body }) => body)), [])
})

t.test('a sample shows no scores where the plan has none', async (t) => {
  const url = `https://localhost:${receiver.port}/starter`
  const workspace = await client.send('POST', '/admin/v1/workspaces', {
    key: server.operatorToken,
    body: { name: 'small', plan: 'starter' },
  })
  const made = await client.send('POST', `/admin/v1/workspaces/${workspace.body.id}/keys`, {
    key: server.operatorToken,
    body: { kind: 'secret', environment: 'test' },
  })
  const { key } = made.body
  const { body: webhook } = await client.send('POST', '/v1/webhooks', { key, body: { url, events: ['*'] } })
  for (const eventType of ['identification.complete', 'verdict.block']) {
    await client.send('POST', `/v1/webhooks/${webhook.id}/test`, { key, body: { eventType } })
  }
  const bodies = receiver.hits.filter(({ path }) => path === '/starter').map(({ body }) => body)
  t.equal(bodies.length, 2)
  for (const body of bodies) t.notOk('scores' in JSON.parse(body).data, body)
  t.same(faultsOf(bodies), [])
})

const another = async (url: string) => (await send('POST', '/v1/webhooks', { url, events: ['alert.triggered'] })).id

t.test('a body that is not as described is found', async (t) => {
  const body = receiver.hits.map((hit) => hit.body).find((text) => typeOf(text) === 'visitor.new') ?? '{}'
  const { data, ...head } = JSON.parse(body)
  t.same(faultsOf([body]), [])
  t.not(faultsOf([JSON.stringify({ ...head, data: { ...data, firstSeenAt: 'today' } })]).length, 0)
  t.not(faultsOf([JSON.stringify({ ...head, data: { ...data, more: 1 } })]).length, 0)
  t.not(faultsOf([JSON.stringify({ ...head, eventType: 'visitor.gone', data })]).length, 0)
})
