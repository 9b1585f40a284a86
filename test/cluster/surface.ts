// What customers do, in a cluster in which every role is a process of its own: visits come in by one, are decided by others, and
// the API and the dispatcher follow.

import type { Test } from 'tap'
import { verifyWebhook } from '../../src/domain/webhook-signature.ts'
import { eventually } from '../helpers/client.ts'
import { type Device, deviceOf } from '../helpers/devices.ts'
import { type Authority, answer, openReceiver } from '../helpers/receiver.ts'
import type { Deployed } from './deployed.ts'

/** In the test environment of a workspace. `authority` signed the receivers that the dispatcher trusts. */
export async function testSurface(t: Test, deployed: Deployed, authority: Authority): Promise<void> {
  const { keys, first: ingress, api } = await deployed.openWorkspace('surface')
  const key = keys.testSecret
  const receiver = await openReceiver(t, authority.leaf('DNS:localhost,IP:127.0.0.1'))
  receiver.behave = answer(200)

  let made = 0
  const newDevice = () => deviceOf(++made)
  async function visit(device: Device, more: object = {}) {
    const { status, body } = await ingress.identify({ ...device, ...more }, { key })
    t.equal(status, 200)
    return body
  }
  const read = async (visitorId: string) => api.get(`/v1/visitors/${visitorId}`, key)
  const stored = (visitorId: string, totalVisits: number) =>
    eventually(
      () => read(visitorId),
      ({ body }) => body?.totalVisits === totalVisits,
    )
  async function post(path: string, body: unknown, status: number) {
    const answered = await api.send('POST', path, { key, body })
    t.equal(answered.status, status, answered.text)
    return answered.body
  }
  const toldOf = (type: string) => receiver.hits.filter(({ headers }) => headers['x-service-event'] === type)
  const told = (type: string) =>
    eventually(
      async () => toldOf(type),
      (hits) => hits.length > 0,
    )

  await t.test('receivers are told what engines decide, signed, once each', async (t) => {
    const webhook = await post(
      '/v1/webhooks',
      { url: `https://localhost:${receiver.port}/hook`, events: ['visitor.new', 'alert.triggered'] },
      201,
    )
    const events = await Promise.all(Array.from({ length: 6 }, () => visit(newDevice())))
    await eventually(
      async () => toldOf('visitor.new'),
      (hits) => hits.length >= events.length,
    )
    const hits = toldOf('visitor.new')
    t.ok(hits.every(({ body, headers }) => verifyWebhook(body, headers, webhook.signingSecret)))
    t.same(
      hits.map(({ body }) => JSON.parse(body).data.visitorId).sort(),
      events.map(({ visitorId }) => visitorId).sort(),
    )
    const deliveries = await eventually(
      () => api.get(`/v1/webhooks/${webhook.id}/deliveries?status=delivered&limit=100`, key),
      ({ body }) => body.data.length === events.length,
    )
    t.equal(deliveries.body.data.length, events.length)
  })

  await t.test('a visitor is read as it was answered before, from an owner in another process', async (t) => {
    const device = newDevice()
    let last = await visit(device)
    let visits = 1
    /** More of them than an owner stores at once without being asked. */
    const isReadAtOnce = async () => {
      for (let n = 0; n < 12; n++, visits++) last = await visit(device, { storageToken: last.storageToken })
      return (await read(last.visitorId)).body.totalVisits === visits
    }
    // A reader goes on without an owner that is held up for a second, so one of five is enough.
    let isRead = false
    for (let round = 0; round < 5 && !isRead; round++) isRead = await isReadAtOnce()
    t.ok(isRead)
  })

  await t.test('visitors are merged, split and erased by the API, and every engine goes by it', async (t) => {
    const [a, b] = [newDevice(), newDevice()]
    const [first, second] = [await visit(a), await visit(b)]
    await stored(second.visitorId, 1)
    await post(`/v1/visitors/${first.visitorId}/merge`, { visitorId: second.visitorId }, 200)
    const merged = await visit(b, { storageToken: second.storageToken })
    t.equal(merged.visitorId, first.visitorId)
    t.equal((await stored(second.visitorId, 3)).body.visitorId, first.visitorId, 'reads follow')

    const { visitorId: third } = await post(
      `/v1/visitors/${first.visitorId}/split`,
      { requestIds: [second.requestId, merged.requestId] },
      201,
    )
    t.equal((await visit(b, { storageToken: merged.storageToken })).visitorId, third)
    t.equal((await visit(a, { storageToken: first.storageToken })).visitorId, first.visitorId)
    t.equal((await api.get(`/v1/events/${second.requestId}`, key)).body.visitorId, third)

    const label = { key, body: { label: 'fraud' } }
    t.equal((await api.send('PATCH', `/v1/events/${merged.requestId}`, label)).body.label, 'fraud')
    const erased = await api.send('DELETE', `/v1/visitors/${third}`, { key })
    t.equal(erased.status, 200, erased.text)
    t.equal((await read(third)).status, 404)
    t.equal((await api.get(`/v1/events/${merged.requestId}`, key)).status, 404)
    const again = await visit(b, { storageToken: merged.storageToken })
    t.notOk([first.visitorId, second.visitorId, third].includes(again.visitorId), 'a stranger again')
    t.equal((await api.get(`/v1/erasures/${erased.body.erasureId}`, key)).status, 200)
  })

  await t.test('an alert fires, and whoever subscribed is told', async (t) => {
    const alert = await post('/v1/alerts', { name: 'Many', metric: 'events', operator: 'gte', threshold: 3 }, 201)
    const [hit] = await told('alert.triggered')
    t.match(JSON.parse(hit?.body ?? '{}').data, { alert: { id: alert.id, name: 'Many' } })
    const incidents = await api.get(`/v1/alerts/${alert.id}/incidents`, key)
    t.equal(incidents.body.data.length, 1)
  })

  await t.test('totals of analytics and of lists of events are the same', async (t) => {
    const { body } = await eventually(
      () => api.get('/v1/events?limit=100', key),
      ({ body: listed }) => listed?.data.length >= made,
    )
    const from = new Date(Date.now() - 3_600_000).toISOString()
    const to = new Date(Date.now() + 60_000).toISOString()
    const totals = await api.get(`/v1/analytics/events?from=${from}&to=${to}&groupBy=verdict`, key)
    t.equal(totals.status, 200, totals.text)
    t.equal(totals.body.total, body.data.length)
  })
}
