// Velocity end to end: counters in events and in rules. With partitions spread over several threads, and across restarts:
// test/faults/state-survives.test.ts.

import t from 'tap'
import { CHROME, eventually } from '../helpers/client.ts'
import { cleanUp } from '../helpers/server.ts'
import { openTenant } from '../helpers/tenant.ts'

t.teardown(cleanUp)

// biome-ignore lint/suspicious/noExplicitAny: tests look at whatever came
type Json = any

const api = await openTenant()

let addresses = 0
const freshIp = () => `198.51.${100 + (addresses >> 8)}.${addresses++ & 255}`
/** Far enough back that no window of the present sees it. */
const longAgo = (days: number, ms = 0) =>
  new Date(Math.floor(Date.now() / 3_600_000) * 3_600_000 - days * 86_400_000 + ms)

async function identify(key: string, body: object): Promise<Json> {
  const { status, body: event, text } = await api.identify({ userAgent: CHROME, ...body }, { key })
  if (status !== 200) throw new Error(`${status} ${text}`)
  return event
}
const see = (body: object) => identify(api.server.keys.testSecret, body)

t.test('a rule on the events of a visitor fires on the n-th event, and not before', async (t) => {
  const key = api.server.keys.testSecret
  const rule = {
    name: 'fifth',
    conditions: { operator: 'AND', rules: [{ field: 'velocity.visitor.events.5m', operator: 'gte', value: 5 }] },
    action: { verdict: 'block' },
    status: 'live',
  }
  const created = await api.send('POST', '/v1/rules', { key, body: rule })
  t.equal(created.status, 201, created.text)
  const ip = freshIp()
  const verdicts: string[] = []
  let storageToken: string | undefined
  for (let i = 0; i < 7; i++) {
    const event: Json = await see({ mock: { ip }, storageToken })
    storageToken ??= event.storageToken
    verdicts.push(event.verdict)
    t.equal(event.velocity.visitor.events['5m'], i + 1)
  }
  t.strictSame(verdicts, ['allow', 'allow', 'allow', 'allow', 'block', 'block', 'block'])
  const asked = { conditions: rule.conditions, days: 1 }
  const matches = await eventually(
    () => api.send('POST', '/v1/rules/backtest', { key, body: asked }),
    ({ body }) => body?.matchCount === 3,
  )
  t.equal(matches.status, 200, matches.text)
  t.equal(matches.body.matchCount, 3, 'a backtest counts the same events')
  await api.send('DELETE', `/v1/rules/${created.body.id ?? created.body.ruleId}`, { key })
})

t.test('one address is counted exactly over all partitions, whoever comes from it', async (t) => {
  const ip = freshIp()
  const partitions = new Set<string>()
  for (let i = 1; i <= 24; i++) {
    const event = await see({ mock: { ip } })
    partitions.add(event.visitorId)
    t.match(event.velocity.ip, { events: { '5m': i, '1h': i, '24h': i }, visitors: { '24h': i } })
  }
  t.equal(partitions.size, 24, 'all of them are strangers')
  const all = await Promise.all(Array.from({ length: 30 }, () => see({ mock: { ip } })))
  t.ok(
    all.every(({ velocity }) => velocity.ip.events['5m'] > 24),
    'those at the same time see all before them',
  )
  t.equal((await see({ mock: { ip } })).velocity.ip.events['5m'], 55)
})

t.test('an account is counted by its visitors and addresses, an event without one has no such counters', async (t) => {
  const linkedId = `account-${Date.now()}`
  const [home, cafe] = [freshIp(), freshIp()]
  const first = await see({ linkedId, mock: { ip: home } })
  t.match(first.velocity.linkedId, { visitors: { '24h': 1 }, ips: { '24h': 1 } })
  t.match(first.velocity.visitor, { linkedIds: { '24h': 1 }, ips: { '24h': 1 }, countries: { '24h': 0 } })
  const second = await see({ linkedId, mock: { ip: cafe } })
  t.match(second.velocity.linkedId, { visitors: { '24h': 2 }, ips: { '24h': 2 } })
  const { storageToken } = first
  const back = await see({ linkedId, storageToken, mock: { ip: cafe, country: 'JP' } })
  t.match(back.velocity.linkedId, { visitors: { '24h': 2 }, ips: { '24h': 2 } })
  t.match(back.velocity.visitor, { ips: { '24h': 2 }, countries: { '24h': 1 }, linkedIds: { '24h': 1 } })
  const other = await see({ linkedId: `${linkedId}-2`, storageToken, mock: { ip: cafe, country: 'BR' } })
  t.match(other.velocity.visitor, { ips: { '24h': 2 }, countries: { '24h': 2 }, linkedIds: { '24h': 2 } })
  const none = await see({ mock: { ip: cafe } })
  t.strictSame(none.velocity.linkedId, { visitors: { '24h': null }, ips: { '24h': null } })
})

t.test('windows move with the time a sandbox names, and end where they say', async (t) => {
  const ip = freshIp()
  const { storageToken } = await see({ mock: { ip } })
  const cases: [ms: number, five: number, hour: number, day: number][] = [
    [0, 1, 1, 1],
    [299_999, 2, 2, 2],
    [300_000, 2, 3, 3],
    [3_599_999, 1, 4, 4],
    [3_600_000, 2, 4, 5],
    [86_399_999, 1, 1, 6],
    [86_400_000, 2, 2, 6],
    [86_400_001, 3, 3, 7],
  ]
  for (const [ms, five, hour, day] of cases) {
    const event = await see({ storageToken, mock: { ip, at: longAgo(20, ms).toISOString() } })
    const expected = { '5m': five, '1h': hour, '24h': day }
    t.strictSame(event.velocity.visitor.events, expected, `the visitor at ${ms} ms`)
    t.strictSame(event.velocity.ip.events, expected, `the address at ${ms} ms`)
  }
  const now = await see({ storageToken, mock: { ip } })
  t.equal(now.velocity.visitor.events['24h'], 2, 'the present does not see them')
  const late = await see({ storageToken, mock: { ip, at: longAgo(20, 86_400_002).toISOString() } })
  t.equal(late.velocity.visitor.events['24h'], 8, 'and they are still there')
})

t.test('counters of other tenants are others', async (t) => {
  const ip = freshIp()
  await see({ mock: { ip } })
  const live = await identify(api.server.keys.secret, { ip })
  t.equal(live.velocity.ip.events['24h'], 1)
})
