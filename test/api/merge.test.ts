// POST /v1/visitors/{id}/merge against a real server: one visitor from then on, for reads, visits, lists and erasure.

import t from 'tap'
import { eventually } from '../helpers/client.ts'
import { type Device, deviceOf } from '../helpers/devices.ts'
import { cleanUp } from '../helpers/server.ts'
import * as shapes from '../helpers/shapes.ts'
import { openTenant } from '../helpers/tenant.ts'

t.teardown(cleanUp)

const { server, ...client } = await openTenant()
const { keys } = server
const key = keys.testSecret

let made = 0
const newDevice = () => deviceOf(++made)
interface Visited {
  readonly requestId: string
  readonly visitorId: string
  readonly visitorFound: boolean
  readonly storageToken: string
  readonly identity: { readonly method: string }
}

async function visit(device: Device, more: object = {}): Promise<Visited> {
  const { status, body } = await client.identify({ ...device, ...more }, { key })
  t.equal(status, 200)
  return body
}
const stored = async (visitorId: string, totalVisits = 1) =>
  (
    await eventually(
      () => client.get(`/v1/visitors/${visitorId}`, key),
      ({ body }) => body?.totalVisits >= totalVisits,
    )
  ).body
const merge = (survivor: string, visitorId: unknown, withKey: string | null = key) =>
  client.send('POST', `/v1/visitors/${survivor}/merge`, { key: withKey, body: { visitorId } })

async function two() {
  const [a, b] = [newDevice(), newDevice()]
  const [first, second] = [await visit(a, { linkedId: 'ann' }), await visit(b, { linkedId: 'bob' })]
  t.not(first.visitorId, second.visitorId)
  await Promise.all([stored(first.visitorId), stored(second.visitorId)])
  return { a, b, first, second }
}

t.test('reads of either id show one visitor with the visits of both', async (t) => {
  const { first, second } = await two()
  const { status, body } = await merge(first.visitorId, second.visitorId)
  t.equal(status, 200)
  t.same(shapes.visitor(body), [])
  t.match(body, { visitorId: first.visitorId, totalVisits: 2, linkedAccounts: 2 })
  t.equal(body.ips.length, 2)
  for (const id of [first.visitorId, second.visitorId]) {
    t.same((await client.get(`/v1/visitors/${id}`, key)).body, body)
    for (const path of [`/v1/visitors/${id}/events`, `/v1/events?visitorId=${id}`]) {
      const listed = await eventually(
        () => client.get(path, key),
        ({ body }) => body.data.length === 2,
      )
      t.same(
        listed.body.data.map((event: Visited) => event.requestId),
        [second.requestId, first.requestId],
        path,
      )
    }
  }
})

t.test('token and looks of the other lead to the survivor from then on', async (t) => {
  const { a, b, first, second } = await two()
  await merge(first.visitorId, second.visitorId)
  const byToken = await visit(b, { storageToken: second.storageToken })
  t.match(byToken, { visitorId: first.visitorId, visitorFound: true, identity: { method: 'token' } })
  const byLooks = await visit(b)
  t.match(byLooks, { visitorId: first.visitorId, visitorFound: true, identity: { method: 'exact' } })
  // What each was given works on, and neither device takes the other one's for a copy of its own.
  for (const [device, token] of [
    [a, first.storageToken],
    [b, byToken.storageToken],
    [b, byLooks.storageToken],
    [a, first.storageToken],
  ] as const) {
    t.equal((await visit(device, { storageToken: token })).visitorId, first.visitorId)
  }
  const visitor = await stored(second.visitorId, 8)
  t.match(visitor, { visitorId: first.visitorId, totalVisits: 8 })
})

t.test('twice equals once, either way round, and chains lead to the last survivor', async (t) => {
  const { first, second } = await two()
  const { first: third } = await two()
  t.equal((await merge(first.visitorId, second.visitorId)).status, 200)
  const again = await merge(first.visitorId, second.visitorId)
  t.match(again, { status: 200, body: { visitorId: first.visitorId, totalVisits: 2 } })
  t.match(await merge(second.visitorId, first.visitorId), {
    status: 200,
    body: { visitorId: first.visitorId, totalVisits: 2 },
  })
  t.match(await merge(third.visitorId, second.visitorId), {
    status: 200,
    body: { visitorId: third.visitorId, totalVisits: 3 },
  })
  for (const { visitorId } of [first, second, third])
    t.equal((await client.get(`/v1/visitors/${visitorId}`, key)).body.visitorId, third.visitorId)
  const late = await client.identify({ ...newDevice(), storageToken: second.storageToken }, { key })
  t.equal(late.body.visitorId, third.visitorId)
})

t.test('memberships of lists move to the survivor', async (t) => {
  const { first, second } = await two()
  const list = async (name: string) =>
    (await client.send('POST', '/v1/lists', { key, body: { name, type: 'visitor' } })).body.id as string
  const [one, both] = [await list('moved_one'), await list('moved_both')]
  const add = (id: string, ...add: object[]) => client.send('PATCH', `/v1/lists/${id}/entries`, { key, body: { add } })
  await add(one, { value: second.visitorId, reason: 'fraud ring' })
  await add(both, { value: first.visitorId, ttl: 1_000 }, { value: second.visitorId })
  const { body } = await merge(first.visitorId, second.visitorId)
  t.same(body.lists, ['moved_one', 'moved_both'])
  const entries = async (id: string) => (await client.get(`/v1/lists/${id}/entries`, key)).body.data
  t.match(await entries(one), [{ value: first.visitorId, reason: 'fraud ring' }])
  t.match(await entries(both), [{ value: first.visitorId, expiresAt: null }])
  t.equal((await client.get(`/v1/lists/${both}`, key)).body.entryCount, 1)
})

t.test('an alias goes on a list, and off it, as the survivor', async (t) => {
  const { first, second } = await two()
  await merge(first.visitorId, second.visitorId)
  const made = await client.send('POST', '/v1/lists', { key, body: { name: 'as_survivor', type: 'visitor' } })
  const path = `/v1/lists/${made.body.id}/entries`
  const change = async (body: object) => (await client.send('PATCH', path, { key, body })).body
  t.match(await change({ add: [second.visitorId] }), { added: 1, entryCount: 1 })
  t.match((await client.get(path, key)).body.data, [{ value: first.visitorId }])
  const values = [first.visitorId, second.visitorId]
  const { body } = await client.send('POST', `${path}/check`, { key, body: { values } })
  t.same(
    body.data,
    values.map((value) => ({ value, present: true })),
  )
  t.match(await change({ remove: [second.visitorId] }), { removed: 1, entryCount: 0 })
})

t.test('a merge is in the audit log, with who made it', async (t) => {
  const { first, second } = await two()
  await merge(first.visitorId, second.visitorId)
  const { body } = await client.get(`/v1/audit?resource=visitor&id=${first.visitorId}`, key)
  t.equal(body.data.length, 1)
  t.match(body.data[0], { action: 'merge' })
  t.match(JSON.stringify(body.data[0]), second.visitorId)
})

t.test('whoever was merged into an erased visitor is erased with it, by whichever id', async (t) => {
  for (const by of ['survivor', 'alias'] as const) {
    const { a, b, first, second } = await two()
    await merge(first.visitorId, second.visitorId)
    const late = await visit(b, { storageToken: second.storageToken })
    await stored(first.visitorId, 3)
    const erased = by === 'survivor' ? first.visitorId : second.visitorId
    const { status, body } = await client.send('DELETE', `/v1/visitors/${erased}`, { key })
    t.equal(status, 200)
    t.match(body, { deleted: true, visitorId: erased, erasureId: /^era_/ })
    for (const { visitorId } of [first, second]) {
      t.equal((await client.get(`/v1/visitors/${visitorId}`, key)).status, 404)
      t.equal((await client.get(`/v1/events?visitorId=${visitorId}`, key)).body.data.length, 0)
    }
    for (const { requestId } of [first, second, late]) {
      t.equal((await client.get(`/v1/events/${requestId}`, key)).status, 404)
    }
    t.equal((await client.get(`/v1/audit?resource=visitor&id=${first.visitorId}`, key)).body.data.length, 0)
    for (const [device, token] of [
      [a, first.storageToken],
      [b, second.storageToken],
      [b, null],
    ] as const) {
      const again = await visit(device, { storageToken: token })
      t.notOk([first.visitorId, second.visitorId].includes(again.visitorId), 'neither token nor looks bring it back')
    }
  }
})

t.test('who may merge, and what', async (t) => {
  const { first, second } = await two()
  const restricted = async (scope: string): Promise<string> =>
    (
      await client.admin('POST', `/workspaces/${server.workspace}/keys`, {
        kind: 'secret',
        environment: 'test',
        scopes: [scope],
      })
    ).body.key
  const unknown = 'pv_00000000000000000000'
  const cases: [string, string, unknown, string | null, number, string, string?][] = [
    ['no key', first.visitorId, second.visitorId, null, 401, 'invalid_api_key'],
    ['a public key', first.visitorId, second.visitorId, keys.testPublic, 403, 'insufficient_permissions'],
    [
      'another scope',
      first.visitorId,
      second.visitorId,
      await restricted('visitors:read'),
      403,
      'insufficient_permissions',
    ],
    ['another environment', first.visitorId, second.visitorId, keys.secret, 404, 'not_found'],
    ['an unknown survivor', unknown, second.visitorId, key, 404, 'not_found'],
    ['no id at all', 'x', second.visitorId, key, 404, 'not_found'],
    ['an unknown other', first.visitorId, unknown, key, 404, 'not_found', 'visitorId'],
    ['a malformed other', first.visitorId, 'x', key, 400, 'validation_error', 'visitorId'],
    ['a missing other', first.visitorId, undefined, key, 400, 'validation_error', 'visitorId'],
    ['itself', first.visitorId, first.visitorId, key, 400, 'validation_error', 'visitorId'],
  ]
  for (const [what, survivor, other, withKey, status, code, field] of cases) {
    const answer = await merge(survivor, other, withKey)
    t.equal(answer.status, status, what)
    t.same(shapes.errorFaults(status, answer.body), [], what)
    t.equal(answer.body.error.code, code, what)
    if (field !== undefined) t.equal(answer.body.error.field, field, what)
  }
  const extra = await client.send('POST', `/v1/visitors/${first.visitorId}/merge`, {
    key,
    body: { visitorId: second.visitorId, force: true },
  })
  t.match(extra, { status: 400, body: { error: { field: 'force' } } })
  t.equal((await client.get(`/v1/visitors/${first.visitorId}/merge`, key)).status, 405)
  t.equal((await merge(first.visitorId, second.visitorId, await restricted('visitors:write'))).status, 200)
})
