// What is held of a visitor can be taken out, and its erasure followed store by store until no byte of it is on the disks of the
// history; so can what a workspace keeps for a shorter time.

import { join } from 'node:path'
import t from 'tap'
import { type Answer, browserBody, CHROME, clientOf, errorOf, eventually } from '../helpers/client.ts'
import { openOps } from '../helpers/deployment.ts'
import { filesOf } from '../helpers/folder.ts'
import { cleanUp, startServer, temporaryFolder } from '../helpers/server.ts'
import * as shapes from '../helpers/shapes.ts'

t.teardown(cleanUp)

const dataDir = temporaryFolder()
// Parts that were replaced stay for eight minutes in case of a power cut; a test does not wait for that.
const ops = await openOps(dataDir)
for (const table of ['events', 'quarantine']) {
  await ops.clickhouse.command(`ALTER TABLE ${table} MODIFY SETTING old_parts_lifetime = 1`)
}
await ops.close()
const server = await startServer({
  dataDir,
  env: { FINGERPOST_PURGE_EVERY_SECONDS: '3', FINGERPOST_LOG_KEEP_SECONDS: '10' },
})
const { identify, get, send, admin } = clientOf(server)
const { keys } = server
const DAY_MS = 86_400_000

let made = 0
async function visit(more: object = {}, storageToken: string | null = null, key = keys.secret) {
  made += 1
  const page = browserBody(storageToken === null ? `GPU ${made}` : undefined)
  const answer = await identify({ ...page, userAgent: CHROME, storageToken, ...more }, { key })
  t.equal(answer.status, 200)
  return answer.body as { requestId: string; visitorId: string; storageToken: string }
}
const stored = (visitorId: string, visits: number, key = keys.secret) =>
  eventually(
    async () => [
      await get(`/v1/visitors/${visitorId}`, key),
      (await get(`/v1/visitors/${visitorId}/events`, key)).body?.data?.length,
    ],
    ([visitor, listed]) => visitor.status === 200 && listed === visits,
  )

function filesWith(folder: string, text: string): string[] {
  const found: string[] = []
  for (const { path, bytes } of filesOf(folder)) if (bytes.includes(text)) found.push(path)
  return found
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
    t.same(shapes.event(event), [])
    t.same(event, (await get(`/v1/events/${event.requestId}`)).body)
  }
  const parts = []
  let cursor: string | null = null
  do {
    const page: string = `limit=2${cursor === null ? '' : `&cursor=${cursor}`}`
    const part = (await get(`/v1/visitors/${visitorId}/export?${page}`)).body
    parts.push(...part.events)
    cursor = part.nextCursor
  } while (cursor !== null)
  t.same(parts, body.events, 'page by page it is the same')

  t.equal((await get(`/v1/visitors/${visitorId}/export`, keys.testSecret)).status, 404)
  t.equal((await get('/v1/visitors/pv_nobody/export')).status, 404)
  t.same(errorOf(await get(`/v1/visitors/${visitorId}/export?limit=501`)), { code: 'validation_error', field: 'limit' })
  t.equal((await get(`/v1/visitors/${visitorId}/export?cursor=x`)).status, 400)
})

t.test('an erasure is followed store by store until nothing is left', async (t) => {
  const canary = {
    linkedId: `canary-${'x'.repeat(8)}-7c1f`,
    email: 'canary-1d9e@shop.example',
    tag: { canary: 'c4na7y-tag' },
  }
  const { visitorId } = await visit(canary)
  await visit()
  await stored(visitorId, 1)
  const history = join(dataDir, 'clickhouse')
  const held = () => [visitorId, canary.linkedId, canary.email].flatMap((text) => filesWith(history, text))
  t.ok(held().length > 0, 'before, the scan finds it')
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
  // A purge that came between the two calls has had their bytes.
  const removed = /^(?:deleted|done)$/
  t.match(early.body.stores.slice(0, 2), [{ status: removed }, { status: removed }], 'bytes may be on the disk')
  const statusOf = ({ body }: Answer): string =>
    body.stores.find(({ store }: { store: string }) => store === 'events').status
  const seen = new Set<string>([statusOf(early)])
  const done = await eventually(
    async () => {
      const answer = await read()
      seen.add(statusOf(answer))
      return answer
    },
    (answer) => answer.body.status === 'done',
    240_000,
  )
  t.equal(done.body.status, 'done', done.text)
  t.ok(seen.has('done') && (seen.has('hidden') || seen.has('deleted')), [...seen].join())
  const left = await eventually(
    async () => held(),
    (files) => files.length === 0,
    120_000,
  )
  t.same(left, [], 'and then no file of the history has it')
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
  const changed = await admin('PATCH', '/workspaces/ws_default', { settings })
  t.match(changed, { status: 200, body: { settings } })
  t.equal((await get(`/v1/events/${old.requestId}`, key)).status, 404, 'what is too old is gone at once')
  t.same(await listed(), [fresh.requestId, young.requestId, middle.requestId])
  const range = `from=${at(30)}&to=${at(0)}`
  t.equal((await get(`/v1/analytics/events?${range}`, key)).body.total, 3)
  t.equal((await identify({ mock: { at: at(11) } }, { key })).status, 400, 'and nothing older comes in')

  const rule = (ip: string) => ({
    conditions: { operator: 'AND', rules: [{ field: 'ip', operator: 'equals', value: ip }] },
    days: 30,
  })
  const matches = async (ip: string) =>
    (await send('POST', '/v1/rules/backtest', { key, body: rule(ip) })).body.matchCount
  t.equal(
    await eventually(
      () => matches('198.51.100.99'),
      (count) => count === 1,
    ),
    1,
    'of the old one the network is left',
  )
  t.equal(await matches('2001:db8:1:2::3'), 0)
  t.equal(
    (await get(`/v1/events/${middle.requestId}`, key)).body.ip.address,
    '198.51.100.*',
    'which is all that was ever shown',
  )
  t.equal((await get(`/v1/events/${young.requestId}`, key)).body.ip.address, '2001:db8:1::*')
})
