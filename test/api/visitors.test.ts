// /v1/visitors against a real server: what is known of a device, and its events.

import t from 'tap'
import { browserBody, CHROME, eventually, FIREFOX } from '../helpers/client.ts'
import { sized } from '../helpers/depth.ts'
import { deviceOf } from '../helpers/devices.ts'
import { cleanUp } from '../helpers/server.ts'
import * as shapes from '../helpers/shapes.ts'
import { openTenant } from '../helpers/tenant.ts'

t.teardown(cleanUp)

const { server, identify, get, send, admin } = await openTenant()
const { keys } = server
const key = keys.testSecret
const DAY_MS = 86_400_000
const nowMs = Math.floor(Date.now() / 1_000) * 1_000
const daysAgo = (days: number) => new Date(nowMs - days * DAY_MS).toISOString()

interface Visit {
  readonly at: string
  readonly ip: string
  readonly linkedId?: string
  readonly userAgent?: string
  readonly signals?: object
}

/** Visits of one new device, in this order, each with the token of the one before. */
let devices = 0
async function visits(
  list: readonly Visit[],
): Promise<{ visitorId: string; events: { requestId: string; at: string }[] }> {
  const n = ++devices
  const device = browserBody(`GPU ${n}`)
  Object.assign(device.components, {
    canvas: { value: { winding: true, geometry: `geometry ${n}`, text: `text ${n}`, stable: true } },
    audio: { value: 100 + n },
    screenResolution: { value: [1_000 + 100 * n, 700 + 50 * n] },
    hardwareConcurrency: { value: 2 * n },
    timezone: { value: ['Asia/Tokyo', 'America/Lima', 'Africa/Cairo', 'Europe/Riga'][n % 4] },
    fonts: { value: [`Font ${n}`] },
  })
  let storageToken: string | null = null
  let visitorId = ''
  const events = []
  for (const { at, ip, linkedId, userAgent = CHROME, signals = {} } of list) {
    const { status, body } = await identify(
      {
        ...device,
        storageToken,
        userAgent,
        ...(linkedId === undefined ? {} : { linkedId }),
        mock: { at, ip, signals },
      },
      { key },
    )
    t.equal(status, 200)
    if (visitorId !== '') t.equal(body.visitorId, visitorId, 'the token leads back')
    visitorId = body.visitorId
    storageToken = body.storageToken
    events.push({ requestId: body.requestId, at })
  }
  return { visitorId, events }
}

const visitorWith = (visitorId: string, totalVisits: number) =>
  eventually(
    () => get(`/v1/visitors/${visitorId}`, key),
    ({ body }) => body?.totalVisits === totalVisits,
  )

t.test('who was just identified can be read, merged and erased at once', async (t) => {
  let devices = 100
  const fresh = async () => (await identify(deviceOf(devices++), { key })).body.visitorId as string
  for (let n = 0; n < sized({ quick: 1, usual: 3, long: 5 }); n++) {
    t.equal((await get(`/v1/visitors/${await fresh()}`, key)).status, 200)
    const [survivor, visitorId] = [await fresh(), await fresh()]
    t.equal((await send('POST', `/v1/visitors/${survivor}/merge`, { key, body: { visitorId } })).status, 200)
    t.equal((await send('DELETE', `/v1/visitors/${await fresh()}`, { key })).status, 200)
  }
})

t.test('a visitor is there after the 200, with what its one visit says', async (t) => {
  const { body: event } = await identify(browserBody('GPU 0'), { key })
  const found = await eventually(
    () => get(`/v1/visitors/${event.visitorId}`, key),
    ({ status }) => status === 200,
  )
  t.same(shapes.visitor(found.body), [])
  t.match(found.body, {
    visitorId: event.visitorId,
    firstSeenAt: event.timestamp,
    lastSeenAt: event.timestamp,
    totalVisits: 1,
    linkedAccounts: 0,
    lists: [],
    ips: ['127.0.0.*'],
    previousVerdicts: { allow: 0, challenge: 0, block: 0 },
  })
})

t.test('first and last seen are the earliest and latest visit, in whatever order they came', async (t) => {
  const order = [20, 5, 40, 1, 30]
  const { visitorId } = await visits(order.map((days) => ({ at: daysAgo(days), ip: '203.0.113.9' })))
  const { body } = await visitorWith(visitorId, order.length)
  t.match(body, { totalVisits: 5, firstSeenAt: daysAgo(40), lastSeenAt: daysAgo(1) })
})

t.test('devices, addresses and accounts are counted and addresses masked', async (t) => {
  const list: Visit[] = Array.from({ length: 25 }, (_, i) => ({
    at: daysAgo(30 - i),
    ip: i < 24 ? `203.0.${i}.9` : '2001:db8:5:6::7',
    linkedId: `user_${i % 3}`,
    userAgent: i % 2 === 0 ? CHROME : FIREFOX,
  }))
  const { visitorId } = await visits(list)
  const { body } = await visitorWith(visitorId, 25)
  t.same(shapes.visitor(body), [])
  t.equal(body.linkedAccounts, 3)
  t.equal(body.ips.length, 20, 'the last twenty')
  t.equal(body.ips[0], '2001:db8:5::*')
  t.equal(body.ips[1], '203.0.23.*')
  t.same(body.devices.map((d: { browser: string }) => d.browser).sort(), ['Chrome 147', 'Firefox 140'])
  t.notMatch(JSON.stringify(body), /203\.0\.\d+\.9|user_/)
})

t.test('verdicts are counted as the rules gave them', async (t) => {
  const rule = (verdict: string, tor: boolean) => ({
    name: `tor is ${tor}`,
    conditions: { operator: 'AND', rules: [{ field: 'signals.tor', operator: 'equals', value: tor }] },
    action: { verdict },
    status: 'live',
  })
  const made = await send('POST', '/v1/rules', { key, body: rule('block', true) })
  t.match(made, { status: 201, body: { propagated: true } })
  const { visitorId, events } = await visits([
    { at: daysAgo(4), ip: '203.0.113.1', signals: { tor: true } },
    { at: daysAgo(3), ip: '203.0.113.1', signals: { tor: false } },
    { at: daysAgo(2), ip: '203.0.113.1', signals: { tor: true } },
  ])
  t.match((await visitorWith(visitorId, 3)).body.previousVerdicts, { allow: 1, challenge: 0, block: 2 })
  const listed = await eventually(
    () => get(`/v1/visitors/${visitorId}/events`, key),
    ({ body }) => body.data.length === 3,
  )
  t.same(
    listed.body.data.map((e: { requestId: string; verdict: string }) => [e.requestId, e.verdict]),
    [events[2], events[1], events[0]].map((e, i) => [e?.requestId, i === 1 ? 'allow' : 'block']),
  )
  await send('DELETE', `/v1/rules/${made.body.id}`, { key })
})

t.test('the events of a visitor come newest first, page by page', async (t) => {
  const list: Visit[] = Array.from({ length: 23 }, (_, i) => ({
    at: daysAgo(((i * 7) % 23) + 1),
    ip: '203.0.113.9',
    signals: { bot: i % 2 === 0, vpn: { detected: i % 3 === 0, provider: 'x' } },
  }))
  const { visitorId, events } = await visits(list)
  const path = `/v1/visitors/${visitorId}/events`
  const all = await eventually(
    () => get(`${path}?limit=100`, key),
    ({ body }) => body.data.length === list.length,
  )
  t.same(shapes.page(shapes.visitorEvent)(all.body), [])
  t.match(all.body, { hasMore: false, nextCursor: null })
  const expected = [...events].sort((a, b) => (a.at < b.at ? 1 : -1)).map((e) => e.requestId)
  t.same(
    all.body.data.map((e: { requestId: string }) => e.requestId),
    expected,
  )
  const signalsOf = new Map(events.map((e, i) => [e.requestId, { bot: i % 2 === 0, vpn: i % 3 === 0 }]))
  for (const { requestId, signals } of all.body.data) t.same(signals, signalsOf.get(requestId))

  t.equal((await get(path, key)).body.data.length, 20, 'twenty by default')
  for (const limit of [1, 5, 22, 23]) {
    const pages = []
    let cursor: string | null = null
    do {
      const {
        status,
        body,
      }: { status: number; body: { data: object[]; hasMore: boolean; nextCursor: string | null } } = await get(
        `${path}?limit=${limit}${cursor === null ? '' : `&cursor=${cursor}`}`,
        key,
      )
      t.equal(status, 200)
      pages.push(...body.data)
      cursor = body.nextCursor
      t.equal(body.hasMore, cursor !== null)
    } while (cursor !== null)
    t.same(pages, all.body.data, `pages of ${limit}`)
  }
  const [third] = all.body.data.slice(3)
  const moment = encodeURIComponent(third.timestamp)
  t.equal((await get(`${path}?after=${moment}`, key)).body.data.length, 4, 'after includes its moment')
  t.equal((await get(`${path}?before=${moment}`, key)).body.data.length, 19, 'before does not')
  const cursor = (await get(`${path}?limit=2`, key)).body.nextCursor
  for (const refused of [
    `${path}?cursor=${cursor}x`,
    `${path}?after=${moment}&cursor=${cursor}`,
    `/v1/events?cursor=${cursor}`,
    `${path}?limit=0`,
    `${path}?limit=101`,
    `${path}?verdict=allow`,
    `${path}?visitorId=${visitorId}`,
    `${path}?after=now`,
  ]) {
    const answer = await get(refused, key)
    t.equal(answer.status, 400, refused.slice(-40))
    t.same(shapes.errorFaults(400, answer.body), [])
  }
})

t.test('a visitor of somebody else is as unknown as one that never was', async (t) => {
  const { body: event } = await identify(browserBody(), { key })
  await eventually(
    () => get(`/v1/visitors/${event.visitorId}`, key),
    ({ status }) => status === 200,
  )
  const workspace = (await admin('POST', '/workspaces', { name: 'Other' })).body.id
  const foreign = (await admin('POST', `/workspaces/${workspace}/keys`, { kind: 'secret', environment: 'test' })).body
    .key
  for (const suffix of ['', '/events']) {
    const unknown = await get(`/v1/visitors/pv_00000000000000000000${suffix}`, key)
    t.equal(unknown.status, 404)
    t.same(shapes.errorFaults(404, unknown.body), [])
    for (const other of [keys.secret, foreign]) {
      t.match(await get(`/v1/visitors/${event.visitorId}${suffix}`, other), { status: 404, text: unknown.text })
    }
    for (const id of ['x', 'pv_', `${event.visitorId}0`, 'req_01', '%00', 'pv_0000000000000000000%C3%A4']) {
      t.match(await get(`/v1/visitors/${id}${suffix}`, key), { status: 404, text: unknown.text }, id)
    }
  }
})

t.test('reading visitors takes the scope', async (t) => {
  const { body: event } = await identify(browserBody(), { key })
  const make = async (scope: string) =>
    (
      await admin('POST', `/workspaces/${server.workspace}/keys`, {
        kind: 'secret',
        environment: 'test',
        scopes: [scope],
      })
    ).body.key
  const [right, wrong] = [await make('visitors:read'), await make('events:read')]
  await eventually(
    () => get(`/v1/visitors/${event.visitorId}`, key),
    ({ status }) => status === 200,
  )
  for (const path of [`/v1/visitors/${event.visitorId}`, `/v1/visitors/${event.visitorId}/events`]) {
    t.equal((await get(path, right)).status, 200)
    for (const refused of [wrong, keys.testPublic]) {
      const answer = await get(path, refused)
      t.equal(answer.status, 403)
      t.match(answer.body.error.message, /visitors:read/)
    }
  }
  t.equal((await get(`/v1/visitors/${event.visitorId}?x=1`, key)).status, 400)
})
