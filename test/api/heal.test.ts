// Two ids of one device, from the visit that shows it to the split that undoes it: who is told, what is kept, what is not moved.

import t from 'tap'
import { browserBody, CHROME, eventually } from '../helpers/client.ts'
import { openReceiver } from '../helpers/receiver.ts'
import { cleanUp } from '../helpers/server.ts'
import { openTenant } from '../helpers/tenant.ts'

t.teardown(cleanUp)
const { server, identify, get, send } = await openTenant()
const key = server.keys.testSecret
const post = (path: string, body: unknown) => send('POST', path, { key, body })
const HOUR_MS = 3_600_000
const HOME = '198.51.100.7'

async function visit(hoursAgo: number, ip: string, storageToken: string | null, change: object = {}) {
  const body = { ...browserBody(), storageToken, userAgent: CHROME }
  Object.assign(body.components, change)
  const mock = { at: new Date(Date.now() - hoursAgo * HOUR_MS).toISOString(), ip }
  const { status, body: event } = await identify({ ...body, mock }, { key })
  t.equal(status, 200)
  return event
}

t.test('a visit that shows two visitors to be one device has them merged, and a split keeps them apart', async (t) => {
  const receiver = await openReceiver(t, server.receiverTls)
  await post('/v1/webhooks', { url: `https://localhost:${receiver.port}/hook`, events: ['visitor.merged'] })
  const { body: list } = await post('/v1/lists', { name: 'watched', type: 'visitor' })

  const older = await visit(72, HOME, null)
  // Away from home, on another screen and without its token: nobody can tell who that is.
  const lost = await visit(48, '203.0.113.9', null, { screenResolution: { value: [1920, 1080] } })
  t.not(lost.visitorId, older.visitorId)
  await send('PATCH', `/v1/lists/${list.id}/entries`, { key, body: { add: [{ value: lost.visitorId }] } })
  const home = await visit(24, HOME, lost.storageToken)
  t.equal(home.visitorId, lost.visitorId, 'the visit itself was decided before')

  const merged = await eventually(
    () => get(`/v1/visitors/${lost.visitorId}`, key),
    ({ body }) => body?.visitorId === older.visitorId,
  )
  t.match(merged.body, { visitorId: older.visitorId, totalVisits: 3 })
  const after = await visit(1, HOME, home.storageToken)
  t.equal(after.visitorId, older.visitorId)

  const { body: audit } = await get(`/v1/audit?resource=visitor&id=${older.visitorId}`, key)
  t.match(audit.data[0], {
    action: 'heal',
    by: { type: 'system', id: 'engine' },
    after: { visitorId: lost.visitorId, requestId: home.requestId, confidence: Number },
  })
  const [told] = await eventually(
    async () => receiver.hits.map(({ body }) => JSON.parse(body)),
    (some) => some.length > 0,
  )
  t.match(told, {
    eventType: 'visitor.merged',
    data: {
      visitorId: older.visitorId,
      mergedVisitorId: lost.visitorId,
      by: 'engine',
      requestId: home.requestId,
      confidence: Number,
    },
  })
  const entries = async () => (await get(`/v1/lists/${list.id}/entries`, key)).body.data
  t.match(await entries(), [{ value: lost.visitorId }], 'no list has the older one now')
  await send('PATCH', `/v1/lists/${list.id}/entries`, { key, body: { remove: [lost.visitorId] } })
  t.same(await entries(), [])

  await eventually(
    () => get(`/v1/events?visitorId=${older.visitorId}`, key),
    ({ body }) => body.data.length === 4,
  )
  const requestIds = [lost, home, after].map(({ requestId }) => requestId)
  const split = await post(`/v1/visitors/${older.visitorId}/split`, { requestIds })
  t.equal(split.status, 201)
  const { visitorId } = split.body
  const later = await visit(0, HOME, after.storageToken)
  t.equal(later.visitorId, visitorId, 'its tokens are the new visitor’s')
  await new Promise((resolve) => setTimeout(resolve, 1_500))
  t.match((await get(`/v1/visitors/${visitorId}`, key)).body, { visitorId }, 'and it stays apart')
})

t.test('how many were left because there were too many is counted from the start', async (t) => {
  const response = await fetch(`${server.url}/metrics`)
  t.match(await response.text(), /fingerpost_heals_dropped_total(\{[^}]*\})? 0/)
})
