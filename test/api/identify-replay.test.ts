// POST /v1/identify against a real server: the same nonce again, decisions that are late, and no room to accept anything.

import t from 'tap'
import { NONCE_WINDOW_MS } from '../../src/domain/identify.ts'
import { browserBody, clientOf, errorOf, eventually, openApi } from '../helpers/client.ts'
import { cleanUp, startServer } from '../helpers/server.ts'
import * as shapes from '../helpers/shapes.ts'

t.teardown(cleanUp)

const { server, identify } = await openApi()
const { keys } = server

let nonces = 0
const newNonce = () => `nonce-of-a-test-${String(++nonces).padStart(6, '0')}`

t.test('the same nonce is the same event', async (t) => {
  const body = { ...browserBody(), nonce: newNonce(), email: 'x@y.example', url: '', tag: { n: 1.5, s: '💡' } }
  const first = await identify(body)
  t.equal(first.headers.get('idempotent-replayed'), null)
  const again = await identify(body)
  t.equal(again.status, 200)
  t.equal(again.headers.get('idempotent-replayed'), 'true')
  t.equal(again.text, first.text, 'to the byte')
  const asPublic = await identify(body, { key: keys.public })
  t.equal(asPublic.headers.get('idempotent-replayed'), 'true')
  t.same(shapes.publicResult(asPublic.body), [], 'in the form of the key that asks')
  t.equal(asPublic.body.requestId, first.body.requestId)
  const inTestEnv = await identify(body, { key: keys.testSecret })
  t.equal(inTestEnv.headers.get('idempotent-replayed'), null, 'another environment knows nothing of it')
  t.equal(NONCE_WINDOW_MS, 120_000)
})

t.test('a nonce that is used for something else is refused, wherever the body would lead', async (t) => {
  const variants: object[] = [
    { linkedId: 'someone-else' },
    { userAgent: 'Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) Version/18.5 Safari/604.1' },
    { components: { ...browserBody().components, webGlBasics: { value: { renderer: 'Mali-G78' } } } },
    { ip: '198.51.100.77' },
    { native: { platform: 'android', model: 'Pixel 9' } },
    { tag: { a: 1 } },
  ]
  for (let i = 0; i < 4; i++) {
    const body = { ...browserBody(), nonce: newNonce(), linkedId: `user-${i}` }
    const first = await identify(body)
    for (const variant of variants) {
      const answer = await identify({ ...body, ...variant })
      t.equal(answer.status, 409, JSON.stringify(variant).slice(0, 60))
      t.same(errorOf(answer), { code: 'idempotency_conflict', field: 'nonce' })
    }
    const { storageToken } = first.body
    t.equal((await identify({ ...body, storageToken })).status, 409, 'also when a token routes it')
    t.equal((await identify(body)).text, first.text, 'and the first still stands')
  }
})

t.test('repeats that arrive together make one event', async (t) => {
  const body = { ...browserBody(), nonce: newNonce() }
  const answers = await Promise.all(
    Array.from({ length: 20 }, (_, i) => identify(body, { key: i % 2 ? keys.public : keys.secret })),
  )
  t.equal(new Set(answers.map((a) => a.body.requestId)).size, 1)
  t.equal(answers.filter((a) => a.headers.get('idempotent-replayed') === null).length, 1)
  for (const [i, { status, body: result }] of answers.entries()) {
    t.equal(status, 200)
    t.same((i % 2 ? shapes.publicResult : shapes.secretResult)(result), [], 'each in the form of its own key')
  }
  const mixed = newNonce()
  const rivals = await Promise.all(Array.from({ length: 20 }, (_, i) => identify({ nonce: mixed, linkedId: `u${i}` })))
  t.equal(rivals.filter((a) => a.status === 200).length, 1)
  t.equal(rivals.filter((a) => a.status === 409).length, 19)
})

t.test('what is not decided in time is pending, never missing, and then there', async (t) => {
  const slow = await openApi({ FINGERPOST_DECISION_WAIT_MS: '10' })
  const spoofed = await slow.identify({}, { headers: { 'X-Forwarded-For': '203.0.113.9' } })
  const bodies = Array.from({ length: 160 }, (_, i) => ({ ...browserBody(`GPU ${i}`), nonce: newNonce() }))
  const answers = await Promise.all(
    bodies.map(async (body, i) => {
      const answer = await slow.identify(body)
      // While the flood lasts: the event can be asked for and the call repeated.
      if (answer.status !== 202 || i % 8 > 0) return { body, answer }
      const { requestId } = answer.body
      return { body, answer, read: await slow.get(`/v1/events/${requestId}`), repeat: await slow.identify(body) }
    }),
  )
  const late = answers.filter(({ answer }) => answer.status === 202)
  t.comment(`${late.length} of ${answers.length} were pending`)
  t.ok(late.length > 0, 'some were not decided in 10 ms')
  t.equal(answers.filter(({ answer }) => answer.status !== 202 && answer.status !== 200).length, 0)
  for (const { answer, read, repeat } of late) {
    t.same(shapes.pending(answer.body), [])
    t.equal(answer.headers.get('retry-after'), '1')
    t.equal(answer.headers.get('access-control-allow-origin'), '*')
    for (const later of [read, repeat]) {
      if (later === undefined) continue
      if (later.status === 202) {
        t.same(later.body, answer.body)
        t.equal(later.headers.get('retry-after'), '1')
      } else t.match(later, { status: 200, body: { requestId: answer.body.requestId } })
    }
  }
  const conflict = await slow.identify({ ...late[0]?.body, linkedId: 'other' })
  t.equal(conflict.status, 409, 'its nonce is taken')
  await Promise.all(
    late.map(async ({ answer }) => {
      const event = await eventually(
        () => slow.get(`/v1/events/${answer.body.requestId}`),
        ({ status }) => status === 200,
      )
      t.equal(event.status, 200)
      t.same(shapes.event(event.body), [])
    }),
  )
  if (spoofed.status === 200)
    t.equal(spoofed.body.ip.address, '127.0.0.*', 'without trusted proxies nobody else is believed')
  const direct = await eventually(
    () => slow.identify({}, { headers: { 'X-Forwarded-For': '203.0.113.9' } }),
    ({ status }) => status === 200,
  )
  t.equal(direct.body.ip.address, '127.0.0.*')
  t.equal(await slow.server.stop(), 0)
})

t.test('without room nothing is accepted, and readiness says what is missing', async (t) => {
  const full = await startServer({
    env: { FINGERPOST_DATA_FREE_BYTES_MIN: String(2 ** 49) },
    until: '/healthz',
  })
  const client = clientOf(full)
  const askReady = () => client.send('GET', '/readyz', { key: null })
  const ready = await eventually(askReady, ({ body }) => body?.failing?.length === 1)
  t.equal(ready.status, 503)
  t.ok(Number(ready.headers.get('retry-after')) >= 1)
  t.equal(ready.body.failing.length, 1)
  const [dependency] = ready.body.failing
  t.match(ready.body.checks[dependency], /disk|space/i)
  for (const key of [full.keys.public, full.keys.secret]) {
    const refused = await client.identify(browserBody(), { key })
    t.equal(refused.status, 503)
    t.equal(errorOf(refused).code, 'unavailable')
    t.ok(Number(refused.headers.get('retry-after')) >= 1)
    t.equal(refused.body.error.retryAfter, Number(refused.headers.get('retry-after')))
    t.equal(refused.headers.get('access-control-allow-origin'), '*')
  }
  t.equal((await client.identify({ nonce: 1 })).status, 400, 'what is wrong is wrong all the same')
  t.equal((await client.get('/v1/events')).status, 200, 'reading goes on')
  t.equal(await full.stop(), 0)
})

t.test('the server stops in order', async (t) => {
  t.equal(await server.stop(), 0)
})
