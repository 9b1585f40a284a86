// What waits: its body stays, its number is bounded, a shape that is missing is added, and it goes with the visitor it speaks of.

import t, { type Test } from 'tap'
import { forgetVisitor } from '../../src/dispatcher/forget.ts'
import { type OutboxEntries, outboxEntriesOf } from '../../src/dispatcher/match.ts'
import { addMentions } from '../../src/dispatcher/mentions.ts'
import { storeOutbox } from '../../src/dispatcher/outbox.ts'
import { extendPayloadTtls } from '../../src/dispatcher/payload-ttl.ts'
import { sampleOf } from '../../src/dispatcher/samples.ts'
import type { Tenant } from '../../src/dispatcher/subscriptions.ts'
import { failPending, pendingOf } from '../../src/dispatcher/sweep.ts'
import { typesOf } from '../../src/domain/webhook.ts'
import { openLmdbKv } from '../../src/kv/lmdb.ts'
import { type Clock, systemClock } from '../../src/lib/clock.ts'
import { DUE, deliveriesScope, type Payload, payloadKey, readDeliveries } from '../../src/records/deliveries.ts'
import { tenantScope } from '../../src/records/scopes.ts'
import { type StoredWebhook, webhookKey } from '../../src/records/webhooks.ts'
import { temporaryFolder } from '../helpers/server.ts'

const DAY = 86_400_000
const VISITOR = 'pv_00000000000000000001'

async function open(t: Test) {
  let leapMs = 0
  const clock: Clock = { ...systemClock, now: () => systemClock.now() + leapMs }
  const kv = await openLmdbKv({ path: temporaryFolder(), clock })
  t.teardown(() => kv.close())
  const webhook = (id: string, shape: 'A' | 'B', status: StoredWebhook['status'] = 'active'): StoredWebhook => ({
    id,
    shape,
    url: 'https://shop.example/',
    events: shape === 'A' ? ['identification'] : ['*'],
    filters: null,
    description: null,
    status,
    disabledReason: null,
    secrets: [],
    createdAt: 0,
    updatedAt: 0,
    enabledAt: 0,
    version: 1,
  })
  const tenantOf = (...webhooks: readonly StoredWebhook[]): Tenant => ({
    workspace: { id: 'ws_1', plan: 'pro', apiVersion: '2026-11-01' } as Tenant['workspace'],
    env: 'live',
    revision: 1,
    types: typesOf(['*']),
    subscriptions: new Map(webhooks.map((one) => [one.id, { webhook: one, types: typesOf(one.events) }])),
  })
  async function happen(tenant: Tenant, name: string) {
    const told: OutboxEntries = { payloads: [], deliveries: [] }
    const occurrence = sampleOf('identification.complete', 1_000_000, name)
    const found = { occurrence, verdict: null, ruleId: null, botDetected: null }
    outboxEntriesOf(told, tenant, found, { payloadAt: 'p/0', nowMs: clock.now(), visitorId: VISITOR })
    return { told, stored: await storeOutbox(kv, told, clock.now()) }
  }
  const bodyOf = async ({ payloads: [one] }: OutboxEntries) =>
    (await kv.get<Payload>('p/0', [payloadKey(one?.id ?? '')]))[0]?.value ?? null
  return { kv, clock, webhook, tenantOf, happen, bodyOf, leap: (ms: number) => (leapMs += ms) }
}

t.test('a body stays for as long as a delivery waits for it, and no longer', async (t) => {
  const { kv, clock, webhook, tenantOf, happen, bodyOf, leap } = await open(t)
  const waiting = await happen(tenantOf(webhook('wh_1', 'B')), 'waiting')
  const other = await happen(tenantOf(webhook('wh_2', 'B')), 'other')
  for (let days = 0; days < 40; days += 1) {
    leap(DAY)
    await extendPayloadTtls(kv, 'wh_1', clock.now())
  }
  t.ok(await bodyOf(waiting.told), 'after forty days of pause')
  t.equal(await bodyOf(other.told), null)
  leap(16 * DAY)
  t.equal(await bodyOf(waiting.told), null, 'nobody asked for it')
})

t.test('what was never attempted keeps its body for two weeks though the service is away all the time', async (t) => {
  const { webhook, tenantOf, happen, bodyOf, leap } = await open(t)
  const paused = await happen(tenantOf(webhook('wh_1', 'B', 'paused')), 'paused')
  const active = await happen(tenantOf(webhook('wh_2', 'B')), 'active')
  leap(14 * DAY)
  t.ok(await bodyOf(paused.told))
  t.ok(await bodyOf(active.told))
})

t.test('what failed without an attempt can be sent again for as long as it is listed', async (t) => {
  const { kv, clock, webhook, tenantOf, happen, bodyOf, leap } = await open(t)
  const { told } = await happen(tenantOf(webhook('wh_1', 'B')), 'one')
  leap(10 * DAY)
  t.equal(await failPending(kv, { id: 'wh_1', busy: new Set() }, 'endpoint_disabled', clock.now()), 1)
  leap(14 * DAY)
  const { deliveries } = await readDeliveries(kv, 'wh_1', { holds: () => true }, 10, null)
  t.match(deliveries, [{ delivery: { status: 'failed', reason: 'endpoint_disabled' } }])
  t.ok((deliveries[0]?.delivery.payloadUntil ?? 0) > clock.now())
  t.ok(await bodyOf(told))
})

t.test(
  'a shape whose first subscriber came between two readings is added, and the other keeps its bytes',
  async (t) => {
    const { webhook, tenantOf, happen, bodyOf } = await open(t)
    const first = await happen(tenantOf(webhook('wh_1', 'B')), 'one')
    const before = await bodyOf(first.told)
    t.same(Object.keys(before ?? {}), ['b'])
    const again = await happen(tenantOf(webhook('wh_1', 'B'), webhook('whk_1', 'A')), 'one')
    const after = await bodyOf(again.told)
    t.equal(after?.b, before?.b)
    t.match(after?.a, '"event":"identification"')
    t.same(again.stored.fresh, [], 'nothing is sent that was not read back')
    const third = await happen(tenantOf(webhook('whk_1', 'A')), 'one')
    t.same(await bodyOf(third.told), after)
  },
)

t.test('only what was written just now may be sent without being read', async (t) => {
  const { webhook, tenantOf, happen } = await open(t)
  const tenant = tenantOf(webhook('wh_1', 'B'))
  const { told, stored } = await happen(tenant, 'one')
  t.same(stored.fresh, told.deliveries)
  t.same((await happen(tenant, 'one')).stored.fresh, [])
})

t.test('the count of what waits is exact, and the oldest give way', async (t) => {
  const { kv, clock, webhook, tenantOf, happen } = await open(t)
  const tenant = tenantOf(webhook('wh_1', 'B'))
  for (let n = 0; n < 10; n++) {
    await happen(tenant, `event ${n}`)
    await happen(tenant, `event ${n}`)
  }
  t.equal(await pendingOf(kv, 'wh_1'), 10)
  t.equal(await failPending(kv, { id: 'wh_1', busy: new Set() }, 'backlog_overflow', clock.now(), 4), 4)
  t.equal(await pendingOf(kv, 'wh_1'), 6)
  const { deliveries } = await readDeliveries(kv, 'wh_1', { holds: ({ status }) => status === 'failed' }, 100, null)
  t.ok(deliveries.every(({ delivery }) => delivery.reason === 'backlog_overflow'))
  t.equal(deliveries.length, 4)
})

t.test('nothing about an erased visitor waits any more, for nobody', async (t) => {
  const { kv, webhook, tenantOf, happen, bodyOf } = await open(t)
  const webhooks = [webhook('wh_1', 'B'), webhook('whk_1', 'A')]
  await kv.commit([
    { scope: tenantScope('ws_1', 'live'), put: webhooks.map((one) => ({ key: webhookKey(one.id), value: one })) },
  ])
  const { told } = await happen(tenantOf(...webhooks), 'one')
  await happen(tenantOf(...webhooks), 'two')
  await forgetVisitor(kv, 'p/0', { workspace: 'ws_1', env: 'live', visitorId: 'pv_00000000000000000002' })
  t.equal(await pendingOf(kv, 'wh_1'), 2, 'not those of others')
  await forgetVisitor(kv, 'p/0', { workspace: 'ws_1', env: 'live', visitorId: VISITOR })
  t.equal(await bodyOf(told), null)
  for (const { id } of webhooks) {
    t.equal(await pendingOf(kv, id), 0)
    t.same(await kv.scan(deliveriesScope(id), DUE, { limit: 10 }), [])
    t.same((await readDeliveries(kv, id, { holds: () => true }, 10, null)).deliveries, [])
  }
})

t.test(
  'a body about somebody else is told without an erased visitor that it names, however long it has waited',
  async (t) => {
    const { kv, clock, webhook, tenantOf, bodyOf, leap } = await open(t)
    const named = 'pv_00000000000000000007'
    const put = [{ key: webhookKey('wh_1'), value: webhook('wh_1', 'B') }]
    await kv.commit([{ scope: tenantScope('ws_1', 'live'), put }])
    const told: OutboxEntries = { payloads: [], deliveries: [] }
    const sample = sampleOf('identification.complete', 1_000_000, 'one')
    const occurrence = {
      ...sample,
      data: { ...sample.data, possibleVisitorId: named, url: `https://shop.example/${named}` },
    }
    const found = { occurrence, verdict: null, ruleId: null, botDetected: null }
    const at = { payloadAt: 'p/0', nowMs: clock.now(), visitorId: VISITOR }
    outboxEntriesOf(told, tenantOf(webhook('wh_1', 'B')), found, at)
    addMentions(told, 0)
    addMentions(told, 0)
    await storeOutbox(kv, told, clock.now())
    for (let days = 0; days < 20; days += 1) {
      leap(DAY)
      await extendPayloadTtls(kv, 'wh_1', clock.now())
    }
    const whose = { workspace: 'ws_1', env: 'live', visitorId: named } as const
    for (let twice = 0; twice < 2; twice++) await forgetVisitor(kv, 'p/0', whose, twice === 0 ? 'mentions' : 'all')
    t.equal(await pendingOf(kv, 'wh_1'), 1, 'it is sent all the same')
    const { b = '' } = (await bodyOf(told)) ?? {}
    t.notMatch(b, named)
    t.match(b, '"possibleVisitorId":null')
    t.equal((await kv.scan('p/0', 'payload', { limit: 10 })).length, 1)
    await forgetVisitor(kv, 'p/0', { ...whose, visitorId: VISITOR })
    t.equal(await pendingOf(kv, 'wh_1'), 0)
  },
)
