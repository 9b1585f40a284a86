// POST /v1/visitors/{id}/split against a real server: some visits are another's from then on, for reads, later visits and erasure.

import t from 'tap'
import { eventually } from '../helpers/client.ts'
import { type Device, deviceOf } from '../helpers/devices.ts'
import { cleanUp } from '../helpers/server.ts'
import * as shapes from '../helpers/shapes.ts'
import { openTenant } from '../helpers/tenant.ts'

t.teardown(cleanUp)
// They wait for the history most of the time, each for events of its own.
t.jobs = 4

const { server, ...client } = await openTenant()
const { keys } = server
const key = keys.testSecret

let made = 0
/** Of one kind have the same hardware. */
const newDevice = (kind = made + 1) => deviceOf(++made, kind)
interface Visited {
  readonly requestId: string
  readonly visitorId: string
  readonly visitorFound: boolean
  readonly timestamp: string
  readonly storageToken: string
  readonly identity: { readonly method: string }
}

async function visit(device: Device, more: object = {}): Promise<Visited> {
  const { status, body, text } = await client.identify({ ...device, ...more }, { key })
  if (status !== 200) throw new Error(`${status} ${text}`)
  return body
}
const read = async (visitorId: string) => client.get(`/v1/visitors/${visitorId}`, key)
const stored = async (visitorId: string, totalVisits = 1) =>
  (
    await eventually(
      () => read(visitorId),
      ({ body }) => body?.totalVisits === totalVisits,
    )
  ).body
const split = (visitorId: string, requestIds: unknown, withKey: string | null = key) =>
  client.send('POST', `/v1/visitors/${visitorId}/split`, { key: withKey, body: { requestIds } })
async function splitOff(visitorId: string, requestIds: readonly string[]): Promise<string> {
  const { status, body, text } = await split(visitorId, requestIds)
  if (status !== 201) throw new Error(`${status} ${text}`)
  return body.visitorId
}
const merge = (survivor: string, visitorId: string) =>
  client.send('POST', `/v1/visitors/${survivor}/merge`, { key, body: { visitorId } })
const requestIdsOf = async (visitorId: string): Promise<string[]> =>
  (await client.get(`/v1/events?visitorId=${visitorId}`, key)).body.data.map((event: Visited) => event.requestId)
/** A split waits three seconds for visits that the history does not show, which is too short on a busy machine. */
const shown = (visitorId: string, visits: number) =>
  eventually(
    () => requestIdsOf(visitorId),
    (ids) => ids.length === visits,
  )

/** A device, and another that goes about with a copy of its token. */
async function mixed(ofOneKind = true) {
  const kind = made + 1
  const [a, b] = [newDevice(kind), ofOneKind ? newDevice(kind) : newDevice()]
  const first = await visit(a, { linkedId: 'ann' })
  const copied = await visit(b, { storageToken: first.storageToken, linkedId: 'bob' })
  const again = await visit(b, { storageToken: copied.storageToken, linkedId: 'bob' })
  if (again.visitorId !== first.visitorId) throw new Error('a copied token leads elsewhere')
  await shown(first.visitorId, 3)
  return { a, b, first, copied, again, id: first.visitorId, moved: [copied.requestId, again.requestId] }
}

t.test('moved events read as the new visitor’s, and counts, times and accounts of both are right', async (t) => {
  const { first, copied, again, id, moved } = await mixed(false)
  const { status, body } = await split(id, moved)
  t.equal(status, 201)
  t.same(Object.keys(body), ['visitorId', 'moved'])
  t.match(body, { visitorId: /^pv_[0-9A-Za-z]{20}$/, moved: 2 })
  t.not(body.visitorId, id)
  const [own, other] = [(await read(id)).body, (await read(body.visitorId)).body]
  for (const one of [own, other]) t.same(shapes.visitor(one), [])
  t.match(own, { visitorId: id, totalVisits: 1, linkedAccounts: 1, firstSeenAt: first.timestamp })
  t.equal(own.lastSeenAt, first.timestamp)
  t.equal(own.ips.length, 1)
  t.equal(own.devices.length, 1)
  t.match(other, { visitorId: body.visitorId, totalVisits: 2, linkedAccounts: 1, firstSeenAt: copied.timestamp })
  t.equal(other.lastSeenAt, again.timestamp)
  t.equal(other.ips.length, 1)
  t.notSame(own.ips, other.ips)
  t.notSame(own.devices, other.devices)
  t.same(await requestIdsOf(id), [first.requestId])
  t.same(await requestIdsOf(body.visitorId), [...moved].reverse())
  const byFilter = await client.get(`/v1/visitors/${body.visitorId}/events`, key)
  t.same(
    byFilter.body.data.map((event: Visited) => event.requestId),
    [...moved].reverse(),
  )
  for (const requestId of moved) {
    const event = (await client.get(`/v1/events/${requestId}`, key)).body
    t.same(shapes.event(event), [])
    t.match(event, { visitorId: body.visitorId, firstSeenAt: copied.timestamp })
    const identity = (await client.get(`/v1/events/${requestId}/identity`, key)).body
    t.equal(identity.visitorId, body.visitorId)
  }
  t.equal((await client.get(`/v1/events/${first.requestId}`, key)).body.visitorId, id)
})

t.test('tokens given out in moved events lead to the new visitor, the others to the old one', async (t) => {
  const { a, b, first, copied, again, id, moved } = await mixed()
  const to = await splitOff(id, moved)
  for (const token of [copied, again]) {
    const later = await visit(b, { storageToken: token.storageToken })
    t.match(later, { visitorId: to, visitorFound: true, identity: { method: 'token' } })
    t.equal((await visit(b, { storageToken: later.storageToken })).visitorId, to)
  }
  t.match(await visit(a, { storageToken: first.storageToken }), { visitorId: id, identity: { method: 'token' } })
  t.equal((await stored(to, 6)).totalVisits, 6)
  t.equal((await stored(id, 2)).totalVisits, 2)
})

t.test('without a token each device is recognised as its own visitor after its next visit', async (t) => {
  const { a, b, first, again, id, moved } = await mixed()
  const to = await splitOff(id, moved)
  t.match(await visit(b), { visitorId: to, visitorFound: true, identity: { method: 'exact' } }, 'the look was its own')
  t.match(await visit(a, { storageToken: first.storageToken }), { visitorId: id, identity: { method: 'token' } })
  t.match(await visit(b, { storageToken: again.storageToken }), { visitorId: to, identity: { method: 'token' } })
  t.match(await visit(a), { visitorId: id, visitorFound: true, identity: { method: 'exact' } })
  t.match(await visit(b), { visitorId: to, visitorFound: true, identity: { method: 'exact' } })
})

t.test('events that are not the latest are split off as well', async (t) => {
  const { a, b, first, again, id, moved } = await mixed()
  const last = await visit(a, { storageToken: first.storageToken, linkedId: 'ann' })
  // Of visits that the history has not seen yet a split knows no more than their number.
  await shown(id, 4)
  const to = await splitOff(id, moved)
  t.match((await read(id)).body, { totalVisits: 2, linkedAccounts: 1, lastSeenAt: last.timestamp })
  t.match((await read(to)).body, { totalVisits: 2, linkedAccounts: 1 })
  t.match(await visit(a), { visitorId: id, identity: { method: 'exact' } })
  t.match(await visit(b, { storageToken: again.storageToken }), { visitorId: to, identity: { method: 'token' } })
  t.match(await visit(b), { visitorId: to, identity: { method: 'exact' } })
})

t.test('the same split again is the same split', async (t) => {
  const { id, moved } = await mixed()
  const [one, two] = await Promise.all([split(id, moved), split(id, [...moved].reverse())])
  const again = await split(id, moved)
  for (const answer of [one, two, again]) t.match(answer, { status: 201, body: { moved: 2 } })
  t.equal(two.body.visitorId, one.body.visitorId)
  t.equal(again.body.visitorId, one.body.visitorId)
  t.match((await read(one.body.visitorId)).body, { totalVisits: 2 })
  t.match((await read(id)).body, { totalVisits: 1 })
  t.match(await split(id, moved.slice(1)), { status: 400, body: { error: { field: 'requestIds[0]' } } })
})

t.test(
  'an Idempotency-Key is answered as the first time, also when the split was taken back; not once it is erased',
  async (t) => {
    const { id, moved } = await mixed()
    const headers = { 'Idempotency-Key': `split ${id}` }
    const send = () => client.send('POST', `/v1/visitors/${id}/split`, { key, body: { requestIds: moved }, headers })
    const first = await send()
    t.equal(first.status, 201)
    const { visitorId } = first.body
    await merge(id, visitorId)
    const again = await send()
    t.match(again, { status: 201, body: first.body })
    t.equal(again.headers.get('idempotent-replayed'), 'true')
    t.equal((await stored(id, 3)).totalVisits, 3, 'and nothing is split again')
    t.equal((await client.send('DELETE', `/v1/visitors/${id}`, { key })).status, 200)
    t.equal((await send()).status, 404)
  },
)

t.test('what was split off can be split again, and merged back', async (t) => {
  const { b, copied, again, id, moved } = await mixed()
  const to = await splitOff(id, moved)
  const third = await splitOff(to, [again.requestId])
  t.equal((await client.get(`/v1/events/${again.requestId}`, key)).body.visitorId, third)
  t.equal((await visit(b, { storageToken: again.storageToken })).visitorId, third)
  t.equal((await visit(b, { storageToken: copied.storageToken })).visitorId, to)
  await Promise.all([stored(to, 2), stored(third, 2)])
  t.equal((await merge(id, third)).status, 200)
  t.match((await read(id)).body, { visitorId: id, totalVisits: 3 })
  t.equal((await visit(b, { storageToken: again.storageToken })).visitorId, id)
})

t.test('a visitor whose every event was another’s is unknown, and its lists stay with it', async (t) => {
  const { a, first, id, moved } = await mixed()
  const list = (await client.send('POST', '/v1/lists', { key, body: { name: `kept_${made}`, type: 'visitor' } })).body
    .id
  await client.send('PATCH', `/v1/lists/${list}/entries`, { key, body: { add: [{ value: id }] } })
  const to = await splitOff(id, [first.requestId, ...moved])
  t.equal((await read(id)).status, 404)
  t.same(await requestIdsOf(id), [])
  t.match((await read(to)).body, { totalVisits: 3, linkedAccounts: 2, lists: [] })
  t.match((await client.get(`/v1/lists/${list}/entries`, key)).body.data, [{ value: id }])
  t.equal((await split(id, [first.requestId])).status, 404)
  t.equal((await visit(a, { storageToken: first.storageToken })).visitorId, to)
})

t.test('visits of one that was merged into another are split off with those of the other', async (t) => {
  const [a, b] = [newDevice(), newDevice()]
  const [first, second] = [await visit(a, { linkedId: 'ann' }), await visit(b, { linkedId: 'bob' })]
  await Promise.all([stored(first.visitorId), stored(second.visitorId)])
  t.equal((await merge(first.visitorId, second.visitorId)).status, 200)
  const late = await visit(b, { storageToken: second.storageToken, linkedId: 'bob' })
  const more = await visit(a, { storageToken: first.storageToken, linkedId: 'eve' })
  await shown(first.visitorId, 4)
  const { status, body } = await split(first.visitorId, [late.requestId, more.requestId, second.requestId])
  t.equal(status, 201)
  t.equal(body.moved, 3)
  t.match((await read(first.visitorId)).body, { totalVisits: 1, linkedAccounts: 1 })
  t.match((await read(body.visitorId)).body, { totalVisits: 3, linkedAccounts: 2 })
  t.same(await requestIdsOf(body.visitorId), [more.requestId, late.requestId, second.requestId])
  for (const [device, token] of [
    [b, second],
    [b, late],
    [a, more],
  ] as const) {
    t.equal((await visit(device, { storageToken: token.storageToken })).visitorId, body.visitorId)
  }
  t.equal((await visit(a, { storageToken: first.storageToken })).visitorId, first.visitorId)
})

t.test('erasing the new visitor erases what was moved to it, and erasing the old one leaves that alone', async (t) => {
  for (const which of ['new', 'old'] as const) {
    const { a, b, first, again, id, moved } = await mixed()
    const to = await splitOff(id, moved)
    const [erased, kept] = which === 'new' ? [to, id] : [id, to]
    const gone = which === 'new' ? moved : [first.requestId]
    const left = which === 'new' ? [first.requestId] : moved
    t.equal((await client.send('DELETE', `/v1/visitors/${erased}`, { key })).status, 200)
    t.equal((await read(erased)).status, 404)
    t.equal((await read(kept)).status, 200)
    for (const requestId of gone) t.equal((await client.get(`/v1/events/${requestId}`, key)).status, 404)
    for (const requestId of left) t.equal((await client.get(`/v1/events/${requestId}`, key)).body.visitorId, kept)
    t.same((await requestIdsOf(kept)).sort(), [...left].sort())
    t.same(await requestIdsOf(erased), [])
    t.not((await visit(b, { storageToken: again.storageToken })).visitorId, erased)
    t.not((await visit(a, { storageToken: first.storageToken })).visitorId, erased)
  }
})

t.test('a split is in the audit log', async (t) => {
  const { id, moved } = await mixed()
  const to = await splitOff(id, moved)
  const { body } = await client.get(`/v1/audit?resource=visitor&id=${id}`, key)
  t.match(body.data[0], { action: 'split', after: { visitorId: to, moved: 2 } })
})

t.test('who may split, and what', async (t) => {
  const { first, id, moved } = await mixed()
  const stranger = await visit(newDevice())
  await stored(stranger.visitorId)
  const unknown = `req_${'0'.repeat(26)}`
  const restricted = async (scope: string): Promise<string> =>
    (
      await client.admin('POST', `/workspaces/${server.workspace}/keys`, {
        kind: 'secret',
        environment: 'test',
        scopes: [scope],
      })
    ).body.key
  const cases: [string, string, unknown, string | null, number, string, string?][] = [
    ['no key', id, moved, null, 401, 'invalid_api_key'],
    ['a public key', id, moved, keys.testPublic, 403, 'insufficient_permissions'],
    ['another scope', id, moved, await restricted('visitors:read'), 403, 'insufficient_permissions'],
    ['another environment', id, moved, keys.secret, 404, 'not_found'],
    ['an unknown visitor', 'pv_00000000000000000000', moved, key, 404, 'not_found'],
    ['no id at all', 'x', moved, key, 404, 'not_found'],
    ['what could not even be a key', 'x'.repeat(3_000), moved, key, 404, 'not_found'],
    ['an unknown event', id, [...moved, unknown], key, 400, 'validation_error', 'requestIds[2]'],
    ['another’s event', id, [moved[0], stranger.requestId], key, 400, 'validation_error', 'requestIds[1]'],
    ['an event twice', id, [moved[0], first.requestId, moved[0]], key, 400, 'validation_error', 'requestIds[2]'],
    ['a malformed id', id, [moved[0], 'x'], key, 400, 'validation_error', 'requestIds[1]'],
    ['no events', id, [], key, 400, 'validation_error', 'requestIds'],
    ['too many', id, Array(101).fill(unknown), key, 400, 'validation_error', 'requestIds'],
    ['no list', id, undefined, key, 400, 'validation_error', 'requestIds'],
  ]
  for (const [what, visitorId, requestIds, withKey, status, code, field] of cases) {
    const answer = await split(visitorId, requestIds, withKey)
    t.equal(answer.status, status, what)
    t.same(shapes.errorFaults(status, answer.body), [], what)
    t.equal(answer.body.error.code, code, what)
    if (field !== undefined) t.equal(answer.body.error.field, field, what)
  }
  t.match((await read(id)).body, { totalVisits: 3 })
  t.equal((await client.get(`/v1/visitors/${id}/split`, key)).status, 405)
  t.equal((await split(id, moved, await restricted('visitors:write'))).status, 201)
})
