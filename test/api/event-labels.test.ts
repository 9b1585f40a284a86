// POST /v1/events/labels: many events get one label, those that name nothing are counted, and every read shows it once it is answered.

import t from 'tap'
import { labelRoutes } from '../../src/api/events/labels.ts'
import { browserBody, eventually } from '../helpers/client.ts'
import { sized } from '../helpers/depth.ts'
import { deviceOf } from '../helpers/devices.ts'
import { cleanUp } from '../helpers/server.ts'
import * as shapes from '../helpers/shapes.ts'
import { openTenant } from '../helpers/tenant.ts'

t.teardown(cleanUp)

const { server, ...client } = await openTenant()
const key = server.keys.testSecret

let made = 0
/** From a device that nobody has seen, unless a token says whose it is. */
async function visit(linkedId: string, storageToken: string | null = null) {
  made += 1
  const sent = { ...deviceOf(1 + (made % 200)), storageToken, linkedId }
  const { body } = await client.identify(sent, { key })
  return body as { requestId: string; visitorId: string; storageToken: string }
}
const label = (body: unknown, as = key, headers: Record<string, string> = {}) =>
  client.send('POST', '/v1/events/labels', { key: as, body, headers })
const labelOf = async (requestId: string) => (await client.get(`/v1/events/${requestId}`, key)).body.label
const listed = async (query: string) =>
  (await client.get(`/v1/events?limit=100&${query}`, key)).body.data.map((one: { requestId: string }) => one.requestId)
const UNKNOWN = 'req_01KAJ6Q3ZV8M4T9XW2C5E7G1HN'

const MANY = sized({ quick: 20, usual: 60, long: 400 })

t.test('events named are labelled, fresh ones and old ones, and ids that name nothing are counted', async (t) => {
  const old = await visit('old')
  await eventually(
    () => listed('linkedId=old'),
    (ids) => ids.length === 1,
  )
  const made = await Promise.all(Array.from({ length: MANY }, (_, i) => visit(`many${i % 7}`)))
  const { body: foreign } = await client.identify(browserBody(), { key: server.keys.secret })
  const ids = [...made.map(({ requestId }) => requestId), old.requestId]
  const gone = `req_00${UNKNOWN.slice(6)}`
  // Of a year that ClickHouse has no moments of.
  const toCome = `req_7${'Z'.repeat(25)}`
  const requestIds = [...ids, UNKNOWN, gone, toCome, foreign.requestId, old.requestId]
  const { status, body } = await label({ label: 'fraud', requestIds })
  t.equal(status, 202)
  t.same(body, { label: 'fraud', requested: ids.length + 4, labelled: ids.length, notFound: 4, status: 'done' })
  t.same(new Set(await Promise.all(ids.map(labelOf))), new Set(['fraud']), 'every read shows it at once')
  t.equal((await client.get(`/v1/events/${foreign.requestId}`, server.keys.secret)).body.label, null)
  await eventually(
    () => listed('label=fraud&linkedId=old'),
    (found) => found.length === 1,
  )
  t.match((await label({ label: null, requestIds: ids.slice(0, 2) })).body, { labelled: 2, notFound: 0 })
  t.same(await Promise.all(ids.slice(0, 3).map(labelOf)), [null, null, 'fraud'])
  t.same((await label({ label: 'legitimate', requestIds: [UNKNOWN] })).body, {
    label: 'legitimate',
    requested: 1,
    labelled: 0,
    notFound: 1,
    status: 'done',
  })
})

t.test(
  'all events of a visitor are labelled, those of whom was merged into it as well, and of nobody else',
  async (t) => {
    const first = await visit('holder')
    for (let i = 0; i < 4; i++) await visit('holder', first.storageToken)
    const merged = await visit('merged')
    const other = await visit('somebody')
    await client.send('POST', `/v1/visitors/${first.visitorId}/merge`, { key, body: { visitorId: merged.visitorId } })
    await eventually(
      () => listed(`visitorId=${first.visitorId}`),
      (ids) => ids.length === 6,
    )
    const { status, body } = await label({ label: 'legitimate', visitorId: first.visitorId })
    t.equal(status, 202)
    t.same(body, { label: 'legitimate', requested: 6, labelled: 6, notFound: 0, status: 'done' })
    t.same(await Promise.all((await listed(`visitorId=${first.visitorId}`)).map(labelOf)), Array(6).fill('legitimate'))
    t.equal(await labelOf(other.requestId), null)
    t.match(await label({ label: 'fraud', visitorId: `pv_${'0'.repeat(20)}` }), {
      status: 404,
      body: { error: { code: 'not_found', field: 'visitorId' } },
    })
  },
)

t.test('what is asked is either ids or a visitor, within bounds', async (t) => {
  const { visitorId } = await visit('bounds')
  const refused: [object, string][] = [
    [{ label: 'fraud' }, 'requestIds'],
    [{ label: 'fraud', requestIds: [UNKNOWN], visitorId }, 'requestIds'],
    [{ requestIds: [UNKNOWN] }, 'label'],
    [{ label: 'bad', requestIds: [UNKNOWN] }, 'label'],
    [{ label: 'fraud', requestIds: [] }, 'requestIds'],
    [{ label: 'fraud', requestIds: ['req_x'] }, 'requestIds[0]'],
    [{ label: 'fraud', requestIds: Array(1_001).fill(UNKNOWN) }, 'requestIds'],
    [{ label: 'fraud', visitorId: 'pv_x' }, 'visitorId'],
    [{ label: 'fraud', requestIds: [UNKNOWN], more: 1 }, 'more'],
  ]
  for (const [body, field] of refused) {
    const answer = await label(body)
    t.equal(answer.status, 400, JSON.stringify(body).slice(0, 60))
    t.same(shapes.errorFaults(400, answer.body), [])
    t.equal(answer.body.error.field, field)
  }
})

t.test('it is in the audit log as counts, and happens once under one Idempotency-Key', async (t) => {
  const { requestId, visitorId } = await visit('audited')
  const once = { 'Idempotency-Key': 'label-once' }
  const first = await label({ label: 'fraud', requestIds: [requestId] }, key, once)
  await label({ label: null, requestIds: [requestId] })
  const again = await label({ label: 'fraud', requestIds: [requestId] }, key, once)
  t.same(again.body, first.body)
  t.equal(again.headers.get('idempotent-replayed'), 'true')
  t.equal(await labelOf(requestId), null, 'the repetition did nothing')
  await eventually(
    () => listed('linkedId=audited'),
    (ids) => ids.length === 1,
  )
  await label({ label: 'fraud', visitorId })
  const { text, body } = await client.get('/v1/audit?limit=5', key)
  t.match(body.data[0], { resource: 'visitor', id: visitorId, action: 'label' })
  t.match(body.data[1], { resource: 'event', id: 'labels', action: 'label', by: { type: 'key' } })
  t.notMatch(text, requestId, 'no event is named')
})

t.test(
  'what an engine does not show in time goes on behind the answer, and what is refused before it is an error',
  async (t) => {
    const homes = [{ requestId: UNKNOWN, partition: 0, env: 'test' as const }]
    const outcomes: ((error?: Error) => void)[] = []
    const [route] = labelRoutes({
      places: { named: async () => homes } as never,
      visitors: {} as never,
      annotate: () => new Promise((resolve, reject) => outcomes.push((error) => (error ? reject(error) : resolve()))),
      submit: async () => ({ ok: true }) as never,
      clock: { now: Date.now, sleep: () => new Promise((resolve) => setImmediate(resolve)) },
      stopping: new AbortController().signal,
    })
    const caller = { workspace: { id: 'ws_default' }, env: 'test', key: { id: 'key_1' } }
    const call = { caller, body: { label: 'fraud', requestIds: [UNKNOWN] } }
    const late = await route?.handle(call as never)
    t.match(late, { status: 202, body: { requested: 1, labelled: 0, status: 'running' } })
    outcomes.forEach((settle) => {
      settle()
    })
    const refused = route?.handle(call as never)
    setImmediate(() => outcomes.at(-1)?.(new Error('no room')))
    await t.rejects(Promise.resolve(refused), { message: 'no room' })
  },
)
