// A deployment whose kv is wiped: what a rebuild brings back from the log and from ClickHouse, and what it leaves alone.

import { rmSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { NothingToRebuild, rebuild } from '../../src/ops/rebuild.ts'
import { clientOf, eventually } from '../helpers/client.ts'
import {
  checkRules,
  checkTotals,
  checkVisitors,
  listedAll,
  makeDevices,
  makeRule,
  openOps,
  repeat,
  requestIds,
  rulesOf,
  sorted,
  trimAll,
  type Visit,
  visitAll,
  visitorsOf,
} from '../helpers/deployment.ts'
import { rng, testSeed } from '../helpers/rng.ts'
import { cleanUp, startServer, temporaryFolder } from '../helpers/server.ts'

const seed = testSeed()
t.comment(`SEED=${seed}`)
t.teardown(cleanUp)

const dataDir = temporaryFolder()
const random = rng(seed)
const devices = makeDevices(random, 60)
const wipe = () => rmSync(join(dataDir, 'kv'), { recursive: true })

let server = await startServer({ dataDir })
let client = clientOf(server)
const { keys, port } = server

async function start(): Promise<void> {
  server = await startServer({ dataDir, keys, port })
  client = clientOf(server)
}

/** Each event once in the lists and by id, and every visitor with as many visits as it had. */
async function checkEvents(t: Test, visits: readonly Visit[]): Promise<void> {
  t.same(sorted(await listedAll(client, visits)), requestIds(visits), 'every event is listed once')
  for (const { event } of visits.slice(-20)) {
    const { status, body } = await client.get(`/v1/events/${event.requestId}`)
    t.match({ status, body }, { status: 200, body: { visitorId: event.visitorId, verdict: event.verdict } })
  }
  await checkTotals(
    t,
    client,
    visits.map(({ event }) => event),
  )
}

const visits: Visit[] = []

/** A list that was changed in every way, one that rules filled, and one that is gone. */
async function makeLists(): Promise<readonly string[]> {
  const send = async (method: string, path: string, body?: unknown) => {
    const answer = await client.send(method, path, body === undefined ? {} : { body })
    if (answer.status >= 300) throw new Error(`${answer.status} ${answer.text}`)
    return answer.body
  }
  const make = async (name: string, type: string) => (await send('POST', '/v1/lists', { name, type })).id as string
  const [nets, caught, gone] = [await make('nets', 'ip'), await make('caught', 'email'), await make('gone', 'email')]
  await send('PATCH', `/v1/lists/${nets}/entries`, { add: ['10.0.0.0/8', '192.0.2.1', { value: '::1', ttl: 900 }] })
  await send('PATCH', `/v1/lists/${nets}/entries`, { remove: ['192.0.2.1'], add: [{ value: '::2', reason: 'x' }] })
  await send('PATCH', `/v1/lists/${gone}/entries`, { add: ['a@b.example'] })
  await send('DELETE', `/v1/lists/${gone}`)
  const rule = await send('POST', '/v1/rules', {
    name: 'catch',
    conditions: { operator: 'AND', rules: [{ field: 'tag.mail', operator: 'exists', value: true }] },
    action: { verdict: 'allow', sideEffects: [{ type: 'addToList', list: 'caught', value: 'tag.mail' }] },
    status: 'live',
    priority: 1,
  })
  for (const [i, device] of devices.slice(0, 2).entries()) {
    const { body: page, headers, userAgent } = device.request
    const known = { ip: device.ip, userAgent, headers, storageToken: device.token, nonce: `nonce-of-a-list-${i}0000` }
    const body = { ...page, ...known, tag: { mail: `m${i}@b.example` } }
    const { body: event } = await client.identify(body)
    visits.push({ device, body, event })
  }
  await eventually(
    () => client.get(`/v1/lists/${caught}`),
    ({ body }) => body.entryCount === 2,
  )
  await send('DELETE', `/v1/rules/${rule.id}`)
  await listedAll(client, visits)
  return [nets, caught, gone]
}

const listsOf = async (ids: readonly string[]) => {
  const answers = ids.flatMap((id) => [client.get(`/v1/lists/${id}`), client.get(`/v1/lists/${id}/entries`)])
  return (await Promise.all(answers)).map(({ status, body }) => [status, body])
}
const visit = async (some = devices) => void visits.push(...(await visitAll(client, random, some)))

t.test('what ClickHouse alone knows comes back: rules, keys, visitors and counts', async (t) => {
  const live = await makeRule(client, 'linked', 'visitorFound', true)
  await makeRule(client, 'watched', 'visitorFound', true, 'monitor')
  const gone = await makeRule(client, 'gone', 'visitorFound', false)
  await visit()
  await visit()
  await client.send('DELETE', `/v1/rules/${gone.id}`)
  const change = (name: string, version: string | null) =>
    client.send('PUT', `/v1/rules/${live.id}`, { body: { name }, headers: { 'If-Match': version ?? '' } })
  const version = (await client.get(`/v1/rules/${live.id}`)).headers.get('etag')
  t.equal((await change('renamed', version)).status, 200)
  t.equal((await change('renamed twice', version)).status, 409, 'of an older version')
  const makeKey = async () =>
    (await client.admin('POST', '/workspaces/ws_default/keys', { kind: 'secret', environment: 'live' })).body
  const [revoked, kept] = [await makeKey(), await makeKey()]
  t.equal((await client.admin('DELETE', `/workspaces/ws_default/keys/${revoked.id}`)).status, 200)
  await visit()
  await listedAll(client, visits)
  const lists = await makeLists()
  const listed = await listsOf(lists)
  const rules = await rulesOf(client, visits)
  const ids = new Set(visits.map(({ event }) => event.visitorId))
  const visitors = await visitorsOf(client, ids)
  const audit = (await client.get('/v1/audit?limit=100')).body
  t.ok(audit.data.length >= 5)
  t.equal(await server.stop(), 0)

  const trimmed = await openOps(dataDir)
  await trimAll(trimmed)
  await trimmed.close()
  wipe()
  const ops = await openOps(dataDir)
  const done = await rebuild(ops)
  t.match(done, { partitions: 4, visitors: ids.size, adoptable: 0, inserted: 0, doubled: 0 })
  await t.rejects(rebuild(ops), NothingToRebuild, 'a second rebuild finds nothing to do')
  await ops.close()

  await start()
  await checkEvents(t, visits)
  checkRules(t, await rulesOf(client, visits), rules)
  await checkVisitors(t, client, visitors)
  t.same((await client.get('/v1/audit?limit=100')).body, audit, 'who changed what')
  t.same(await listsOf(lists), listed, 'lists and their entries, with what rules put on them')
  t.equal((await client.get('/v1/rules', revoked.key)).status, 401, 'a revoked key stays revoked')
  t.equal((await client.get('/v1/rules', kept.key)).status, 200)
  const before = visits.length
  await visit(devices.slice(0, 20))
  const homes = new Map(visits.slice(0, before).map(({ device, event }) => [device.number, event.visitorId]))
  for (const { device, event, body } of visits.slice(before)) {
    if (body.storageToken === null) continue
    t.match(event, { visitorId: homes.get(device.number), visitorFound: true }, 'a token is recognised')
  }
})

t.test('what the log still has comes back exactly, after kill -9 in the middle of sinking', async (t) => {
  await visit()
  await listedAll(client, visits)
  await server.stop()
  const trimmed = await openOps(dataDir)
  await trimAll(trimmed)
  await trimmed.close()
  await start()
  await visit([...devices, ...makeDevices(random, 40, devices.length)])
  const latest = visits.slice(-60)
  await server.kill9()
  wipe()
  const ops = await openOps(dataDir)
  const done = await rebuild(ops)
  t.ok(done.adoptable >= 100, `${done.adoptable} events are adopted`)
  t.equal(done.doubled, 0)
  await ops.close()

  await start()
  for (const first of latest) {
    const again = await repeat(client, first)
    t.match(again, { status: 200, body: { requestId: first.event.requestId } }, 'a nonce is answered with its event')
    t.equal(again.headers.get('idempotent-replayed'), 'true')
  }
  await checkEvents(t, visits)
  for (const { event, device } of latest) {
    const { body } = await client.identify({
      ...device.request.body,
      ...{ ip: device.ip, userAgent: device.request.userAgent, headers: device.request.headers },
      storageToken: event.storageToken,
    })
    t.equal(body.visitorId, event.visitorId, 'a token is recognised')
    visits.push({ device, body: {}, event: body })
  }
  await checkEvents(t, visits)

  // Most were put into the index by a visit that the log has forgotten.
  const homes = new Map(visits.map(({ device, event }) => [device.number, event.visitorId]))
  const others = await visitAll(
    client,
    random,
    devices.map((device) => ({ ...device, token: null })),
  )
  const found = others.filter(({ device, event }) => homes.get(device.number) === event.visitorId)
  t.ok(found.length > devices.length / 2, `${found.length} of ${devices.length} are recognised by their looks`)
  t.equal(await server.stop(), 0)
})
