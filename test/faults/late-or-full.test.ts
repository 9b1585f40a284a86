// POST /v1/identify where a decision takes too long, and where there is no room to accept anything.

import t from 'tap'
import { browserBody, clientOf, errorOf, eventually, openApi } from '../helpers/client.ts'
import { sized } from '../helpers/depth.ts'
import { cleanUp, startServer } from '../helpers/server.ts'
import * as shapes from '../helpers/shapes.ts'

t.teardown(cleanUp)

/** At once, so that the last ones have to wait. */
const FLOOD = sized({ usual: 80, long: 160 })

t.test('what is not decided in time is pending, never missing, and then there', async (t) => {
  const slow = await openApi({ FINGERPOST_DECISION_WAIT_MS: '10' })
  const spoofed = await slow.identify({}, { headers: { 'X-Forwarded-For': '203.0.113.9' } })
  const bodies = Array.from({ length: FLOOD }, (_, i) => ({
    ...browserBody(`GPU ${i}`),
    nonce: `nonce-of-a-flood-${String(i).padStart(6, '0')}`,
  }))
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
