// PATCH /v1/events/{id}: what is said of an event afterwards is shown at once, reaches lists and backtests within two seconds, and
// stays through repetition and the erasure of the visitor; `faults/events-survive.test.ts` kills the server after it.

import t from 'tap'
import { browserBody, CHROME, errorOf, eventually } from '../helpers/client.ts'
import { sized } from '../helpers/depth.ts'
import { deviceOf } from '../helpers/devices.ts'
import { cleanUp } from '../helpers/server.ts'
import * as shapes from '../helpers/shapes.ts'
import { openTenant } from '../helpers/tenant.ts'

t.teardown(cleanUp)

const { server, ...client } = await openTenant()
const { keys } = server
const key = keys.secret

async function visit(storageToken: string | null = null) {
  const sent = { ...browserBody(), storageToken, userAgent: CHROME, linkedId: 'before', tag: { was: 1 } }
  const { status, body } = await client.identify(sent, { key })
  t.equal(status, 200)
  return body as { requestId: string; visitorId: string; storageToken: string }
}
const patch = (requestId: string, body: unknown, as = key) =>
  client.send('PATCH', `/v1/events/${requestId}`, { key: as, body })
const linked = async (linkedId: string): Promise<string[]> =>
  (await client.get(`/v1/events?linkedId=${linkedId}`, key)).body.data.map(
    (one: { requestId: string }) => one.requestId,
  )
const backtest = async () =>
  (
    await client.send('POST', '/v1/rules/backtest', {
      key,
      body: {
        conditions: { operator: 'AND', rules: [{ field: 'device.platform', operator: 'equals', value: 'Windows' }] },
        action: { verdict: 'block' },
      },
    })
  ).body

t.test('the answer is the event with what was said, and every read shows it at once', async (t) => {
  const { requestId } = await visit()
  const changed = await patch(requestId, { linkedId: 'user 9', tag: { now: [1, { deep: 'ö' }] }, label: 'fraud' })
  t.equal(changed.status, 200)
  t.same(shapes.event(changed.body), [])
  t.match(changed.body, { requestId, linkedId: 'user 9', label: 'fraud' })
  t.same(changed.body.tag, { now: [1, { deep: 'ö' }] })
  t.same((await client.get(`/v1/events/${requestId}`, key)).body, changed.body)

  t.match(
    (await patch(requestId, { label: null })).body,
    { linkedId: 'user 9', label: null },
    'only what is named changes',
  )
  t.match((await patch(requestId, { label: 'legitimate' })).body, { label: 'legitimate' })
  const last = (await patch(requestId, {})).body
  t.match(last, { label: 'legitimate', linkedId: 'user 9' }, 'nothing named is nothing changed')
  t.same(
    await eventually(
      () => linked('user%209'),
      (ids) => ids.length > 0,
    ),
    [requestId],
    'lists within two seconds',
  )
  t.same(await linked('before'), [], 'and no longer where it was')
  t.same((await client.get(`/v1/events/${requestId}`, key)).body, last, 'the row says the same')
  t.match(
    (await patch(requestId, { label: 'fraud' })).body,
    { label: 'fraud', linkedId: 'user 9' },
    'also of an old one',
  )
})

t.test('the accounts of a visitor follow those of its events', async (t) => {
  // Another address and hardware than the visits before have: whoever looks like them may be one of them.
  const { mock, ...look } = deviceOf(7)
  const device = { ...look, ip: mock.ip }
  const sent = async (linkedId: string, storageToken: string | null = null) =>
    (await client.identify({ ...device, linkedId, storageToken }, { key })).body as Awaited<ReturnType<typeof visit>>
  const first = await sent('acc-a')
  const second = await sent('acc-a', first.storageToken)
  const third = await sent('acc-b', first.storageToken)
  const { visitorId } = first
  t.same([second.visitorId, third.visitorId], [visitorId, visitorId])
  const accounts = async () => (await client.get(`/v1/visitors/${visitorId}`, key)).body.linkedAccounts
  const follows = async (requestId: string, linkedId: string | null, wanted: number, why: string) => {
    t.equal((await patch(requestId, { linkedId })).status, 200)
    t.equal(await eventually(accounts, (got) => got === wanted), wanted, why)
  }
  t.equal(await eventually(accounts, (got) => got === 2), 2)
  await follows(third.requestId, 'acc-c', 2, 'one account for another')
  await follows(third.requestId, 'acc-a', 1, 'the same as the others')
  await follows(first.requestId, 'acc-d', 2, 'the others still have the old one')
  await follows(second.requestId, 'acc-d', 2, 'one of them has it')
  await follows(third.requestId, 'acc-d', 1, 'nobody has it')
  await follows(third.requestId, null, 1, 'the others have it')
  t.same(
    (await Promise.all([patch(first.requestId, { linkedId: null }), patch(second.requestId, { linkedId: null })])).map(
      ({ status }) => status,
    ),
    [200, 200],
  )
  t.equal(await eventually(accounts, (got) => got === 0), 0, 'at once as well')
})

t.test('null takes back the account and the tag', async (t) => {
  const { requestId } = await visit()
  await patch(requestId, { linkedId: 'user-null' })
  await eventually(
    () => linked('user-null'),
    (ids) => ids.length > 0,
  )
  const { status, body } = await patch(requestId, { linkedId: null, tag: null })
  t.match({ status, body }, { status: 200, body: { linkedId: null } })
  t.same(body.tag, {})
  await eventually(
    () => linked('user-null'),
    (ids) => ids.length === 0,
  )
  t.same((await client.get(`/v1/events/${requestId}`, key)).body, body, 'the row says the same')
})

t.test('every read after an answer shows it, while it moves into ClickHouse', async (t) => {
  const { requestId } = await visit()
  const labels = ['fraud', null, 'legitimate'] as const
  const changes = sized({ quick: 4, usual: 12, long: 28 })
  let asked = 0
  for (let i = 0; i < changes || asked <= 50; i++) {
    const label = labels[i % labels.length] ?? null
    const answer = await patch(requestId, { label, tag: { i } })
    t.match(answer.body, { label, tag: { i } })
    const rest = performance.now() + 150 * (i % 4)
    do {
      const { body } = await client.get(`/v1/events/${requestId}`, key)
      asked += 1
      if (body.label !== label || body.tag.i !== i) t.fail(`reads went back: ${JSON.stringify(body.tag)} after ${i}`)
    } while (performance.now() < rest)
  }
  t.equal((await patch(requestId, { label: null })).status, 200, 'for the test below')
})

t.test('labels are what a backtest is right about', async (t) => {
  // What the tests above said has to have arrived.
  const said = { fraud: 1, legitimate: 0 }
  const before = await eventually(
    backtest,
    ({ labeled }) => labeled?.fraud === said.fraud && labeled.legitimate === said.legitimate,
  )
  t.same(before.labeled, said)
  const visits = [await visit(), await visit(), await visit()]
  await patch(visits[0]?.requestId ?? '', { label: 'fraud' })
  await patch(visits[1]?.requestId ?? '', { label: 'fraud' })
  await patch(visits[2]?.requestId ?? '', { label: 'legitimate' })
  const after = await eventually(backtest, ({ labeled }) => labeled?.fraud + labeled?.legitimate >= said.fraud + 3)
  t.equal(after.labeled.fraud, before.labeled.fraud + 2)
  t.equal(after.labeled.legitimate, before.labeled.legitimate + 1)
  t.equal(after.recall, 1)
  t.equal(after.precision, after.labeled.fraud / (after.labeled.fraud + after.labeled.legitimate))
})

t.test('what cannot be said is refused with its field', async (t) => {
  const { requestId } = await visit()
  const nested = { a: { b: { c: { d: { e: 1 } } } } }
  for (const [body, field] of [
    [{ label: 'maybe' }, 'label'],
    [{ linkedId: '' }, 'linkedId'],
    [{ linkedId: 'x'.repeat(257) }, 'linkedId'],
    [{ tag: 'text' }, 'tag'],
    [{ tag: nested }, 'tag'],
    [{ tag: { long: 'x'.repeat(4_096) } }, 'tag'],
    [{ verdict: 'allow' }, 'verdict'],
  ] as const) {
    const answer = await patch(requestId, body)
    t.equal(answer.status, 400, JSON.stringify(body).slice(0, 60))
    t.same(errorOf(answer), { code: 'validation_error', field })
  }
  t.match((await client.get(`/v1/events/${requestId}`, key)).body, { label: null, linkedId: 'before', tag: { was: 1 } })
  t.equal((await patch(requestId, { label: 'fraud' }, keys.testSecret)).status, 404, 'of another environment')
  t.equal((await patch('req_01ARZ3NDEKTSV4RRFFQ69G5FAV', { label: 'fraud' })).status, 404)
  t.equal((await patch('no-such-thing', { label: 'fraud' })).status, 404)
  t.equal((await patch(requestId, { label: 'fraud' }, keys.public)).status, 403)
})

t.test('nothing said brings an erased visitor back', async (t) => {
  const { requestId, visitorId } = await visit()
  await patch(requestId, { linkedId: 'gone', label: 'fraud' })
  await eventually(
    () => client.get(`/v1/visitors/${visitorId}`, key),
    ({ status }) => status === 200,
  )
  t.equal((await client.send('DELETE', `/v1/visitors/${visitorId}`, { key })).status, 200)
  t.equal((await patch(requestId, { label: 'legitimate' })).status, 404)
  // What is said of one who came later arrives behind it.
  const later = await visit()
  await patch(later.requestId, { linkedId: 'behind' })
  await eventually(
    () => linked('behind'),
    (ids) => ids.length > 0,
  )
  t.same(await linked('gone'), [])
  t.equal((await client.get(`/v1/events/${requestId}`, key)).status, 404)
})
