// Scores by what was seen before: travel, velocity, lists that rules block by, and weights of a workspace.

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { CHROME, eventually, openApi } from '../helpers/client.ts'
import { cleanUp, temporaryFolder } from '../helpers/server.ts'

t.teardown(cleanUp)

// biome-ignore lint/suspicious/noExplicitAny: tests look at whatever came
type Json = any

const geo = join(temporaryFolder(), 'geo.csv')
const DATACENTER = join(temporaryFolder(), 'dc.txt')
writeFileSync(
  geo,
  '203.0.113.0,203.0.113.127,EU,CZ,Praha,Prague,50.08,14.43\n203.0.113.128,203.0.113.255,NA,US,New York,New York,40.71,-74.01\n192.0.2.0,192.0.2.255,OC,AU,,Sydney,-33.87,151.21\n',
)
writeFileSync(DATACENTER, '192.0.2.0/24\n')
const api = await openApi({ FINGERPOST_IP_GEO_FILE: geo, FINGERPOST_IP_DATACENTER_FILE: DATACENTER })
const key = api.server.keys.testSecret
const [PRAGUE, NEW_YORK, SYDNEY_HOSTED] = ['203.0.113.7', '203.0.113.200', '192.0.2.9']

async function see(ip: string, agoMinutes: number, body: object = {}): Promise<Json> {
  const at = new Date(Date.now() - agoMinutes * 60_000).toISOString()
  const { status, body: event, text } = await api.identify({ userAgent: CHROME, mock: { ip, at }, ...body }, { key })
  if (status !== 200) throw new Error(`${status} ${text}`)
  return event
}
const reasonsOf = (event: Json, score: string): string[] =>
  event.scoreReasons.filter((reason: Json) => reason.score === score).map((reason: Json) => reason.reason)

t.test('a visitor who is too fast is told from one who flew', async (t) => {
  const { storageToken } = await see(PRAGUE, 1_300, { linkedId: 'flyer' })
  const flown = await see(NEW_YORK, 700, { linkedId: 'flyer', storageToken })
  t.notOk(reasonsOf(flown, 'ato').includes('impossible_travel'))
  const hosted = await see(SYDNEY_HOSTED, 690, { linkedId: 'flyer', storageToken })
  t.notOk(reasonsOf(hosted, 'ato').includes('impossible_travel'), 'a data centre is nobody’s place')
  const fast = await see(PRAGUE, 600, { linkedId: 'flyer', storageToken })
  t.ok(reasonsOf(fast, 'ato').includes('impossible_travel'))
  t.ok(fast.scores.ato >= 0.5)
  const stays = await see(PRAGUE, 590, { linkedId: 'flyer', storageToken })
  t.notOk(reasonsOf(stays, 'ato').includes('impossible_travel'))
})

t.test('an account that is too fast is noticed on another device', async (t) => {
  await see(PRAGUE, 60, { linkedId: 'shared' })
  const other = await see(NEW_YORK, 30, { linkedId: 'shared' })
  for (const reason of ['impossible_travel', 'new_device']) t.ok(reasonsOf(other, 'ato').includes(reason), reason)
  const nobody = await see(NEW_YORK, 29)
  t.same(reasonsOf(nobody, 'ato'), [], 'without an account there is nothing to take over')
})

t.test('counters become reasons at their thresholds, not before', async (t) => {
  const first = await see(PRAGUE, 20, { linkedId: 'acc-1' })
  const { storageToken } = first
  const last: Json[] = [first]
  for (const linkedId of ['acc-2', 'acc-3', 'acc-4']) last.push(await see(PRAGUE, 20, { linkedId, storageToken }))
  const raised = last.map((event) => reasonsOf(event, 'ato').includes('velocity_accounts_24h'))
  t.same(raised, [false, false, false, true])
  t.ok(reasonsOf(last[3], 'suspect').includes('velocity'))

  const busy = await see(PRAGUE, 3)
  let before: Json = null
  for (let i = 1; i < 30; i++) before = await see(PRAGUE, 3, { storageToken: busy.storageToken })
  const over = await see(PRAGUE, 3, { storageToken: busy.storageToken })
  t.notOk(reasonsOf(before, 'bot').includes('velocity_visitor_5m'))
  t.ok(reasonsOf(over, 'bot').includes('velocity_visitor_5m'))
})

t.test('a list is a block list when a live rule blocks by it', async (t) => {
  const ip = '203.0.113.55'
  for (const name of ['Bad-Addresses', 'just-a-list']) {
    t.equal((await api.send('POST', '/v1/lists', { key, body: { name, type: 'ip' } })).status, 201)
  }
  const { body } = await api.send('GET', '/v1/lists', { key })
  for (const { id, listId } of body.data) {
    const added = await api.send('PATCH', `/v1/lists/${id ?? listId}/entries`, { key, body: { add: [ip] } })
    t.equal(added.status, 200, added.text)
  }
  t.notOk(reasonsOf(await see(ip, 5), 'abuse').includes('listed'))
  const rule = {
    name: 'bad',
    priority: 1,
    conditions: { operator: 'AND', rules: [{ field: 'ip', operator: 'in', value: 'bad-addresses' }] },
    action: { verdict: 'block' },
    status: 'live',
  }
  const created = await api.send('POST', '/v1/rules', { key, body: rule })
  t.equal(created.status, 201, created.text)
  const listed = await eventually(
    () => see(ip, 5),
    (event) => event.scores.suspect > 90,
  )
  t.ok(reasonsOf(listed, 'abuse').includes('listed'))
  t.ok(listed.scores.suspect > 94)
  t.notOk(reasonsOf(await see(PRAGUE, 5), 'abuse').includes('listed'))
})

t.test('a workspace weighs reasons in its own way, and goes back', async (t) => {
  const weigh = (scoreWeights: object) => api.admin('PATCH', '/workspaces/ws_default', { settings: { scoreWeights } })
  const weights = { 'ato.new_device': 0.9, 'ato.impossible_travel': 0 }
  const changed = await weigh(weights)
  t.equal(changed.status, 200, changed.text)
  t.same(changed.body.settings.scoreWeights, weights)
  let n = 0
  const fresh = () => see(PRAGUE, 1, { linkedId: `weighed-${n++}` })
  const heavy = await eventually(fresh, (event) => event.scores.ato > 0.8)
  t.equal(heavy.scores.ato, 0.91, 'with a low confidence')
  t.same(
    heavy.scoreReasons.find(({ score }: Json) => score === 'ato'),
    { score: 'ato', reason: 'new_device', weight: 0.9 },
  )
  for (const bad of [{ 'ato.unknown': 0.5 }, { 'ato.new_device': 1.5 }, { 'ato.new_device': '1' }]) {
    t.equal((await weigh(bad)).status, 400, JSON.stringify(bad))
  }
  await weigh({})
  t.equal((await eventually(fresh, (event) => event.scores.ato < 0.8)).scores.ato, 0.415)
})

t.test('the server stops in order', async (t) => t.equal(await api.server.stop(), 0))
