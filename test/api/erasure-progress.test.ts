// What is held of a visitor can be taken out, and its erasure followed store by store; what a workspace keeps for a shorter time
// is gone at once. `faults/erasure-bytes.test.ts` follows both until nothing is left on the disks.

import t from 'tap'
import { browserBody, CHROME, errorOf, eventually } from '../helpers/client.ts'
import { cleanUp } from '../helpers/server.ts'
import * as shapes from '../helpers/shapes.ts'
import { openTenant } from '../helpers/tenant.ts'

t.teardown(cleanUp)

const { server, identify, get, send, admin } = await openTenant()
const { keys } = server
const DAY_MS = 86_400_000

let made = 0
/** Without a token one of another device. */
async function visit(more: object = {}, storageToken: string | null = null, key = keys.secret) {
  if (storageToken === null) made += 1
  const page = browserBody(`GPU ${made}`)
  Object.assign(page.components, { audio: { value: 200 + made }, fonts: { value: [`Font ${made}`] } })
  const answer = await identify({ ...page, userAgent: CHROME, storageToken, ...more }, { key })
  t.equal(answer.status, 200)
  return answer.body as { requestId: string; visitorId: string; storageToken: string }
}
async function stored(visitorId: string, visits: number): Promise<void> {
  const shown = await eventually(
    async () => [
      (await get(`/v1/visitors/${visitorId}`)).body?.totalVisits,
      (await get(`/v1/visitors/${visitorId}/events`)).body?.data?.length,
    ],
    ([total, listed]) => total === visits && listed === visits,
  )
  t.same(shown, [visits, visits])
}

t.test('an export holds the visitor, its events and its places on lists', async (t) => {
  const first = await visit({ linkedId: 'u1', email: 'someone@shop.example', tag: { n: 1 } })
  for (let n = 2; n <= 5; n++) await visit({ linkedId: 'u2', tag: { n } }, first.storageToken)
  const { visitorId } = first
  const list = (await send('POST', '/v1/lists', { body: { name: 'watched', type: 'visitor' } })).body
  const entry = { value: visitorId, ttl: 3_600, reason: 'looks odd' }
  await send('PATCH', `/v1/lists/${list.id}/entries`, { body: { add: [entry] } })
  await stored(visitorId, 5)

  const { status, body } = await get(`/v1/visitors/${visitorId}/export`)
  t.equal(status, 200)
  t.same(body.visitor, (await get(`/v1/visitors/${visitorId}`)).body)
  t.match(body, { mergedVisitorIds: [], hasMore: false, nextCursor: null })
  t.match(body.lists, [{ list: 'watched', value: visitorId, source: 'api', reason: 'looks odd', ruleId: null }])
  t.same(shapes.moment(body.lists[0].addedAt), [])
  t.same(
    body.events.map(({ tag }: { tag: { n: number } }) => tag.n),
    [5, 4, 3, 2, 1],
  )
  for (const event of body.events) {
    const shown = (await get(`/v1/events/${event.requestId}`)).body
    const { email } = event
    t.equal(email, event.requestId === first.requestId ? 'someone@shop.example' : null, 'an email is whole')
    t.same({ ...event, email: shown.email, ip: { ...event.ip, address: shown.ip.address } }, shown)
    t.same(shapes.event(shown), [])
  }
  const masked = (await get(`/v1/visitors/${visitorId}/export?masked=true`)).body
  for (const event of masked.events) t.same(event, (await get(`/v1/events/${event.requestId}`)).body)
  const parts = []
  let cursor: string | null = null
  do {
    const page: string = `limit=2${cursor === null ? '' : `&cursor=${cursor}`}`
    const part = (await get(`/v1/visitors/${visitorId}/export?${page}`)).body
    parts.push(...part.events)
    t.equal(part.recognition === undefined, cursor !== null, 'what does not change comes with the first page')
    t.equal(part.visitor.visitorId, visitorId)
    cursor = part.nextCursor
  } while (cursor !== null)
  t.same(parts, body.events, 'page by page it is the same')

  t.equal((await get(`/v1/visitors/${visitorId}/export`, keys.testSecret)).status, 404)
  t.equal((await get('/v1/visitors/pv_nobody/export')).status, 404)
  t.same(errorOf(await get(`/v1/visitors/${visitorId}/export?limit=501`)), { code: 'validation_error', field: 'limit' })
  t.equal((await get(`/v1/visitors/${visitorId}/export?cursor=x`)).status, 400)
})

t.test(
  'an export tells how the visitor is recognised, its accounts and addresses, and what was done about it',
  async (t) => {
    const key = keys.secret
    const hook = { url: 'https://hooks.example.com/exported', events: ['identification.complete'], enabled: false }
    const webhook = (await send('POST', '/v1/webhooks', { body: hook })).body
    const ip = '203.0.113.41'
    const first = await visit({ linkedId: 'me', email: 'me@shop.example', ip })
    await visit({ linkedId: 'also-me', ip: '203.0.113.42' }, first.storageToken)
    const other = await visit({ linkedId: 'other' })
    const { visitorId } = first
    await stored(visitorId, 2)
    await stored(other.visitorId, 1)
    const merged = await send('POST', `/v1/visitors/${visitorId}/merge`, { body: { visitorId: other.visitorId } })
    t.equal(merged.status, 200, merged.text)
    await stored(visitorId, 3)
    t.equal((await send('PATCH', `/v1/events/${first.requestId}`, { key, body: { label: 'fraud' } })).status, 200)
    const held = async (query = '') => (await get(`/v1/visitors/${visitorId}/export${query}`)).body
    const whole = await eventually(held, ({ deliveries }) => deliveries.length >= 2)
    const values = (said: { value: string }[]) => said.map(({ value }) => value).sort()
    t.same(values(whole.accounts), ['also-me', 'me', 'other'])
    t.same(values(whole.emails), ['me@shop.example'])
    t.ok(values(whole.addresses).includes(ip) && values(whole.addresses).includes('203.0.113.42'))
    t.same(
      whole.recognition.map((record: { visitorId: string }) => record.visitorId),
      [visitorId, other.visitorId],
    )
    t.same(whole.recognition[0].counters, {
      events: { '5m': 2, '1h': 2, '24h': 2 },
      ips: { '24h': 2 },
      countries: { '24h': whole.recognition[0].counters.countries['24h'] },
      linkedIds: { '24h': 2 },
    })
    t.same(whole.truncated, [])
    for (const { matchKeys, attributes, generation } of whole.recognition) {
      t.ok(matchKeys.length > 0 && Object.keys(attributes).length > 0 && generation > 0)
    }
    t.match(whole.deliveries[0], { webhookId: webhook.id, type: 'identification.complete', attempts: 0 })
    const by = { type: 'key', id: /^key_/ }
    t.match(whole.corrections, [{ visitorIds: [visitorId, other.visitorId], same: true, actor: key.slice(-4), by }])
    const again = await eventually(held, ({ audit }) => audit.length >= 3)
    const actions = again.audit.map(
      ({ resource, action }: { resource: string; action: string }) => `${resource} ${action}`,
    )
    for (const action of ['visitor merge', 'visitor export'])
      t.ok(actions.includes(action), `${action} among ${actions}`)
    const masked = await held('?masked=true')
    t.same(values(masked.addresses), ['127.0.0.*', '203.0.113.*'])
    t.notOk(JSON.stringify(masked).includes(ip))
    t.same(values(masked.emails), ['m***@shop.example'])
  },
)

t.test('a page of an export ends with the event that passes a megabyte, and the next one goes on', async (t) => {
  const VISITS = 210
  const note = 'x'.repeat(3_900)
  const first = await visit({ linkedId: 'long', tag: { n: 0, note } })
  for (let n = 1; n < VISITS; n++) await visit({ linkedId: 'long', tag: { n, note } }, first.storageToken)
  const isStored = ({ accounts }: { accounts: { events: number }[] }) => accounts[0]?.events === VISITS
  await eventually(async () => (await get(`/v1/visitors/${first.visitorId}/export?limit=1`)).body, isStored)
  const seen: number[] = []
  let cursor: string | null = null
  let pages = 0
  do {
    const path: string = `/v1/visitors/${first.visitorId}/export${cursor === null ? '' : `?cursor=${cursor}`}`
    const { body } = await get(path)
    const lengths = body.events.map((event: object) => JSON.stringify(event).length)
    const length = lengths.reduce((sum: number, one: number) => sum + one, 0)
    t.ok(length - lengths.at(-1) <= 1_048_576, 'without its last event it is no megabyte')
    if (body.hasMore) t.ok(length > 1_048_576, 'and with it, it is')
    seen.push(...body.events.map(({ tag }: { tag: { n: number } }) => tag.n))
    cursor = body.nextCursor
    pages++
  } while (cursor !== null)
  t.equal(pages, 2)
  t.same(
    seen,
    Array.from({ length: VISITS }, (_, i) => VISITS - 1 - i),
    'every event once, newest first',
  )
})

t.test('an erasure is followed store by store', async (t) => {
  const canary = {
    linkedId: `canary-${'x'.repeat(8)}-7c1f`,
    email: 'canary-1d9e@shop.example',
    tag: { canary: 'c4na7y-tag' },
  }
  const { visitorId } = await visit(canary)
  await visit()
  await stored(visitorId, 1)
  const { body } = await send('DELETE', `/v1/visitors/${visitorId}`)
  const { erasureId } = body
  t.match(body, { deleted: true, visitorId })
  const read = () => get(`/v1/erasures/${erasureId}`)
  const early = await read()
  t.match(early, { status: 200, body: { erasureId, status: 'in_progress' } })
  t.same(shapes.moment(early.body.requestedAt), [])
  t.same(
    early.body.stores.map(({ store }: { store: string }) => store),
    ['profile', 'lists', 'webhooks', 'events', 'log'],
  )
  t.notMatch(early.text, visitorId)
  const byTomorrow = new Date(Date.parse(early.body.requestedAt) + DAY_MS).toISOString()
  for (const { store, status, expectedBy } of early.body.stores) {
    t.equal(expectedBy, status === 'done' ? null : byTomorrow, `${store} is ${status}`)
  }
  t.match(early.body.stores[3], { status: 'pending' }, 'bytes of its events are on the disk')
  t.equal((await send('DELETE', `/v1/visitors/${visitorId}`)).status, 404)

  t.equal((await get(`/v1/erasures/${erasureId}`, keys.testSecret)).status, 404)
  t.equal((await get('/v1/erasures/era_00000000000000000000')).status, 404)
  t.equal((await get('/v1/erasures/x')).status, 404)
})

t.test('a workspace may keep events and full addresses for a shorter time', async (t) => {
  const at = (days: number) => new Date(Date.now() - days * DAY_MS).toISOString()
  const key = keys.testSecret
  const mocked = (days: number, ip: string) => visit({ mock: { at: at(days), ip } }, null, key)
  const [old, middle, young] = [
    await mocked(20, '203.0.113.77'),
    await mocked(6, '198.51.100.99'),
    await mocked(6, '2001:db8:1:2::3'),
  ]
  const fresh = await mocked(1, '198.51.100.99')
  const listed = async () =>
    (await get('/v1/events?limit=100', key)).body.data.map((one: { requestId: string }) => one.requestId)
  await eventually(listed, (ids) => ids.length === 4)
  const settings = { retention: { eventsDays: 10, fullIpDays: 3 } }
  const changed = await admin('PATCH', `/workspaces/${server.workspace}`, { settings })
  t.match(changed, { status: 200, body: { settings } })
  t.equal((await get(`/v1/events/${old.requestId}`, key)).status, 404, 'what is too old is gone at once')
  t.same(await listed(), [fresh.requestId, young.requestId, middle.requestId])
  const range = `from=${at(30)}&to=${at(0)}`
  t.equal((await get(`/v1/analytics/events?${range}`, key)).body.total, 3)
  t.equal((await identify({ mock: { at: at(11) } }, { key })).status, 400, 'and nothing older comes in')

  t.equal((await get(`/v1/events/${middle.requestId}`, key)).body.ip.address, '198.51.100.*', 'no more was ever shown')
  t.equal((await get(`/v1/events/${young.requestId}`, key)).body.ip.address, '2001:db8:1::*')
})
