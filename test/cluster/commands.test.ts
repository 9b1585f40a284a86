// Commands on a cluster that works: a backup under load is whole up to a moment and moves into a folder, and a rebuild after
// FLUSHALL needs no process to be stopped.

import { copyFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { backup } from '../../src/ops/backup.ts'
import { rebuild } from '../../src/ops/rebuild.ts'
import { checkBackup, restore } from '../../src/ops/restore.ts'
import { type Client, clientOf, eventually } from '../helpers/client.ts'
import { type Member, startCluster } from '../helpers/cluster.ts'
import {
  checkTotals,
  listAll,
  listEvents,
  listedAll,
  makeDevices,
  makeRule,
  openClusterOps,
  openOps,
  quiet,
  requestIds,
  type Visit,
  visitAll,
} from '../helpers/deployment.ts'
import { sized } from '../helpers/depth.ts'
import { rng, testSeed } from '../helpers/rng.ts'
import { cleanUp, startServer, temporaryFolder } from '../helpers/server.ts'

const seed = testSeed()
t.comment(`SEED=${seed}`)
t.setTimeout(400_000)
t.teardown(cleanUp)

const random = rng(seed)
const SIZE = sized({
  usual: { roles: ['ingress,api', 'engine,jobs', 'engine'], devices: 20, visits: 50, known: 20, strangers: 12 },
  long: { roles: ['ingress', 'engine,jobs', 'engine', 'api'], devices: 60, visits: 150, known: 60, strangers: 30 },
})
const cluster = await startCluster({ roles: SIZE.roles, partitions: 4 })
t.teardown(() => cluster.stop())
const [ingress] = cluster.membersOf('ingress').map(({ server }) => clientOf(server)) as [Client]
const [apiMember] = cluster.membersOf('api') as [Member]
const api = clientOf(apiMember.server)
const visits: Visit[] = []
const devices = makeDevices(random, SIZE.devices)
const saved = `${temporaryFolder()}/backup`

/** Those that an engine has taken over. */
async function heldPartitions(): Promise<number> {
  let held = 0
  for (const { url } of cluster.membersOf('engine')) {
    if ((await fetch(`${url}/readyz`)).status !== 200) return 0
    held += Number(/^fingerpost_engine_partitions_held (\d+)/m.exec(await (await fetch(`${url}/metrics`)).text())?.[1])
  }
  return held
}

t.test('a backup under load holds everything accepted before it, once', async (t) => {
  const rule = await makeRule(api, 'known', 'visitorFound', true)
  const version = (await api.get(`/v1/rules/${rule.id}`)).headers.get('etag') ?? ''
  for (const [name, status] of [
    ['renamed', 200],
    ['too late', 409],
  ] as const) {
    const headers = { 'If-Match': version }
    t.equal((await api.send('PUT', `/v1/rules/${rule.id}`, { body: { name }, headers })).status, status)
  }
  await visitAll(ingress, random, devices, visits)

  let ending = false
  const load = (async () => {
    while (!ending) await visitAll(ingress, random, devices, visits)
  })()
  await eventually(
    async () => visits.length,
    (count) => count > SIZE.visits,
  )
  const before = visits.map(({ event }) => event.requestId)
  const ops = await openClusterOps(cluster.env)
  await backup({ ...ops, product: '0.0.0-test' }, saved)
  await ops.close()
  const during = visits.length
  ending = true
  await load
  t.ok(during > before.length, `${during - before.length} visits meanwhile`)

  const dataDir = temporaryFolder()
  const manifest = await checkBackup(saved, quiet)
  const target = await openOps(dataDir)
  const done = await restore(target, saved, manifest)
  await target.close()
  t.comment(JSON.stringify(done))
  copyFileSync(cluster.env.FINGERPOST_WEBHOOKS_MASTER_KEY_FILE ?? '', join(dataDir, 'master.key'))
  const moved = await startServer({ dataDir, keys: cluster.keys })
  const client = clientOf(moved)
  const count = done.rows + done.undecided
  const ids = await eventually(
    () => listAll(client),
    (found) => found.length >= count,
  )
  t.equal(new Set(ids).size, ids.length, 'each event once')
  t.equal(ids.length, count)
  const known = new Set(ids)
  t.same(
    before.filter((id) => !known.has(id)),
    [],
    'nothing accepted before is missing',
  )
  const events = await listEvents(client)
  await checkTotals(t, client, events)
  const matched = events.filter(({ verdict }) => verdict === 'challenge').length
  const { body } = await client.get(`/v1/rules/${rule.id}`)
  t.match(body, { name: 'renamed', stats: { matchCount: matched } })
  for (const { event } of visits.slice(0, 20)) {
    const { body } = await client.identify({ storageToken: event.storageToken })
    t.equal(body.visitorId, event.visitorId, 'tokens are recognised elsewhere')
  }
  t.equal(await moved.stop(), 0)
})

t.test('a rebuild after FLUSHALL, with every process running', async (t) => {
  const redis = await cluster.redis.client()
  // Engines that have just started know nobody: whoever comes while there is nothing is looked up in nothing.
  for (const engine of cluster.membersOf('engine')) {
    await engine.kill9()
    await engine.restart()
  }
  const held = await eventually(heldPartitions, (count) => count === 4)
  t.equal(held, 4, 'every partition has an owner again')
  const known = visits.slice(0, SIZE.known)
  await visitAll(ingress, random, makeDevices(random, SIZE.strangers), visits)
  await redis.flushall()
  const early = known.map(({ event }) => ingress.identify({ storageToken: event.storageToken }))
  const headers = { Authorization: `Bearer ${cluster.keys.secret}` }
  const wiped = await fetch(`${apiMember.url}/v1/events?limit=1`, { headers })
  t.equal(wiped.status, 503, 'nobody is told that nothing is there')
  const ops = await openClusterOps(cluster.env)
  const done = await rebuild(ops)
  t.match(done, { partitions: 4, doubled: 0 })
  await ops.close()
  const { status } = await eventually(
    // However often it is asked, it is one event.
    () => ingress.identify({ nonce: 'nonce-of-going-on-0001' }),
    (answer) => answer.status === 200,
  )
  t.equal(status, 200, 'it goes on by itself')
  const answers = await Promise.all(early)
  for (const { status, body } of answers) {
    if (status !== 200) continue
    const before = known.find(({ event }) => event.visitorId === body.visitorId)
    t.equal(body.firstSeenAt, before?.event.firstSeenAt, 'nobody known was taken for a stranger')
  }
  const accepted = answers.filter(({ status }) => status < 300).length
  await visitAll(ingress, random, devices, visits)
  await eventually(
    () => api.get('/v1/events?limit=1'),
    (answer) => answer.status === 200,
  )
  const ids = await listedAll(api, [...visits, ...visits.slice(0, 1 + accepted)])
  t.equal(new Set(ids).size, ids.length, 'each event once')
  const listed = new Set(ids)
  t.same(
    requestIds(visits).filter((id) => !listed.has(id)),
    [],
  )
  await checkTotals(t, api, await listEvents(api))
})
