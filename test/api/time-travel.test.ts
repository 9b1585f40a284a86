// Sandbox time travel against a real server: with `mock.at` and `mock.ip` everything is as if it were then and there.

import t from 'tap'
import { requestTime } from '../../src/domain/ids.ts'
import { browserBody, CHROME, eventually, IPHONE } from '../helpers/client.ts'
import { cleanUp } from '../helpers/server.ts'
import { openTenant } from '../helpers/tenant.ts'

t.teardown(cleanUp)

const { server, identify, get, send } = await openTenant()
const key = server.keys.testSecret
const DAY_MS = 86_400_000
const nowMs = Math.floor(Date.now() / 1_000) * 1_000
const daysAgo = (days: number) => new Date(nowMs - days * DAY_MS).toISOString()

let devices = 0
function newDevice(ip: string) {
  const n = ++devices
  const device = browserBody(`ANGLE (NVIDIA, NVIDIA GeForce GTX ${n} Direct3D11 vs_5_0 ps_5_0, D3D11)`)
  Object.assign(device.components, { audio: { value: 500 + n }, fonts: { value: [`Font ${n}`] } })
  return { ...device, userAgent: CHROME, ip }
}
/** Alike but for the screen, as iPhones are. */
function newPhone(ip: string, width: number) {
  return {
    userAgent: IPHONE,
    ip,
    components: {
      userAgent: { value: IPHONE },
      platform: { value: 'iPhone' },
      screenResolution: { value: [width, 852] },
      devicePixelRatio: { value: 3 },
      hardwareConcurrency: { value: 4 },
      languages: { value: [['lv-LV']] },
      timezone: { value: 'Europe/Riga' },
      webGlBasics: { value: { vendor: 'Apple Inc.', renderer: 'Apple GPU' } },
      canvas: { value: { winding: true, geometry: 'g', text: 't', stable: true } },
      fonts: { value: ['Arial', 'Helvetica', 'Times'] },
      touchSupport: { value: { maxTouchPoints: 5, touchEvent: true, touchStart: true } },
    },
  }
}

async function visit(device: { readonly ip: string }, at: string, storageToken: string | null = null) {
  const { ip, ...body } = device
  const answer = await identify({ ...body, storageToken, mock: { at, ip } }, { key })
  t.equal(answer.status, 200)
  return answer.body
}
const scoreOf = async (requestId: string): Promise<number> =>
  (await get(`/v1/events/${requestId}/identity`, key)).body.candidates[0]?.score ?? 0

t.test('an event of the past has its time in its id, and its visitor begins then', async (t) => {
  const device = newDevice('203.0.113.9')
  const event = await visit(device, daysAgo(60))
  t.equal(requestTime(event.requestId), nowMs - 60 * DAY_MS)
  t.match(event, { timestamp: daysAgo(60), firstSeenAt: daysAgo(60), lastSeenAt: daysAgo(60) })
  t.match(event.ip, { address: '203.0.113.*' })
  const next = await visit(device, daysAgo(50), event.storageToken)
  t.match(next, { visitorId: event.visitorId, firstSeenAt: daysAgo(60), lastSeenAt: daysAgo(50) })
  const earlier = await visit(device, daysAgo(70), event.storageToken)
  t.match(earlier, { visitorId: event.visitorId, firstSeenAt: daysAgo(70), lastSeenAt: daysAgo(50) })
})

t.test('what a visitor had last is what it had latest, whatever came last', async (t) => {
  const device = newDevice('203.0.113.20')
  const first = await visit(device, daysAgo(10))
  await visit({ ...device, ip: '198.51.100.20' }, daysAgo(20), first.storageToken)
  const { body } = await eventually(
    () => get(`/v1/visitors/${first.visitorId}`, key),
    ({ body }) => body?.totalVisits === 2,
  )
  t.same(body.ips, ['203.0.113.*', '198.51.100.*'])
})

t.test('evidence ages by the time between visits, not by the time between requests', async (t) => {
  const soon = newPhone('203.0.113.30', 393)
  const first = await visit(soon, daysAgo(80))
  const next = await visit(soon, daysAgo(79))
  t.equal(next.visitorId, first.visitorId, 'a day later it is found by its looks')
  const late = newPhone('203.0.113.40', 430)
  await visit(late, daysAgo(80))
  const after = await visit(late, daysAgo(1))
  t.ok((await scoreOf(after.requestId)) < (await scoreOf(next.requestId)), 'eleven weeks later that says less')
})

t.test('a rule matched last when its latest event was, not when the last one came', async (t) => {
  const made = await send('POST', '/v1/rules', {
    key,
    body: {
      name: 'travelled',
      conditions: { operator: 'AND', rules: [{ field: 'tag.travelled', operator: 'equals', value: true }] },
      action: { verdict: 'allow' },
      status: 'live',
    },
  })
  t.match(made, { status: 201, body: { propagated: true } })
  const statsAfter = (matches: number) =>
    eventually(
      () => get(`/v1/rules/${made.body.id}`, key),
      ({ body }) => body.stats.matchCount === matches,
    )
  const device = { ...newDevice('203.0.113.50'), tag: { travelled: true } }
  let storageToken: string | null = null
  for (const [i, days] of [20, 5, 40].entries()) {
    storageToken = (await visit(device, daysAgo(days), storageToken)).storageToken
    // Each is in a checkpoint of its own.
    const { body } = await statsAfter(i + 1)
    t.equal(body.stats.lastMatchAt, daysAgo(days === 20 ? 20 : 5))
  }
})

t.test('travel ends where retention does, and at the present', async (t) => {
  const device = newDevice('203.0.113.60')
  const { ip, ...body } = device
  for (const [at, status] of [
    [daysAgo(89), 200],
    [daysAgo(91), 400],
    [daysAgo(-1), 400],
    ['yesterday', 400],
  ] as const) {
    const answer = await identify({ ...body, mock: { at, ip } }, { key })
    t.equal(answer.status, status, at)
    if (status === 400) t.equal(answer.body.error.field, 'mock.at')
  }
})
