// The client for Node against a whole server: what it gives, what it tries again, and what it never does twice.

import t from 'tap'
import { FingerpostError, type IdentifyRequest, openFingerpost } from '../../src/client/client.ts'
import { SCOPES } from '../../src/domain/workspace.ts'
import { must } from '../../src/lib/must.ts'
import { browserBody, CHROME, eventually } from '../helpers/client.ts'
import { cleanUp, historyOpen } from '../helpers/server.ts'
import { openTenant } from '../helpers/tenant.ts'

t.teardown(cleanUp)

const { server, admin } = await openTenant()
await historyOpen(server)
const options = { baseUrl: `${server.url}/`, key: server.keys.testSecret }
const fingerpost = openFingerpost(options)

const CONDITIONS = {
  operator: 'AND',
  rules: [{ field: 'signals.vpn.detected', operator: 'equals', value: true }],
} as const
const BODY = { ...browserBody(), userAgent: CHROME, ip: '203.0.113.9' } as IdentifyRequest
const visit = (linkedId: string, more: Pick<IdentifyRequest, 'nonce'> = {}) =>
  fingerpost.identify({ ...BODY, linkedId, ...more })

async function refusalOf(work: Promise<unknown>): Promise<FingerpostError> {
  try {
    await work
  } catch (error) {
    if (error instanceof FingerpostError) return error
    throw error
  }
  throw new Error('nothing was refused')
}

/** A network that fails as told before it lets anything through. */
function troubled(...troubles: readonly (Response | Error)[]) {
  const left = [...troubles]
  const waits: number[] = []
  const sent: string[] = []
  const client = openFingerpost({
    ...options,
    sleep: async (ms) => void waits.push(ms),
    random: () => 0.5,
    fetch: async (input, init) => {
      sent.push(`${init?.method} ${String(input).slice(server.url.length)}`)
      const trouble = left.shift()
      if (trouble instanceof Error) throw trouble
      return trouble ?? fetch(input, init)
    },
  })
  return { client, waits, sent }
}
const refusal = (status: number, code: string, headers: Record<string, string> = {}) =>
  new Response(JSON.stringify({ error: { code, message: 'Later.' } }), { status, headers })

t.test('the package exports it by its name', async (t) => {
  const name = 'fingerpost/client'
  t.type((await import(name)).openFingerpost, 'function')
})

t.test('events, visitors and their pages are read as they are', async (t) => {
  const made = []
  for (let i = 0; i < 5; i++) made.push(await visit('reader'))
  const last = made.at(-1)
  if (last === undefined) throw new Error('no event')
  const event = await fingerpost.events.get(last.requestId)
  t.equal(event.linkedId, 'reader')
  t.equal(event.visitorId, last.visitorId)
  t.equal((await fingerpost.events.explain(last.requestId)).method, event.identity.method)

  const expected = made
    .map(({ requestId }) => requestId)
    .sort()
    .reverse()
  const read = async () => {
    const ids: string[] = []
    // Pages of the server's own size, so that there are several.
    for await (const { requestId } of fingerpost.events.all({ linkedId: 'reader', ...{ limit: 2 } }))
      ids.push(requestId)
    return ids
  }
  let ids = await read()
  for (let tries = 0; ids.length < made.length && tries < 600; tries++) {
    await new Promise((resolve) => setTimeout(resolve, 100))
    ids = await read()
  }
  t.same(ids, expected, 'every event once, newest first')
  const { data, hasMore, nextCursor } = await fingerpost.events.page({ linkedId: 'reader', limit: 2 })
  t.equal(data.length, 2)
  t.equal(hasMore, true)
  t.type(nextCursor, 'string')

  t.equal((await fingerpost.visitors.get(event.visitorId)).visitorId, event.visitorId)
  const visits = []
  for await (const { requestId } of fingerpost.visitors.events(event.visitorId, { before: new Date() }))
    visits.push(requestId)
  t.ok(visits.length > 0)
  const { total } = await fingerpost.analytics.events({
    from: new Date(Date.now() - 60_000),
    to: new Date(Date.now() + 60_000),
  })
  t.equal(total, 5)
})

t.test('rules and lists are written and read', async (t) => {
  const list = await fingerpost.lists.create({ name: 'friends', type: 'email' })
  const changed = await fingerpost.lists.changeEntries(list.id, {
    add: ['a@b.example', { value: 'c@d.example', reason: 'asked' }],
  })
  t.equal(changed.added, 2)
  const values = []
  for await (const { value } of fingerpost.lists.entries(list.id)) values.push(value)
  t.same(values, ['a@b.example', 'c@d.example'])
  t.same((await fingerpost.lists.check(list.id, ['C@d.example'])).data, [{ value: 'c@d.example', present: true }])
  const lists = []
  for await (const { name } of fingerpost.lists.all({ type: 'email' })) lists.push(name)
  t.same(lists, ['friends'])

  const made = await fingerpost.rules.create({ name: 'VPN', conditions: CONDITIONS, action: { verdict: 'challenge' } })
  const { rule, etag } = await fingerpost.rules.getVersioned(made.id)
  t.equal(rule.status, 'draft')
  const updated = await fingerpost.rules.update(made.id, { status: 'monitor' }, { ifMatch: etag })
  t.equal(updated.status, 'monitor')
  const stale = await refusalOf(fingerpost.rules.update(made.id, { status: 'live' }, { ifMatch: etag }))
  t.match(stale, { status: 409, code: 'conflict' })
  const { matched } = await fingerpost.rules.simulate({ event: { signals: { vpn: true } }, conditions: CONDITIONS })
  t.equal(matched, true)
  t.equal((await fingerpost.rules.backtest(made.id, { days: 1 })).ruleId, made.id)
  const actions = []
  for await (const { action } of fingerpost.audit({ resource: 'rule', id: made.id })) actions.push(action)
  t.same(actions, ['update', 'create'])
  t.same(await fingerpost.rules.delete(made.id), { deleted: true, ruleId: made.id })
})

t.test('events are labelled, and visitors exported', async (t) => {
  const { requestId, visitorId } = await visit('labelled')
  t.equal((await fingerpost.events.change(requestId, { label: 'fraud', tag: { case: 7 } })).label, 'fraud')
  t.equal((await fingerpost.events.get(requestId)).label, 'fraud')
  const exported = await eventually(
    () => fingerpost.visitors.export(visitorId).catch(() => null),
    (found) => found?.events.some((event) => event.requestId === requestId) === true,
  )
  t.equal(exported?.visitor.visitorId, visitorId)
})

t.test('keys are made, listed, rotated and revoked, and the fields of conditions told', async (t) => {
  const place = `/workspaces/${server.workspace}/keys`
  const maker = await admin('POST', place, { kind: 'secret', environment: 'test', scopes: SCOPES })
  const { keys } = openFingerpost({ ...options, key: maker.body.key })
  const made = await keys.create({ kind: 'secret', label: 'reader', scopes: ['rules:read'] })
  t.match(made.key, /^sk_test_/)
  const labels: (string | null)[] = []
  for await (const { label } of keys.all()) labels.push(label)
  t.ok(labels.includes('reader'))
  const fields = await openFingerpost({ ...options, key: must(made.key, 'a key') }).rules.fields()
  t.ok(fields.some(({ path }) => path === 'scores.suspect'))
  t.same(await keys.revoke(made.id), { deleted: true, keyId: made.id })
  t.match((await keys.rotate('public')).key, /^pk_test_/)
})

t.test('webhooks and alerts are written and read', async (t) => {
  const { webhooks, alerts } = fingerpost
  const made = await webhooks.create({ url: 'https://shop.example/hook', events: ['*'] }, { idempotencyKey: 'one' })
  t.equal(
    (await webhooks.create({ url: 'https://shop.example/hook', events: ['*'] }, { idempotencyKey: 'one' })).id,
    made.id,
  )
  t.match(made.signingSecret, /^whsec_/)
  t.equal((await webhooks.update(made.id, { enabled: false })).status, 'paused')
  t.equal((await webhooks.get(made.id)).status, 'paused')
  t.not((await webhooks.rotateSecret(made.id)).signingSecret, made.signingSecret)
  const tested = await webhooks.test(made.id)
  t.equal(tested.success, false, 'there is no such host')
  t.equal((await webhooks.delivery(made.id, tested.deliveryId)).attempts.length, 1)
  const deliveries = []
  for await (const one of webhooks.deliveries(made.id)) deliveries.push(one.deliveryId)
  t.same(deliveries, [tested.deliveryId])
  t.same(await webhooks.delete(made.id), { deleted: true, webhookId: made.id })

  const alert = await alerts.create({ name: 'Blocks', metric: 'block_rate', operator: 'gt', threshold: 0.5 })
  t.equal((await alerts.update(alert.id, { threshold: 0.7 })).threshold, 0.7)
  for await (const one of alerts.all()) t.equal(one.id, alert.id)
  for await (const one of alerts.incidents(alert.id)) t.fail(one.id)
  t.same(await alerts.delete(alert.id), { deleted: true, alertId: alert.id })
})

t.test('a collection by offset is read to its end', async (t) => {
  for (let i = 0; i < 103; i++) await fingerpost.lists.create({ name: `many-${i}`, type: 'ip' })
  const names = new Set<string>()
  for await (const { name } of fingerpost.lists.all({ type: 'ip' })) names.add(name)
  t.equal(names.size, 103)
})

t.test('a refusal says what is wrong, and is not tried again', async (t) => {
  const { client, waits, sent } = troubled()
  const missing = await refusalOf(client.visitors.get('pv_00000000000000000000'))
  t.match(missing, { status: 404, code: 'not_found', requestId: /^call_/ })
  const wrong = await refusalOf(client.events.page({ limit: 101 }))
  t.match(wrong, { status: 400, code: 'validation_error', field: 'limit' })
  const strange = await refusalOf(openFingerpost({ ...options, key: 'sk_live_x' }).meta())
  t.match(strange, { status: 401, code: 'invalid_api_key' })
  t.equal(sent.length, 2)
  t.same(waits, [])
})

t.test('reads wait as long as they are asked to, and then succeed', async (t) => {
  const { client, waits, sent } = troubled(
    refusal(429, 'rate_limited', { 'Retry-After': '7' }),
    refusal(503, 'unavailable'),
    new TypeError('connection reset'),
  )
  t.type((await client.meta()).apiVersion, 'string')
  t.equal(sent.length, 4)
  t.same(waits, [7_000, 750, 1_500], 'Retry-After first, then a growing pause')
})

t.test('tries end: after three more, and at once when the wait would be too long', async (t) => {
  const down = () => refusal(503, 'unavailable')
  const often = troubled(down(), down(), down(), down(), down())
  t.match(await refusalOf(often.client.meta()), { status: 503, code: 'unavailable' })
  t.equal(often.sent.length, 4)
  const long = troubled(refusal(429, 'rate_limited', { 'Retry-After': '31' }))
  t.match(await refusalOf(long.client.meta()), { status: 429, retryAfter: 31 })
  t.same(long.waits, [])
  const gone = troubled(new TypeError('a'), new TypeError('b'), new TypeError('c'), new TypeError('d'))
  t.match(await refusalOf(gone.client.meta()), { status: 0, code: 'no_answer' })
})

t.test('a write is tried again only when it counts once', async (t) => {
  const rule = { name: 'Once', conditions: CONDITIONS, action: { verdict: 'allow' } } as const
  const bare = troubled(refusal(503, 'unavailable'))
  t.match(await refusalOf(bare.client.rules.create(rule)), { status: 503 })
  t.equal(bare.sent.length, 1)
  const change = troubled(refusal(429, 'rate_limited', { 'Retry-After': '1' }))
  t.match(await refusalOf(change.client.rules.delete('rul_00000000000000000000')), { status: 429 })
  const keyed = troubled(refusal(503, 'unavailable'))
  t.equal((await keyed.client.rules.create(rule, { idempotencyKey: 'once-1' })).name, 'Once')
  t.equal(keyed.sent.length, 2)

  const nonce = 'n'.repeat(20)
  const first = await visit('nonce', { nonce })
  const lost = troubled(new TypeError('the answer was lost'))
  t.equal((await lost.client.identify({ ...BODY, linkedId: 'nonce', nonce })).requestId, first.requestId, 'one event')
  t.equal(lost.sent.length, 2)
})

t.test('an event that is not decided yet is waited for', async (t) => {
  const { requestId } = await visit('pending')
  const pending = () =>
    new Response(JSON.stringify({ requestId, status: 'pending' }), { status: 202, headers: { 'Retry-After': '1' } })
  const { client, waits } = troubled(pending(), pending())
  t.equal((await client.events.get(requestId)).requestId, requestId)
  t.same(waits, [1_000, 1_000])
})
