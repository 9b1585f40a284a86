// What was said of events, erased, created once and fired before a kill -9 is so after it: all of that made on one server, which
// is killed right after its last answer and started again.

import t, { type Test } from 'tap'
import { type Answer, browserBody, CHROME, clientOf, errorOf, eventually } from '../helpers/client.ts'
import { cleanUp, startServer, temporaryFolder } from '../helpers/server.ts'

t.setTimeout(600_000)
t.teardown(cleanUp)

const dataDir = temporaryFolder()
const env = { FINGERPOST_ALERTS_EVERY_SECONDS: '1' }
let server = await startServer({ dataDir, env })
let client = clientOf(server)
const { keys, port } = server

const send = (method: string, path: string, body?: unknown, key = keys.secret) =>
  client.send(method, path, { key, ...(body === undefined ? {} : { body }) })

let made = 0
async function visit(storageToken: string | null = null, gpu = `GPU ${++made}`) {
  const device = browserBody(gpu)
  Object.assign(device.components, { audio: { value: 200 + made }, fonts: { value: [gpu] } })
  const { status, body, text } = await client.identify({
    ...device,
    storageToken,
    userAgent: CHROME,
    linkedId: 'before',
  })
  if (status !== 200) throw new Error(`identify: ${status} ${text}`)
  return body as { requestId: string; visitorId: string; storageToken: string }
}
const listed = async (query: string): Promise<string[]> =>
  (await client.get(`/v1/events?${query}`)).body.data.map((one: { requestId: string }) => one.requestId)
const patch = async (requestId: string, body: object) => {
  const { status, text } = await send('PATCH', `/v1/events/${requestId}`, body)
  if (status !== 200) throw new Error(`${status} ${text}`)
}

/** What the last moments before the kill do, and what must be so afterwards. */
interface Survival {
  readonly name: string
  last?(): Promise<void>
  check(t: Test): Promise<void>
}

async function patches(): Promise<Survival> {
  const first = await visit()
  const second = await visit()
  await eventually(
    () => listed('linkedId=before'),
    (ids) => ids.includes(second.requestId),
  )
  return {
    name: 'what was said of events is kept, and the last word stays the last',
    async last() {
      await patch(first.requestId, { linkedId: 'one', label: 'fraud' })
      await patch(first.requestId, { linkedId: 'two' })
      await patch(second.requestId, { tag: { kept: true } })
    },
    async check(t) {
      const shown = await eventually(
        () => client.get(`/v1/events/${first.requestId}`),
        ({ status }) => status === 200,
      )
      t.match(shown.body, { linkedId: 'two', label: 'fraud' })
      t.match((await client.get(`/v1/events/${second.requestId}`)).body.tag, { kept: true })
      t.same(
        await eventually(
          () => listed('linkedId=two'),
          (ids) => ids.length > 0,
        ),
        [first.requestId],
      )
      t.same(await listed('linkedId=one'), [])
    },
  }
}

async function erasure(): Promise<Survival> {
  const first = await visit()
  const gpu = `GPU ${made}`
  const last = await visit(first.storageToken, gpu)
  await eventually(
    () => client.get(`/v1/visitors/${first.visitorId}`),
    ({ status }) => status === 200,
  )
  return {
    name: 'an erased visitor stays erased, and its token does not bring it back',
    async last() {
      const { status } = await send('DELETE', `/v1/visitors/${first.visitorId}`)
      if (status !== 200) throw new Error(`${status}`)
    },
    async check(t) {
      t.equal((await client.get(`/v1/events/${last.requestId}`)).status, 404)
      t.equal((await client.get(`/v1/visitors/${first.visitorId}`)).status, 404)
      const again = await visit(last.storageToken, gpu)
      t.not(again.visitorId, first.visitorId)
      t.same(
        await eventually(
          () => listed(`visitorId=${again.visitorId}`),
          (ids) => ids.length > 0,
        ),
        [again.requestId],
      )
      t.same(await listed(`visitorId=${first.visitorId}`), [], 'its rows, which came before that one, are not listed')
    },
  }
}

const ALERT = {
  name: 'Many',
  metric: 'events',
  operator: 'gte',
  threshold: 1,
  windowSeconds: 300,
  cooldownSeconds: 3_600,
}

async function fired(name: string): Promise<string> {
  const { body } = await send('POST', '/v1/alerts', { ...ALERT, name })
  await eventually(
    () => client.get(`/v1/alerts/${body.id}/incidents`),
    ({ body: { data } }) => data.length > 0,
  )
  return body.id
}

async function alerts(): Promise<Survival> {
  const hook = { url: 'https://hooks.example.com/alerts', events: ['alert.triggered'] }
  const webhook = (await send('POST', '/v1/webhooks', hook)).body
  await visit()
  const many = await fired('Many')
  const deliveries = async (): Promise<string[]> => {
    const { data } = (await client.get(`/v1/webhooks/${webhook.id}/deliveries`)).body
    const about = data.map(async ({ deliveryId }: { deliveryId: string }) => {
      const { payload } = (await client.get(`/v1/webhooks/${webhook.id}/deliveries/${deliveryId}`)).body
      return payload.data.alert.id
    })
    return await Promise.all(about)
  }
  await eventually(deliveries, (about) => about.includes(many))
  return {
    name: 'an alert does not fire again within its cooldown, whoever evaluates',
    async check(t) {
      await visit()
      // A round that knows the second has one behind it that compared every alert.
      await fired('round')
      await fired('next round')
      t.equal((await client.get(`/v1/alerts/${many}/incidents`)).body.data.length, 1)
      t.equal((await deliveries()).filter((id) => id === many).length, 1, 'and nobody is told again')
    },
  }
}

async function creates(): Promise<Survival> {
  const headers = { 'Idempotency-Key': 'create-once' }
  const key = keys.testSecret
  const create = (path: string, body: object) => client.send('POST', path, { key, body, headers })
  const list = { name: 'once', type: 'email' }
  const all = async () => [
    await create('/v1/webhooks', { url: 'https://hooks.example.com/once', events: ['*'] }),
    await create('/v1/lists', list),
    await create('/v1/alerts', ALERT),
  ]
  let first: Answer[] = []
  return {
    name: 'a create with an Idempotency-Key happens once, and a secret is shown again',
    async last() {
      first = await all()
    },
    async check(t) {
      t.same(
        first.map(({ status }) => status),
        [201, 201, 201],
      )
      const again = await all()
      t.same(
        again.map(({ status, body, headers }) => [status, body, headers.get('idempotent-replayed')]),
        first.map(({ status, body }, i) => [status, i === 0 ? { ...body, replayed: true } : body, 'true']),
      )
      t.match(again[0]?.body.signingSecret, /^whsec_/)
      const other = await create('/v1/lists', { ...list, name: 'another' })
      t.same(errorOf(other), { code: 'idempotency_key_mismatch', field: undefined })
    },
  }
}

const survivals: Survival[] = []

t.test('the server is killed right after its answers', async () => {
  survivals.push(await patches(), await alerts(), await creates(), await erasure())
  for (const { last } of survivals) await last?.()
  await server.kill9()
  server = await startServer({ dataDir, env, keys, port })
  client = clientOf(server)
})

t.test('and started again', async (t) => {
  for (const { name, check } of survivals) await t.test(name, check)
  t.equal(await server.stop(), 0, 'it stops in order')
})
