// Webhooks as a client sees them: both shapes of registration on one resource, over HTTP and on real backends.

import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { openAddressGuard } from '../../src/dispatcher/guard.ts'
import { parseCidr } from '../../src/domain/ip.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { must } from '../../src/lib/must.ts'
import { openSealer } from '../../src/lib/sealed.ts'
import {
  deliveriesScope,
  deliveryIdOf,
  payloadKey,
  putDelivery,
  type StoredDelivery,
} from '../../src/records/deliveries.ts'
import { scanAll } from '../../src/records/scopes.ts'
import { random } from '../helpers/control-plane.ts'
import { type Options, openServer, RULE } from '../helpers/rest-surface.ts'

const URL_A = 'https://shop.example/hook'
const SECRET = 'a secret of the customer'
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/

async function open(t: Test, options: Options = {}) {
  const server = await openServer(t, options)
  const { send, secret: key } = server
  const post = (body: unknown, path = '/v1/webhooks') => send('POST', path, { key, body })
  const make = async (body: object = {}) => {
    const made = await post({ url: URL_A, ...body })
    t.equal(made.status, 201, JSON.stringify(made.body))
    return made.body
  }
  const call = (method: string, path: string, body?: unknown, headers: Record<string, string> = {}) =>
    send(method, `/v1/webhooks/${path}`, { key, headers, ...(body === undefined ? {} : { body }) })
  return { ...server, key, post, make, call }
}

t.test('the body decides the shape, and the answer is that shape and nothing more', async (t) => {
  const { make } = await open(t)
  const A = ['id', 'url', 'status', 'secret', 'createdAt']
  const B = ['id', 'url', 'events', 'signingSecret', 'enabled', 'createdAt']
  for (const [body, members] of [
    [{}, A],
    [{ events: ['identification', 'list_update'] }, A],
    [{ filters: { botDetected: true } }, A],
    [{ secret: SECRET }, A],
    [{ events: ['*'] }, B],
    [{ events: ['visitor.new', 'verdict.block'] }, B],
    [{ description: 'Ours' }, B],
    [{ enabled: true }, B],
  ] as const) {
    const made = await make(body)
    t.same(Object.keys(made), members, JSON.stringify(body))
    t.match(made.id, members === A ? /^whk_[0-9A-Za-z]{20}$/ : /^wh_[0-9A-Za-z]{20}$/)
    const secret = made.secret ?? made.signingSecret
    if ('secret' in body) t.equal(secret, SECRET)
    else t.equal(Buffer.from(must(/^whsec_(.+)$/.exec(secret))[1] as string, 'base64').length, 32)
  }
})

t.test('a registration that contradicts itself is refused by the member at fault', async (t) => {
  const { post } = await open(t)
  for (const [body, field] of [
    [{ events: [] }, 'events'],
    [{ events: ['identification', 'visitor.new'] }, 'events'],
    [{ events: ['*', 'visitor.new'] }, 'events'],
    [{ events: ['visitor.new', 'visitor.new'] }, 'events'],
    [{ events: ['visitor.gone'] }, 'events'],
    [{ filters: {}, description: 'x' }, 'description'],
    [{ secret: SECRET, enabled: true }, 'enabled'],
    [{ events: ['identification'], enabled: true }, 'enabled'],
    [{ events: ['*'], secret: SECRET }, 'secret'],
    [{ secret: 'too short' }, 'secret'],
    [{ secret: 'nicht ganz ASCII ä' }, 'secret'],
    [{ filters: { verdict: ['deny'] } }, 'filters.verdict[0]'],
    [{ filters: { ruleId: 'rul_1' } }, 'filters.ruleId'],
    [{ more: 1 }, 'more'],
    [{ url: 'http://shop.example/' }, 'url'],
    [{ url: 'https://user@shop.example/' }, 'url'],
    [{ url: 'https://@shop.example/' }, 'url'],
    [{ url: 'https://shop.example/#x' }, 'url'],
    [{ url: 'https://shop.example/#' }, 'url'],
    [{ url: 'https:\\\\shop.example' }, 'url'],
    [{ url: ' https://shop.example' }, 'url'],
    [{ url: 'https://shop.example:0/hook' }, 'url'],
    [{ url: 'https:///shop.example' }, 'url'],
    [{ url: 'https://:443/hook' }, 'url'],
    [{ url: 'https://shop.example/\0' }, 'url'],
    [{ url: `https://shop.example/${'x'.repeat(2_048)}` }, 'url'],
  ] as const) {
    const answer = await post({ url: URL_A, ...body })
    t.match(answer, { status: 400, body: { error: { code: 'validation_error', field } } }, JSON.stringify(body))
  }
})

t.test(
  'an id that names nothing here is refused alike, whether it never was, is gone or is another environment’s',
  async (t) => {
    const { send, key, call, make, testSecret } = await open(t)
    const makeIn = async (by: string, path: string, body: unknown) =>
      (await send('POST', path, { key: by, body })).body.id
    const hook = { url: URL_A }
    const ids = {
      rule: [
        'rul_00000000000000000000',
        await makeIn(key, '/v1/rules', RULE),
        await makeIn(testSecret, '/v1/rules', RULE),
      ],
      webhook: [
        'whk_00000000000000000000',
        await makeIn(key, '/v1/webhooks', hook),
        await makeIn(testSecret, '/v1/webhooks', hook),
      ],
    }
    await send('DELETE', `/v1/rules/${ids.rule[1]}`, { key })
    await call('DELETE', ids.webhook[1])
    const [rule, webhook] = [await makeIn(key, '/v1/rules', RULE), (await make()).id]
    const filtered = (ruleId: string) => ({ filters: { ruleId } })
    const effect = (webhookId: string) => ({ sideEffects: [{ type: 'webhook', webhookId }] })
    const writes: [keyof typeof ids, string, string, (id: string) => object, string][] = [
      ['rule', 'POST', '/v1/webhooks', (id) => ({ ...hook, ...filtered(id) }), 'filters.ruleId'],
      ['rule', 'PUT', `/v1/webhooks/${webhook}`, filtered, 'filters.ruleId'],
      ['webhook', 'POST', '/v1/rules', (id) => ({ ...RULE, ...effect(id) }), 'sideEffects[0].webhookId'],
      ['webhook', 'PUT', `/v1/rules/${rule}`, effect, 'sideEffects[0].webhookId'],
    ]
    for (const [kind, method, path, body, field] of writes) {
      const answers = []
      for (const id of ids[kind]) answers.push(await send(method, path, { key, body: body(id) }))
      for (const answer of answers) {
        t.match(answer, { status: 400, body: { error: { code: 'validation_error', field } } }, `${method} ${path}`)
        t.same(answer.body, answers[0]?.body)
      }
      const good = await send(method, path, { key, body: body(kind === 'rule' ? rule : webhook) })
      t.ok(good.status < 300, JSON.stringify(good.body))
    }
  },
)

t.test('a webhook is read, listed, changed by its shape and deleted', async (t) => {
  const { send, key, make, call, publicKey, testSecret } = await open(t)
  const a = await make({ filters: { verdict: ['block'] } })
  const b = await make({ description: 'Ours', enabled: false })
  const read = await call('GET', a.id)
  t.match(read.body, { id: a.id, url: URL_A, status: 'active', filters: { verdict: ['block'] }, createdAt: TIME })
  t.match(read.body, { events: ['identification', 'rule_match', 'list_update'], successRate: 1, lastDeliveryAt: null })
  t.match((await call('GET', b.id)).body, { status: 'paused', enabled: false, description: 'Ours', events: ['*'] })

  const listed = await send('GET', '/v1/webhooks', { key })
  t.equal(listed.body.total, 2)
  t.match(listed.body.data[0], { id: a.id, status: 'active', successRate: 1, lastDeliveryAt: null })
  t.same(
    (await send('GET', '/v1/webhooks?status=paused', { key })).body.data.map(({ id }: { id: string }) => id),
    [b.id],
  )
  t.equal((await send('GET', '/v1/webhooks?status=disabled', { key })).body.total, 0)
  t.notOk(JSON.stringify([read.body, listed.body]).includes('whsec_'), 'no secret is ever read back')

  t.match((await call('PUT', a.id, { status: 'paused', url: 'https://other.example/' })).body, {
    id: a.id,
    url: 'https://other.example/',
    status: 'paused',
    updatedAt: TIME,
  })
  t.match((await call('PUT', b.id, { enabled: true, description: null })).body, { status: 'active', description: null })
  t.match((await call('PUT', b.id, { status: 'paused' })).body, { enabled: false })
  t.equal((await call('PUT', b.id)).status, 200, 'nothing given changes nothing')
  for (const [id, body, field] of [
    [a.id, { enabled: true }, 'enabled'],
    [a.id, { events: ['visitor.new'] }, 'events'],
    [b.id, { events: ['identification'] }, 'events'],
    [b.id, { filters: {} }, 'filters'],
    [b.id, { enabled: true, status: 'paused' }, 'status'],
    [b.id, { status: 'disabled' }, 'status'],
    [b.id, { url: 'https://10.0.0.1/' }, 'url'],
  ] as const) {
    t.match(await call('PUT', id, body), { status: 400, body: { error: { field } } }, JSON.stringify(body))
  }

  const etag = must((await call('GET', a.id)).headers.get('etag'))
  t.equal((await call('PUT', a.id, { status: 'active' }, { 'If-Match': '"1"' })).status, 409)
  t.equal((await call('PUT', a.id, { status: 'active' }, { 'If-Match': etag })).status, 200)

  t.equal((await send('GET', '/v1/webhooks', { key: publicKey })).status, 403)
  for (const other of [testSecret, key]) {
    const id = other === key ? 'whk_nonsense' : a.id
    t.equal((await send('GET', `/v1/webhooks/${id}`, { key: other })).status, 404)
  }
  t.same((await call('DELETE', a.id)).body, { deleted: true, webhookId: a.id })
  for (const [method, path, body] of [
    ['GET', a.id, undefined],
    ['PUT', a.id, { status: 'active' }],
    ['DELETE', a.id, undefined],
    ['GET', `${a.id}/deliveries`, undefined],
    ['POST', `${a.id}/test`, {}],
    ['POST', `${a.id}/rotate-secret`, {}],
    ['POST', `${a.id}/redeliver`, { since: new Date().toISOString() }],
  ] as const) {
    t.equal((await call(method, path, body)).status, 404, `${method} ${path}`)
  }
  const audit = await send('GET', `/v1/audit?resource=webhook&id=${a.id}`, { key })
  t.same(
    audit.body.data.map(({ action }: { action: string }) => action),
    ['delete', 'update', 'update', 'create'],
  )
})

t.test(
  'an address without a public name is refused, and is accepted where the operator allows all of it',
  async (t) => {
    const { post } = await open(t)
    const literals = [
      '127.0.0.1',
      '2130706433',
      '0x7f.1',
      '127.1',
      '0251.0376.0251.0376',
      '8.8.8.8',
      '[::1]',
      '[2600::1]',
    ]
    const names = [
      'localhost',
      'localhost.',
      'a.localhost',
      'intranet',
      'db.local',
      'api.internal',
      '①②⑦.0.0.1',
      '1.2.3.4.5',
    ]
    for (const host of [...literals, ...names]) {
      t.match(await post({ url: `https://${host}/x` }), { status: 400, body: { error: { field: 'url' } } }, host)
    }
    const answers: Record<string, string[]> = {
      'db.internal': ['10.1.2.3'],
      'half.internal': ['10.1.2.3', '192.168.0.1'],
    }
    const cidr = must(parseCidr('10.0.0.0/8'))
    const guard = openAddressGuard([cidr], async (host) => answers[host] ?? [])
    const allowing = await open(t, { outgoing: { guard } })
    for (const [host, status] of [
      ['10.9.9.9', 201],
      ['db.internal', 201],
      ['half.internal', 400],
      ['gone.internal', 400],
      ['192.168.0.1', 400],
      ['8.8.8.8', 400],
    ] as const) {
      t.equal((await allowing.post({ url: `https://${host}/x` })).status, status, host)
    }
  },
)

t.test('a secret is at rest only sealed, and what is sealed for one webhook opens for no other', async (t) => {
  const sealer = openSealer(random(32), random)
  const { make, kv, log, folder, call } = await open(t, { outgoing: { sealer } })
  const made = await make({ secret: SECRET })
  const rotated = (await call('POST', `${made.id}/rotate-secret`, {})).body
  t.match(rotated, { id: made.id, secret: /^whsec_/, graceEndsAt: TIME })
  t.match((await call('GET', made.id)).body, { secretGraceEndsAt: rotated.graceEndsAt })
  t.equal((await call('POST', `${made.id}/rotate-secret`, { gracePeriodSeconds: 60 })).status, 409, 'one at a time')
  const leaked = await call('POST', `${made.id}/rotate-secret`, { gracePeriodSeconds: 0 })
  t.match(leaked, { status: 200, body: { graceEndsAt: null } }, 'a leaked secret can be ended at once')
  const records = await log.read('changes', 0, 0, { recordsMax: 1_000, bytesMax: 1_000_000, waitMsMax: 0 })
  const stored = [...records.map(({ bytes }) => Buffer.from(bytes).toString('latin1'))]
  for await (const { value } of scanAll(kv, 'w/ws_default/live', 'webhook')) stored.push(JSON.stringify(value))
  for (const file of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    if (file.isFile()) stored.push(readFileSync(join(file.parentPath, file.name), 'latin1'))
  }
  for (const secret of [SECRET, rotated.secret, leaked.body.secret]) {
    t.notOk(stored.some((text) => text.includes(secret)))
  }
  const sealed = sealer.seal('x', 'wh_1')
  t.equal(sealer.open(sealed, 'wh_1'), 'x')
  t.throws(() => sealer.open(sealed, 'wh_2'), { name: 'Unreadable' })
  t.throws(() => openSealer(random(32), random).open(sealed, 'wh_1'), { name: 'Unreadable' })
})

t.test(
  'a registration repeated under its Idempotency-Key is one webhook, answered with its secret again',
  async (t) => {
    const { send, key } = await open(t)
    for (const body of [{ url: URL_A }, { url: URL_A, secret: SECRET }, { url: URL_A, events: ['*'] }]) {
      const headers = { 'idempotency-key': JSON.stringify(body) }
      const post = () => send('POST', '/v1/webhooks', { key, headers, body })
      const first = await post()
      const again = await post()
      t.equal(first.status, 201)
      t.same(again.body, { ...first.body, replayed: true })
      t.equal(again.headers.get('idempotent-replayed'), 'true')
    }
    t.equal((await send('GET', '/v1/webhooks', { key })).body.total, 3)
  },
)

t.test('a repeated registration shows its secret only as long as that signs', async (t) => {
  const times = { now: Date.now() }
  const { send, key, call } = await open(t, { clock: { ...systemClock, now: () => times.now } })
  for (const [body, name] of [
    [{ url: URL_A }, 'secret'],
    [{ url: URL_A, events: ['*'] }, 'signingSecret'],
  ] as const) {
    times.now = Date.now()
    const headers = { 'idempotency-key': name }
    const post = async () => (await send('POST', '/v1/webhooks', { key, headers, body })).body
    const first = await post()
    t.match(first[name], /^whsec_/)
    await call('POST', `${first.id}/rotate-secret`, { gracePeriodSeconds: 60 })
    t.same(await post(), { ...first, replayed: true }, 'in its grace period it still signs')
    times.now = Date.now() + 120_000
    t.same(await post(), { ...first, [name]: null, replayed: true }, 'afterwards it is none')
    t.equal((await call('DELETE', first.id)).status, 200)
    t.same(await post(), { ...first, [name]: null, replayed: true }, 'nor without its webhook')
  }
})

t.test('deliveries are paged newest first and filtered; those that failed are queued again by time', async (t) => {
  const { make, call, kv } = await open(t)
  const { id } = await make({ events: ['*'] })
  const from = Date.now() - 86_400_000
  const deliveries = Array.from({ length: 30 }, (_, i): { id: string; delivery: StoredDelivery } => {
    const createdAt = from + i * 1_000
    const eventId = `evt_${String(i).padStart(26, '0')}`
    const attempt = {
      n: 1,
      trigger: 'auto',
      startedAt: createdAt,
      durationMs: 5,
      statusCode: 500,
      error: 'http_status',
    }
    const delivery = {
      eventId,
      type: i % 2 === 0 ? 'visitor.new' : 'rule.matched',
      status: i < 20 ? 'failed' : 'delivered',
      ...{
        tries: 3,
        attemptsMade: 3,
        attempts: [attempt],
        nextAttemptAt: null,
        createdAt,
        reason: null,
        payloadAt: 'p/0',
        payloadId: `ws/live/-/${eventId}`,
        payloadUntil: createdAt + 86_400_000,
      },
    } as StoredDelivery
    return { id: deliveryIdOf(createdAt, eventId, id), delivery }
  })
  await kv.commit([{ scope: deliveriesScope(id), put: deliveries.map((one) => putDelivery(one.id, one.delivery)) }])
  const body = { a: '{}', b: '"data":{}}' }
  const bodies = deliveries.map(({ delivery }) => ({ key: payloadKey(delivery.payloadId), value: body }))
  await kv.commit([{ scope: 'p/0', put: bodies }])
  const seen: string[] = []
  for (let cursor = ''; ; ) {
    const page = (await call('GET', `${id}/deliveries?limit=7${cursor}`)).body
    seen.push(...page.data.map(({ deliveryId }: { deliveryId: string }) => deliveryId))
    if (!page.hasMore) break
    cursor = `&cursor=${page.nextCursor}`
  }
  t.same(seen, deliveries.map((one) => one.id).reverse())
  const pages = await call('GET', `${id}/deliveries?status=failed&eventType=visitor.new&limit=100`)
  t.equal(pages.body.data.length, 10)
  t.match(pages.body.data[0], { webhookId: id, attempts: 3, lastStatusCode: 500, lastError: 'http_status' })
  const after = new Date(from + 5_000).toISOString()
  const before = new Date(from + 8_000).toISOString()
  t.equal((await call('GET', `${id}/deliveries?after=${after}&before=${before}`)).body.data.length, 3)
  t.equal((await call('GET', `${id}/deliveries?cursor=abc`)).status, 400)
  const first = must(deliveries[0])
  t.match((await call('GET', `${id}/deliveries/${first.id}`)).body, { attempts: [{ n: 1, error: 'http_status' }] })
  t.equal((await call('GET', `${id}/deliveries/dlv_1`)).status, 404)
  t.match(await call('POST', `${id}/deliveries/${first.id}/redeliver`), { status: 202 })
  t.match(await call('POST', `${id}/redeliver`, { since: after }), { status: 202, body: { queued: 15 } })
  t.match(await call('POST', `${id}/redeliver`, { since: after, until: before }), { body: { queued: 3 } })
  const old = new Date(Date.now() - 15 * 86_400_000).toISOString()
  t.match(await call('POST', `${id}/redeliver`, { since: old }), { status: 400, body: { error: { field: 'since' } } })

  await kv.commit([{ scope: 'p/0', drop: [payloadKey(first.delivery.payloadId)] }])
  const gone = await call('POST', `${id}/deliveries/${first.id}/redeliver`)
  t.match(gone, { status: 409, body: { error: { code: 'conflict' } } }, 'what cannot be sent is refused')
  const since = new Date(from).toISOString()
  t.match(await call('POST', `${id}/redeliver`, { since }), { status: 202, body: { queued: 19 } }, 'and not queued')
})

t.test('the addresses deliveries come from are told to anybody', async (t) => {
  const ips = { ipv4: ['192.0.2.0/24'], ipv6: [], updatedAt: '2026-11-01T00:00:00.000Z' }
  const { send } = await open(t, { outgoing: { ips } })
  const told = await send('GET', '/.well-known/webhook-ips')
  t.equal(told.status, 200)
  t.same(told.body, ips)
})

t.test('an environment has only so many webhooks', async (t) => {
  const { make, post, call } = await open(t, { outgoing: { webhooksMax: 2 } })
  const { id } = await make()
  await make()
  t.match(await post({ url: URL_A }), { status: 409, body: { error: { code: 'resource_limit_reached' } } })
  await call('DELETE', id)
  await make()
})
