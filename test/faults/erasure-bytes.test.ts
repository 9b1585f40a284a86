// When an erasure is done, no file of the data folder holds a byte by which the visitor could be known: not in the embedded stores,
// not in ClickHouse's parts, not in the log of configuration, whatever happened to the visitor before and though the server is
// killed. The same purge shortens the addresses that a workspace keeps for a shorter time.

import { randomUUID } from 'node:crypto'
import { join, relative } from 'node:path'
import { gunzipSync } from 'node:zlib'
import t, { type Test } from 'tap'
import { backup } from '../../src/ops/backup.ts'
import { type Answer, CHROME, type Client, clientOf, eventually } from '../helpers/client.ts'
import { openOps, replacePartsSoon } from '../helpers/deployment.ts'
import { sized } from '../helpers/depth.ts'
import { deviceOf } from '../helpers/devices.ts'
import { filesOf } from '../helpers/folder.ts'
import { cleanUp, startServer, temporaryFolder } from '../helpers/server.ts'

t.setTimeout(900_000)
t.teardown(cleanUp)

const VISITS = sized({ usual: 10, long: 24 })
/** Place of the event that a split moves. */
const MOVED = 5
/** `events-survive.test.ts` kills a server that was asked to erase. */
const IS_KILLED_BEFORE = sized({ usual: false, long: true })
const DAY_MS = 86_400_000
const dataDir = temporaryFolder()
const env = {
  FINGERPOST_PURGE_EVERY_SECONDS: sized({ usual: '3', long: '4' }),
  FINGERPOST_LOG_KEEP_SECONDS: '10',
}

/** `name: file` of every canary that is anywhere. */
function found(
  canaries: Readonly<Record<string, string | Buffer>>,
  folder = dataDir,
  open = (bytes: Buffer): Buffer => bytes,
): string[] {
  const places: string[] = []
  for (const { path, bytes } of filesOf(folder)) {
    const shown = path.endsWith('.gz') ? open(bytes) : bytes
    for (const [name, canary] of Object.entries(canaries)) {
      if (shown.includes(canary)) places.push(`${name}: ${relative(folder, path)}`)
    }
  }
  return places
}

/** A workspace that keeps full addresses for three days; the returned function asks that the purge has left their networks. */
async function shortenedAddresses(t: Test, client: Client, key: string) {
  const at = new Date(Date.now() - 6 * DAY_MS).toISOString()
  const [v4, v6] = ['198.51.100.99', '2001:db8:1:2::3']
  for (const ip of [v4, v6]) {
    t.equal((await client.identify({ userAgent: CHROME, mock: { at, ip } }, { key })).status, 200)
  }
  const matches = async (client: Client, value: string): Promise<number> => {
    const conditions = { operator: 'AND', rules: [{ field: 'ip', operator: 'equals', value }] }
    return (await client.send('POST', '/v1/rules/backtest', { key, body: { conditions, days: 30 } })).body.matchCount
  }
  await eventually(
    async () => [await matches(client, v4), await matches(client, v6)],
    ([four, six]) => four === 1 && six === 1,
  )
  const settings = { retention: { fullIpDays: 3 } }
  t.equal((await client.admin('PATCH', '/workspaces/ws_default', { settings })).status, 200)
  return async (client: Client) => {
    const left = await eventually(
      async () => [await matches(client, v4), await matches(client, v6)],
      ([four, six]) => four === 0 && six === 0,
    )
    t.same(left, [0, 0], 'no full address is left')
    t.equal(await matches(client, '198.51.100.0'), 1, 'but its network')
  }
}

t.test('no byte of an erased visitor is on any disk', async (t) => {
  await replacePartsSoon(dataDir)
  let server = await startServer({ dataDir, env })
  let client = clientOf(server)
  const { keys, port } = server
  const key = keys.secret
  const mark = randomUUID().slice(0, 8)
  const said = {
    linkedId: `account-${mark}-7c1f`,
    email: `mail-${mark}@shop.example`,
    tag: { note: `tag-${mark}-c4na`, kind: 'watched' },
    url: `https://shop.example/path-${mark}?q=1`,
  }
  const ip = '203.0.113.217'
  const { mock: _, ...device } = deviceOf(1)
  Object.assign(device.components, {
    canvas: { value: { winding: true, geometry: `geo-${mark}`, text: `txt-${mark}` } },
  })
  const page = { ...device, ...said, ip, userAgent: `${CHROME} agent-${mark}` }

  const send = async (method: string, path: string, body: unknown) => {
    const answer = await client.send(method, path, { key, body })
    t.ok(answer.status < 300, `${method} ${path}: ${answer.status} ${answer.text}`)
    return answer.body
  }
  const checkAddresses = await shortenedAddresses(t, client, keys.testSecret)
  const hook = await send('POST', '/v1/webhooks', { url: 'https://hooks.example.com/all', events: ['*'] })
  const chosen = `chosen-secret-${randomUUID()}`
  await send('POST', '/v1/webhooks', { url: 'https://hooks.example.com/mine', events: ['list_update'], secret: chosen })
  const list = await send('POST', '/v1/lists', { name: 'watched', type: 'visitor' })
  const byRule = await send('POST', '/v1/lists', { name: 'by_rule', type: 'visitor' })
  await send('POST', '/v1/rules', {
    name: 'watch',
    conditions: { operator: 'AND', rules: [{ field: 'tag.kind', operator: 'equals', value: 'watched' }] },
    action: { verdict: 'allow', sideEffects: [{ type: 'addToList', list: 'by_rule' }] },
    status: 'live',
  })

  const visit = async (body: object, storageToken: string | null) => {
    const answer = await client.identify({ ...body, storageToken }, { key })
    t.equal(answer.status, 200)
    return answer.body as { requestId: string; visitorId: string; storageToken: string }
  }
  const tokens: string[] = []
  let last = await visit(page, null)
  const { visitorId } = last
  const requests = [last.requestId]
  for (let n = 1; n < VISITS; n++) {
    last = await visit(page, n % 3 === 0 ? null : last.storageToken)
    t.equal(last.visitorId, visitorId)
    tokens.push(last.storageToken)
    requests.push(last.requestId)
  }
  const { mock: __, ...second } = deviceOf(9)
  const alias = await visit(
    { ...second, linkedId: said.linkedId, tag: { kind: 'watched' }, ip: '198.51.100.77', userAgent: CHROME },
    null,
  )
  t.not(alias.visitorId, visitorId)
  const hasty = await visit({ ...deviceOf(20), mock: undefined, ip: '192.0.2.7' }, null)
  const bystander = await visit({ ...deviceOf(30), mock: undefined, ip: '192.0.2.9' }, null)
  await eventually(
    () => client.get(`/v1/visitors/${visitorId}`, key),
    ({ body }) => body?.totalVisits === VISITS,
  )
  await eventually(
    () => client.get(`/v1/lists/${byRule.id}/entries`, key),
    ({ body }) => body.data.length >= 2,
  )
  await send('PATCH', `/v1/lists/${list.id}/entries`, {
    add: [{ value: visitorId, reason: `reason-${mark}` }, alias.visitorId],
  })
  await send('PATCH', `/v1/lists/${list.id}/entries`, { remove: [visitorId] })
  await send('PATCH', `/v1/lists/${list.id}/entries`, { add: [visitorId, bystander.visitorId] })
  await send('PATCH', `/v1/events/${requests[3]}`, { tag: { later: `late-${mark}` }, label: 'fraud' })
  await send('POST', `/v1/visitors/${visitorId}/merge`, { visitorId: alias.visitorId })
  await eventually(
    async () => (await client.get(`/v1/visitors/${visitorId}/events?limit=100`, key)).body.data.length,
    (events) => events === VISITS + 1,
  )

  const keyed = { key, body: { requestIds: [requests[MOVED]] }, headers: { 'Idempotency-Key': 'split once' } }
  const { body: split } = await eventually(
    () => client.send('POST', `/v1/visitors/${visitorId}/split`, keyed),
    ({ status }) => status === 201,
  )
  await client.get(`/v1/visitors/${visitorId}/export`, key)
  if (IS_KILLED_BEFORE) {
    await server.kill9()
    server = await startServer({ dataDir, env, keys, port })
    client = clientOf(server)
  }
  await visit(page, last.storageToken)

  const canaries = {
    visitorId,
    alias: alias.visitorId,
    linkedId: said.linkedId,
    email: said.email,
    tag: said.tag.note,
    later: `late-${mark}`,
    reason: `reason-${mark}`,
    url: `path-${mark}`,
    geometry: `geo-${mark}`,
    agent: `agent-${mark}`,
    ip,
    token: tokens.at(-1) ?? '',
    'token bytes': Buffer.from((tokens.at(-1) ?? '').slice(3), 'base64url'),
  }
  t.ok(found(canaries).length > 0, 'before, the scan finds it')
  const parted = await client.send('DELETE', `/v1/visitors/${split.visitorId}`, { key })
  t.equal(parted.status, 200)
  const { body } = await client.send('DELETE', `/v1/visitors/${visitorId}`, { key })
  const { erasureId } = body
  const isDone = ({ body }: Answer) => body.status === 'done'
  const follow = (id: string) => client.get(`/v1/erasures/${id}`, key)
  const done = await eventually(() => follow(erasureId), isDone, 240_000, 100)
  t.equal(done.body.status, 'done', done.text)
  t.same(
    done.body.stores.map(({ store, status }: { store: string; status: string }) => `${store} ${status}`),
    ['profile', 'lists', 'webhooks', 'events', 'log'].map((store) => `${store} done`),
  )
  t.same(found(canaries), [], 'no file has any of it from that moment on')
  // A split remembers which events it has moved for as long as they would be readable.
  const events = Object.fromEntries(requests.map((id, n) => [`event ${n}`, id]).filter((_, n) => n !== MOVED))
  t.same(found(events, join(dataDir, 'log')), [], 'nor has the log the names of its events')
  const alsoDone = await eventually(() => follow(parted.body.erasureId), isDone, 240_000, 100)
  t.equal(alsoDone.body.status, 'done', alsoDone.text)
  const parting = { 'split off': split.visitorId }
  t.same(found(parting), [], 'nor of whom was split off')

  await checkAddresses(client)
  t.equal((await client.get(`/v1/visitors/${bystander.visitorId}`, key)).status, 200, 'others are there as before')
  const entries = (await client.get(`/v1/lists/${list.id}/entries`, key)).body.data
  t.match(entries, [{ value: bystander.visitorId }])
  t.equal(entries.length, 1)
  await server.kill9()
  server = await startServer({ dataDir, env, keys, port })
  client = clientOf(server)
  t.same(found(canaries), [], 'nor after a sudden end')
  t.equal((await client.get(`/v1/visitors/${visitorId}`, key)).status, 404)
  t.equal((await client.get(`/v1/visitors/${bystander.visitorId}`, key)).status, 200)

  // Whoever makes a backup right after an erasure was answered does not wait for the disks either.
  await send('PATCH', `/v1/lists/${list.id}/entries`, { add: [hasty.visitorId] })
  t.equal((await client.send('DELETE', `/v1/visitors/${hasty.visitorId}`, { key })).status, 200)
  t.equal(await server.stop(), 0)
  const ops = await openOps(dataDir)
  const saved = join(temporaryFolder(), 'backup')
  await backup({ ...ops, deployment: 'test', product: '0.0.0' }, saved)
  await ops.close()
  const secrets = { 'a secret': hook.signingSecret, 'a chosen secret': chosen }
  const erased = { ...canaries, ...parting, hasty: hasty.visitorId, 'hasty token': hasty.storageToken, ...secrets }
  t.same(found(erased, saved, gunzipSync), [], 'a backup has none of it')
  t.same(found(secrets), [], 'and no secret of a webhook is in clear anywhere')
  const others = { bystander: bystander.visitorId, hook: hook.id }
  t.ok(found(others, saved, gunzipSync).length >= 2, 'though it holds the rest')
})
