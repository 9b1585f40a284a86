// Whom a new visitor may be: told to servers on every surface, to browsers on none, and of nobody who was erased.

import t from 'tap'
import { browserBody, CHROME, errorOf, eventually } from '../helpers/client.ts'
import { openReceiver } from '../helpers/receiver.ts'
import { cleanUp } from '../helpers/server.ts'
import { openTenant } from '../helpers/tenant.ts'

t.teardown(cleanUp)
const { server, identify, get, send } = await openTenant()
const { keys, url } = server
const key = keys.secret
const post = (path: string, body: unknown) => send('POST', path, { key, body })

/** What is not enough for the visitor's own id, and too much for nothing: elsewhere, on another screen. */
const CHANGED = { screenResolution: { value: [1920, 1080] } }

/** No two devices have as many cores. */
function deviceOf(number: number, change: object = {}) {
  const body = browserBody(`ANGLE (NVIDIA, NVIDIA GeForce RTX ${3_000 + number} Direct3D11 vs_5_0 ps_5_0, D3D11)`)
  Object.assign(body.components, { hardwareConcurrency: { value: 2 + number }, ...change })
  return body
}
const visitFrom = async (ip: string, body: object) => (await identify({ ...body, ip, userAgent: CHROME }, { key })).body
const seeFirst = (number: number) => visitFrom(`198.51.100.${number}`, deviceOf(number))
/** A new visitor that may be it. */
const seeLike = (number: number) => visitFrom(`203.0.113.${number}`, deviceOf(number, CHANGED))

const idsOf = (body: { data: { requestId: string }[] }) => body.data.map(({ requestId }) => requestId)

t.test('events, lists, files, rules, backtests and webhooks tell whom a new visitor may be', async (t) => {
  const receiver = await openReceiver(t, server.receiverTls)
  await post('/v1/webhooks', { url: `https://localhost:${receiver.port}/hook`, events: ['identification.complete'] })
  const [known, fresh] = [await seeFirst(1), await seeLike(1)]
  t.match(known, { visitorFound: false, possibleVisitorId: null, possibleConfidence: null })
  t.not(fresh.visitorId, known.visitorId)
  const { possibleVisitorId, possibleConfidence } = fresh
  t.equal(possibleVisitorId, known.visitorId)
  t.ok(possibleConfidence >= 0.1 && possibleConfidence < 0.8, String(possibleConfidence))
  const told = { possibleVisitorId, possibleConfidence }
  t.match((await get(`/v1/events/${fresh.requestId}`, key)).body, told)

  const listed = await eventually(
    () => get(`/v1/events?possibleVisitorId=${known.visitorId}&fields=full`, key),
    ({ body }) => body.data.length > 0,
  )
  t.same(idsOf(listed.body), [fresh.requestId])
  t.match(listed.body.data[0], told)
  t.same((await get(`/v1/events?possibleVisitorId=${fresh.visitorId}`, key)).body.data, [])
  t.equal(errorOf(await get('/v1/events?possibleVisitorId=nobody', key)).field, 'possibleVisitorId')
  const headers = { Authorization: `Bearer ${key}`, Accept: 'text/csv' }
  const file = await fetch(`${url}/v1/events?possibleVisitorId=${known.visitorId}`, { headers })
  const [head = '', line = ''] = (await file.text()).split('\r\n')
  t.equal(line.split(',')[head.split(',').indexOf('possibleConfidence')], String(possibleConfidence))

  const { body: list } = await post('/v1/lists', { name: 'watched', type: 'visitor' })
  await send('PATCH', `/v1/lists/${list.id}/entries`, { key, body: { add: [{ value: known.visitorId }] } })
  const conditions = {
    operator: 'AND',
    rules: [
      { field: 'possibleVisitorId', operator: 'in', value: 'watched' },
      { field: 'possibleConfidence', operator: 'gte', value: 0.2 },
    ],
  }
  const { body: tried } = await post('/v1/rules/backtest', { conditions, action: { verdict: 'challenge' } })
  t.same(
    tried.sample.map((one: { requestId: string }) => one.requestId),
    [fresh.requestId],
  )
  t.match((await post('/v1/rules/simulate', { requestId: fresh.requestId, conditions })).body, { matched: true })
  const event = { possibleVisitorId: known.visitorId, possibleConfidence: 0.1 }
  t.match((await post('/v1/rules/simulate', { event, conditions })).body, { matched: false })
  const rule = { name: 'Watched', status: 'live', conditions, action: { verdict: 'challenge' } }
  t.equal((await post('/v1/rules', rule)).status, 201)
  const watched = await seeFirst(2)
  await send('PATCH', `/v1/lists/${list.id}/entries`, { key, body: { add: [{ value: watched.visitorId }] } })
  // Decisions follow lists within two seconds: the watched visitor's own visits tell when.
  const leaf = { field: 'visitorId', operator: 'in', value: 'watched' }
  const own = { operator: 'AND', rules: [leaf] }
  const ownRule = { name: 'Watched itself', status: 'live', conditions: own, action: { verdict: 'block' } }
  t.equal((await post('/v1/rules', ownRule)).status, 201)
  const { storageToken } = watched
  await eventually(
    () => visitFrom('198.51.100.2', { ...deviceOf(2), storageToken }),
    ({ verdict }) => verdict === 'block',
  )
  t.match(await seeLike(2), { possibleVisitorId: watched.visitorId, verdict: 'challenge' })

  const bodies = await eventually(
    async () =>
      receiver.hits.map(({ body }) => JSON.parse(body).data).filter((data) => data?.requestId === fresh.requestId),
    (some) => some.length > 0,
  )
  t.match(bodies[0], told)
})

t.test('nothing is counted, listed or kept under whom a visitor may be', async (t) => {
  const [known, fresh] = [await seeFirst(3), await seeLike(3)]
  t.equal(fresh.possibleVisitorId, known.visitorId)
  t.equal(fresh.velocity.visitor.events['24h'], 1)
  const visitor = await eventually(
    () => get(`/v1/visitors/${known.visitorId}`, key),
    ({ status }) => status === 200,
  )
  t.match(visitor.body, { totalVisits: 1 })
})

t.test('a browser is not told', async (t) => {
  const body = deviceOf(4)
  const page = (change: object, ip: string) =>
    identify(
      { ...body, components: { ...body.components, ...change } },
      {
        key: keys.public,
        headers: { 'User-Agent': CHROME, 'X-Forwarded-For': ip },
      },
    )
  for (const answer of [await page({}, '198.51.100.8'), await page(CHANGED, '203.0.113.8')]) {
    t.equal(answer.status, 200)
    t.notMatch(answer.text, /possible/)
  }
})

t.test('whom nobody may name any more is named by no event', async (t) => {
  const [known, fresh] = [await seeFirst(5), await seeLike(5)]
  t.equal(fresh.possibleVisitorId, known.visitorId)
  await eventually(
    () => get(`/v1/events?possibleVisitorId=${known.visitorId}`, key),
    ({ body }) => body.data.length > 0,
  )
  await eventually(
    () => send('DELETE', `/v1/visitors/${known.visitorId}`, { key }),
    ({ status }) => status === 200,
  )
  const nobody = { possibleVisitorId: null, possibleConfidence: null }
  t.match((await get(`/v1/events/${fresh.requestId}`, key)).body, nobody)
  t.same((await get(`/v1/events?possibleVisitorId=${known.visitorId}`, key)).body.data, [])
  const { body } = await get(`/v1/events?visitorId=${fresh.visitorId}&fields=full`, key)
  t.match(body.data, [{ requestId: fresh.requestId, ...nobody }])
})
