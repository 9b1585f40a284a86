// GET /v1/visitors: whoever has an event that meets what is asked is found once, newest first, whatever the size of pages, and by
// nobody else's.

import t from 'tap'
import { eventually } from '../helpers/client.ts'
import { sized } from '../helpers/depth.ts'
import { deviceOf } from '../helpers/devices.ts'
import { rng, testSeed } from '../helpers/rng.ts'
import { cleanUp } from '../helpers/server.ts'
import * as shapes from '../helpers/shapes.ts'
import { openTenant } from '../helpers/tenant.ts'

t.teardown(cleanUp)

const seed = testSeed()
t.comment(`SEED=${seed}`)
const random = rng(seed)
const { server, ...client } = await openTenant()
const key = server.keys.testSecret

interface Visit {
  readonly requestId: string
  readonly visitorId: string
  readonly timestamp: string
  readonly linkedId: string
  readonly email: string
  readonly address: string
}
interface Found {
  readonly visitorId: string
  readonly requestId: string
  readonly totalVisits: number
  readonly email: string | null
}

const DEVICES = 12
const VISITS = sized({ quick: 40, usual: 80, long: 160 })
const all: Visit[] = []
const tokens = new Map<number, string>()
for (let i = 0; i < VISITS; i++) {
  const n = 1 + random.int(DEVICES)
  const linkedId = random.pick(['ann', 'anna', 'bob', 'Ann'])
  const email = random.pick(['ann@shop.example', 'anna@shop.example', 'bob@other.example'])
  const address = `203.0.113.${random.int(6)}`
  const at = new Date(Date.now() - 86_400_000 + i * 60_000).toISOString()
  const sent = { ...deviceOf(n), linkedId, email, storageToken: tokens.get(n) ?? null, mock: { at, ip: address } }
  const { body } = await client.identify(sent, { key })
  tokens.set(n, body.storageToken)
  all.unshift({ ...body, linkedId, email, address })
}
await eventually(
  () => client.get('/v1/events?limit=100', key),
  ({ body }) => body.data.length === Math.min(100, VISITS),
)

const ask = (query: string, as = key) => client.get(`/v1/visitors?${query}`, as)
async function pages(query: string, limit: number): Promise<Found[]> {
  const found: Found[] = []
  for (let cursor = ''; ; ) {
    const { status, body } = await ask(`${query}&limit=${limit}${cursor}`)
    if (status !== 200) throw new Error(`${query}: ${status}`)
    if (body.hasMore !== (body.nextCursor !== null)) t.fail(`${query}: a cursor and no page`)
    found.push(...body.data)
    if (!body.hasMore) return found
    cursor = `&cursor=${body.nextCursor}`
  }
}
/** The newest event of each visitor among those that meet it. */
function expected(holds: (visit: Visit) => boolean): string[] {
  const newest = new Map<string, string>()
  for (const one of all) if (holds(one) && !newest.has(one.visitorId)) newest.set(one.visitorId, one.requestId)
  return [...newest.values()]
}

t.test('each filter finds whoever has such an event, by its newest, on pages of any size', async (t) => {
  const { visitorId } = random.pick(all)
  const range = (from: number, to: number) => (one: Visit) => {
    const last = Number(one.address.split('.')[3])
    return last >= from && last <= to
  }
  const questions: [string, (visit: Visit) => boolean][] = [
    ['linkedId=ann', (one) => one.linkedId === 'ann'],
    ['email=%20ANN@shop.example', (one) => one.email === 'ann@shop.example'],
    ['ip=203.0.113.3', range(3, 3)],
    ['ip=203.0.113.0/30', range(0, 3)],
    ['q=ann', (one) => one.linkedId.startsWith('ann') || one.email.startsWith('ann')],
    ['q=Bob', (one) => one.linkedId.startsWith('Bob') || one.email.startsWith('bob')],
    [`q=${visitorId.slice(0, 12)}`, (one) => one.visitorId.startsWith(visitorId.slice(0, 12))],
    ['q=pv_', () => true],
    ['linkedId=bob&ip=203.0.113.4/31', (one) => one.linkedId === 'bob' && range(4, 5)(one)],
    ['linkedId=nobody', () => false],
    ['q=%25', () => false],
  ]
  for (const [query, holds] of questions) {
    for (const limit of [1, 5, 100]) {
      const found = await pages(query, limit)
      t.same(
        found.map(({ requestId }) => requestId),
        expected(holds),
        `${query} by ${limit}`,
      )
    }
  }
})

t.test('a visitor is shown as it is, with what the event found says', async (t) => {
  const [one] = all as [Visit]
  const { body } = await ask(`q=${one.visitorId}`)
  const visitor = (await client.get(`/v1/visitors/${one.visitorId}`, key)).body
  const [found] = body.data
  for (const name of ['visitorId', 'firstSeenAt', 'lastSeenAt', 'totalVisits', 'previousVerdicts']) {
    t.same(found[name], visitor[name], name)
  }
  t.match(found, {
    requestId: one.requestId,
    linkedId: one.linkedId,
    email: `${one.email[0]}***@${one.email.split('@')[1]}`,
  })
  t.notMatch(JSON.stringify(body), one.email)
})

t.test('lists of every type find their visitors, by name and by id', async (t) => {
  const visitorIds = [...new Set(all.map(({ visitorId }) => visitorId))].slice(0, 3)
  const lists = [
    { name: 'people', type: 'visitor', add: visitorIds, holds: (one: Visit) => visitorIds.includes(one.visitorId) },
    {
      name: 'places',
      type: 'ip',
      add: ['203.0.113.4/31', '203.0.113.1'],
      holds: ({ address }: Visit) => ['203.0.113.1', '203.0.113.4', '203.0.113.5'].includes(address),
    },
    { name: 'mails', type: 'email', add: ['bob@other.example'], holds: (one: Visit) => one.email.startsWith('bob@') },
    { name: 'nobody', type: 'email', add: [], holds: () => false },
  ]
  for (const { name, type, add, holds } of lists) {
    const { body: list } = await client.send('POST', '/v1/lists', { key, body: { name, type } })
    await client.send('PATCH', `/v1/lists/${list.id}/entries`, { key, body: { add } })
    for (const asked of [name, name.toUpperCase(), list.id]) {
      t.same(
        (await pages(`list=${asked}`, 100)).map(({ requestId }) => requestId),
        expected(holds),
        asked,
      )
    }
  }
})

t.test('who was merged is found as whom it was merged into, once', async (t) => {
  const [survivor = '', other = ''] = [...new Set(all.map(({ visitorId }) => visitorId))].slice(-2)
  const { status } = await client.send('POST', `/v1/visitors/${survivor}/merge`, { key, body: { visitorId: other } })
  t.equal(status, 200)
  const asOne = all.map((one) => (one.visitorId === other ? { ...one, visitorId: survivor } : one))
  const newest = new Map<string, string>()
  for (const one of asOne) if (!newest.has(one.visitorId)) newest.set(one.visitorId, one.requestId)
  for (const limit of [1, 100]) {
    t.same(
      (await pages('q=pv_', limit)).map(({ visitorId, requestId }) => [visitorId, requestId]),
      [...newest],
    )
  }
  t.equal((await pages(`q=${other}`, 10))[0]?.visitorId, survivor)
})

t.test('who was erased is not found', async (t) => {
  const [{ visitorId }] = all as [Visit]
  t.equal((await client.send('DELETE', `/v1/visitors/${visitorId}`, { key })).status, 200)
  t.same((await ask(`q=${visitorId}`)).body.data, [])
})

t.test('something must be asked, and in its own spelling', async (t) => {
  const refused: [string, string][] = [
    ['', 'q'],
    ['limit=5', 'q'],
    ['q=', 'q'],
    [`q=${'x'.repeat(321)}`, 'q'],
    ['ip=203.0.113', 'ip'],
    ['email=ann', 'email'],
    ['list=unknown', 'list'],
    [`list=lst_${'0'.repeat(20)}`, 'list'],
    ['list=a%20b', 'list'],
    ['q=a&limit=101', 'limit'],
    ['q=a&cursor=AAAA', 'cursor'],
    ['q=a&name=b', 'name'],
  ]
  for (const [query, field] of refused) {
    const answer = await ask(query)
    t.equal(answer.status, 400, query)
    t.same(shapes.errorFaults(400, answer.body), [])
    t.equal(answer.body.error.field, field, query)
  }
  const { nextCursor } = (await ask('q=pv_&limit=1')).body
  t.equal((await ask(`q=pv&limit=1&cursor=${nextCursor}`)).body.error.field, 'cursor', 'of another question')
  t.same((await ask('q=pv_', server.keys.secret)).body.data, [], 'of another environment')
})
