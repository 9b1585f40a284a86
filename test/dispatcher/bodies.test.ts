// Every type of event as receivers get it from a whole service, held to the schema that the reference gives for it.

import t from 'tap'
import { EVENT_TYPES, PAYLOAD_BYTES_MAX, PLAIN_EVENT_NAMES } from '../../src/domain/webhook.ts'
import { browserBody, CHROME, clientOf, eventually } from '../helpers/client.ts'
import { fetchDescription } from '../helpers/described.ts'
import { makeAuthority, openReceiver } from '../helpers/receiver.ts'
import { cleanUp, startServer } from '../helpers/server.ts'

t.teardown(cleanUp)
const authority = makeAuthority(t)
const receiver = await openReceiver(t, authority.leaf('DNS:localhost,IP:127.0.0.1'))
const server = await startServer({
  env: {
    FINGERPOST_WEBHOOKS_ALLOW_PRIVATE_CIDRS: '127.0.0.0/8,::1/128',
    FINGERPOST_WEBHOOKS_EXTRA_CA_FILE: authority.caFile,
    FINGERPOST_ALERTS_EVERY_SECONDS: '1',
  },
})
const { testSecret } = server.keys
const client = clientOf(server)
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
      ...{ name, action, status: 'live' },
      conditions: {
        operator: 'AND',
        rules: [{ field: `signals.${signal}.detected`, operator: 'equals', value: true }],
      },
    })
  const sideEffects = [{ type: 'addToList', list: 'bots' }]
  await ruleOn('bot', 'Bots', { verdict: 'block', sideEffects })
  await ruleOn('vpn', 'Tunnels', { verdict: 'challenge', challengeType: 'otp' })
  const wanted = new Set<string>([...EVENT_TYPES, ...PLAIN_EVENT_NAMES])
  const seen = await eventually(
    async () => {
      const mocks = [{}, { signals: { bot: true } }, { signals: { vpn: true } }]
      for (const mock of mocks) {
        await client.identify({ userAgent: CHROME, mock: { ip: '203.0.113.9', ...mock } }, { key: testSecret })
      }
      await client.identify({ ...browserBody(), userAgent: CHROME }, { key: testSecret })
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
  const path = '/long'
  const url = `https://localhost:${receiver.port}${path}`
  await send('POST', '/v1/webhooks', { url, events: ['identification.complete'] })
  const rule = {
    action: { verdict: 'allow' },
    conditions: { operator: 'AND', rules: [{ field: 'tag.long', operator: 'equals', value: true }] },
    status: 'live',
  }
  // Each of these characters takes six bytes of JSON.
  const name = '\u0001'.repeat(200)
  const [rules, atOnce] = [Math.ceil(PAYLOAD_BYTES_MAX / JSON.stringify(name).length), 16]
  for (let made = 0; made < rules; made += atOnce) {
    await Promise.all(Array.from({ length: atOnce }, () => send('POST', '/v1/rules', { ...rule, name })))
  }
  const event = await client.identify({ userAgent: CHROME, tag: { long: true } }, { key: testSecret })
  const { requestId, visitorId, verdict } = event.body
  const hit = await eventually(
    async () => receiver.hits.find((one) => one.path === path),
    (one) => one !== undefined,
  )
  const body = hit?.body ?? '{"data":{}}'
  t.same(JSON.parse(body).data, { requestId, visitorId, verdict, truncated: true })
  t.same(faultsOf([body]), [])
  const { data, ...head } = JSON.parse(body)
  t.not(faultsOf([JSON.stringify({ ...head, data: { ...data, truncated: false } })]).length, 0)
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
