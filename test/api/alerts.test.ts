// /v1/alerts against a real server: what they are, what they refuse, and that a threshold that is passed makes one incident per
// cooldown, of which subscribers are told.

import t from 'tap'
import { CHROME, errorOf, eventually } from '../helpers/client.ts'
import { cleanUp } from '../helpers/server.ts'
import * as shapes from '../helpers/shapes.ts'
import { openTenant, removeAlerts } from '../helpers/tenant.ts'

const { server, ...client } = await openTenant()
t.teardown(async () => {
  await removeAlerts({ server, send: client.send })
  await cleanUp()
})
const { keys } = server

const send = (method: string, path: string, body?: unknown, key = keys.secret) =>
  client.send(method, path, { key, ...(body === undefined ? {} : { body }) })
const ALERT = { name: 'Many', metric: 'events', operator: 'gte', threshold: 3 }
const visit = (mock: object = {}) =>
  client.identify({ userAgent: CHROME, mock: { ip: '203.0.113.9', ...mock } }, { key: keys.testSecret })
const incidents = async (id: string, key = keys.testSecret) =>
  (await client.get(`/v1/alerts/${id}/incidents`, key)).body

const alertShape = shapes.object({
  id: shapes.matching(/^alr_[0-9A-Za-z]{20}$/),
  name: shapes.text,
  metric: shapes.text,
  filters: () => [],
  operator: shapes.oneOf('gt', 'gte', 'lt', 'lte'),
  threshold: shapes.number(0, 1e12, 6),
  windowSeconds: shapes.integer(60),
  minEvents: shapes.integer(),
  cooldownSeconds: shapes.integer(60),
  status: shapes.oneOf('active', 'paused'),
  createdAt: shapes.moment,
  updatedAt: shapes.moment,
})

t.test('an alert is made, read, changed and removed', async (t) => {
  const made = await send('POST', '/v1/alerts', { ...ALERT, status: 'paused', filters: { verdict: 'block' } })
  t.equal(made.status, 201)
  t.same(alertShape(made.body), [])
  t.match(made.body, { ...ALERT, status: 'paused', filters: { verdict: 'block' } })
  t.match(made.body, { windowSeconds: 300, minEvents: 0, cooldownSeconds: 3_600 })
  const { id } = made.body
  t.same((await send('GET', `/v1/alerts/${id}`)).body, made.body)
  t.same((await send('GET', '/v1/alerts?status=paused')).body, { data: [made.body], total: 1 })
  t.same((await send('GET', '/v1/alerts?status=active')).body, { data: [], total: 0 })
  const changed = await send('PUT', `/v1/alerts/${id}`, { threshold: 7.5, filters: {} })
  t.match(changed, { status: 200, body: { threshold: 7.5, name: 'Many' } })
  t.same(changed.body.filters, {})
  t.same((await send('PUT', `/v1/alerts/${id}`, {})).body, changed.body)
  t.same(await incidents(id, keys.secret), { data: [], hasMore: false, nextCursor: null })

  for (const path of [`/v1/alerts/${id}`, `/v1/alerts/${id}/incidents`]) {
    t.equal((await send('GET', path, undefined, keys.testSecret)).status, 404, 'of another environment')
    t.equal((await send('GET', path, undefined, keys.public)).status, 403)
  }
  t.equal((await send('PUT', `/v1/alerts/${id}`, { name: 'x' }, keys.testSecret)).status, 404)
  t.equal((await send('DELETE', `/v1/alerts/${id}`, undefined, keys.testSecret)).status, 404)
  t.same((await send('DELETE', `/v1/alerts/${id}`)).body, { deleted: true, alertId: id })
  t.equal((await send('DELETE', `/v1/alerts/${id}`)).status, 404)
  t.equal((await send('GET', '/v1/alerts/nothing')).status, 404)

  const audit = (await send('GET', `/v1/audit?resource=alert&id=${id}`)).body
  const actor = keys.secret.slice(-4)
  t.same(
    audit.data.map(({ at: _, by: __, ...entry }: { at: string; by: unknown }) => entry),
    [
      { actor, resource: 'alert', id, action: 'delete', before: changed.body, after: null },
      { actor, resource: 'alert', id, action: 'update', before: made.body, after: changed.body },
      { actor, resource: 'alert', id, action: 'create', before: null, after: made.body },
    ],
    'and the audit log has all of it',
  )
})

t.test('what an alert cannot be is refused with its field', async (t) => {
  for (const [body, field] of [
    [{ ...ALERT, name: '' }, 'name'],
    [{ ...ALERT, metric: 'sales' }, 'metric'],
    [{ ...ALERT, filters: { ruleId: 'rul_00000000000000000000' } }, 'filters.ruleId'],
    [{ ...ALERT, operator: 'equals' }, 'operator'],
    [{ ...ALERT, threshold: -1 }, 'threshold'],
    [{ ...ALERT, threshold: '3' }, 'threshold'],
    [{ ...ALERT, windowSeconds: 59 }, 'windowSeconds'],
    [{ ...ALERT, windowSeconds: 86_401 }, 'windowSeconds'],
    [{ ...ALERT, cooldownSeconds: 1 }, 'cooldownSeconds'],
    [{ ...ALERT, minEvents: 0.5 }, 'minEvents'],
    [{ ...ALERT, filters: { country: 'CZ' } }, 'filters.country'],
    [{ ...ALERT, filters: { ruleId: 'x' } }, 'filters.ruleId'],
    [{ ...ALERT, status: 'off' }, 'status'],
    [{ ...ALERT, more: 1 }, 'more'],
    [{ ...ALERT, metric: 'signal_rate', threshold: 0.5 }, 'filters.signal'],
    [{ ...ALERT, metric: 'ingest_lag_ms', filters: { platform: 'iOS' } }, 'filters.platform'],
    [{ ...ALERT, metric: 'block_rate', threshold: 2 }, 'threshold'],
    [{}, 'name'],
  ] as const) {
    const answer = await send('POST', '/v1/alerts', body)
    t.equal(answer.status, 400, JSON.stringify(body))
    t.same(errorOf(answer), { code: 'validation_error', field })
  }
})

t.test('a threshold that is passed is one incident per cooldown, and subscribers are told', async (t) => {
  const key = keys.testSecret
  const hook = { url: 'https://hooks.example.com/alerts', events: ['alert.triggered'] }
  const { body: webhook } = await send('POST', '/v1/webhooks', hook, key)
  const make = async (more: object) =>
    (await send('POST', '/v1/alerts', { ...ALERT, windowSeconds: 60, cooldownSeconds: 600, ...more }, key)).body
      .id as string
  const many = await make({})
  const bots = await make({
    metric: 'signal_rate',
    filters: { signal: 'bot' },
    threshold: 0.4,
    operator: 'gt',
    minEvents: 4,
  })
  const calm = await make({ metric: 'signal_rate', filters: { signal: 'tor' }, threshold: 0.1, operator: 'gt' })
  const scarce = await make({ threshold: 1, minEvents: 500 })
  const paused = await make({ threshold: 1, status: 'paused' })
  const lag = await make({ metric: 'ingest_lag_ms', operator: 'lt', threshold: 60_000 })
  const failing = await make({ metric: 'webhook_failure_rate', operator: 'gt', threshold: 0.9, minEvents: 1_000 })
  await visit()
  await visit()
  t.same((await incidents(many)).data, [])
  await visit({ signals: { bot: { detected: true } } })
  await visit({ signals: { bot: { detected: true } } })
  const fired = await eventually(
    () => incidents(many),
    ({ data }) => data.length > 0,
  )
  const [incident] = fired.data
  t.match(incident, { id: /^inc_/, alertId: many })
  t.ok(incident.value >= 3)
  t.equal(Date.parse(incident.windowEnd) - Date.parse(incident.windowStart), 60_000)
  t.same(shapes.moment(incident.triggeredAt), [])
  t.match(
    await eventually(
      () => incidents(bots),
      ({ data }) => data.length > 0,
    ),
    { data: [{ value: 0.5 }] },
  )
  const late = await eventually(
    () => incidents(lag),
    ({ data }) => data.length > 0,
  )
  t.equal(late.data.length, 1)

  const told = await eventually(
    () => client.get(`/v1/webhooks/${webhook.id}/deliveries`, key),
    ({ body }) => body.data.length >= 3,
  )
  t.equal(told.body.data.length, 3)
  t.ok(told.body.data.every(({ eventType }: { eventType: string }) => eventType === 'alert.triggered'))
  const payloads = []
  for (const { deliveryId } of told.body.data) {
    payloads.push((await client.get(`/v1/webhooks/${webhook.id}/deliveries/${deliveryId}`, key)).body.payload.data)
  }
  t.match(
    payloads.find(({ alert }) => alert.id === many),
    { alert: { name: 'Many', metric: 'events', threshold: 3, operator: 'gte' }, value: incident.value },
  )

  await visit()
  await evaluated()
  t.equal((await incidents(many)).data.length, 1, 'not again within the cooldown')
  for (const id of [calm, scarce, paused, failing]) t.same((await incidents(id)).data, [])
})

/** Resolves when every alert has been compared with its figure once more: a round that knows the second has the first behind it. */
async function evaluated(): Promise<void> {
  for (const name of ['round', 'next round']) {
    const { id } = (await send('POST', '/v1/alerts', { ...ALERT, name, threshold: 1 }, keys.testSecret)).body
    await eventually(
      () => incidents(id),
      ({ data }) => data.length > 0,
    )
  }
}

t.test('an environment has a hundred alerts at most', async (t) => {
  const { total } = (await send('GET', '/v1/alerts')).body
  const made = await Promise.all(
    Array.from({ length: 100 - total }, () => send('POST', '/v1/alerts', { ...ALERT, status: 'paused' })),
  )
  t.same(
    made.filter(({ status }) => status !== 201),
    [],
  )
  const over = await send('POST', '/v1/alerts', ALERT)
  t.equal(over.status, 409)
  t.equal(errorOf(over).code, 'resource_limit_reached')
})
