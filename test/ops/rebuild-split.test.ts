// A split after the kv was wiped, with and without what the log had of it, and in a restored backup: the same two visitors.

import { rmSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { backup } from '../../src/ops/backup.ts'
import { rebuild } from '../../src/ops/rebuild.ts'
import { checkBackup, restore } from '../../src/ops/restore.ts'
import { browserBody, CHROME, clientOf, eventually } from '../helpers/client.ts'
import { openOps, PARTITIONS, quiet, trimAll } from '../helpers/deployment.ts'
import { cleanUp, startServer, temporaryFolder } from '../helpers/server.ts'

t.teardown(cleanUp)

const dataDir = temporaryFolder()
const options = { dataDir, env: { FINGERPOST_DATA_PARTITIONS: String(PARTITIONS) } }
let server = await startServer(options)
let client = clientOf(server)
const { keys } = server

function newDevice(n: number) {
  const device = browserBody('ANGLE (NVIDIA, NVIDIA GeForce GTX 900 Direct3D11 vs_5_0 ps_5_0, D3D11)')
  Object.assign(device.components, { fonts: { value: [`Font ${n}`] }, audio: { value: n } })
  return { ...device, userAgent: CHROME, ip: `198.${n}.100.7`, linkedId: `account ${n}` }
}
const [a, b] = [newDevice(31), newDevice(32)]
interface Visited {
  readonly requestId: string
  readonly visitorId: string
  readonly timestamp: string
  readonly storageToken: string
}
async function visit(device: object, storageToken: string | null = null): Promise<Visited> {
  const { status, body } = await client.identify({ ...device, storageToken })
  t.equal(status, 200)
  return body
}
const visitor = async (id: string, visits: number) =>
  (
    await eventually(
      () => client.get(`/v1/visitors/${id}`),
      ({ body }) => body?.totalVisits === visits,
    )
  ).body
const requestIdsOf = async (id: string): Promise<string[]> =>
  (await client.get(`/v1/events?visitorId=${id}`)).body.data.map((event: Visited) => event.requestId)

async function splitOff() {
  const first = await visit(a)
  const copied = await visit(b, first.storageToken)
  const again = await visit(b, copied.storageToken)
  const id = first.visitorId
  const moved = [copied.requestId, again.requestId]
  const { body } = await client.send('POST', `/v1/visitors/${id}/split`, { body: { requestIds: moved } })
  const to: string = body.visitorId
  return { first, copied, again, id, moved, to, shown: { [id]: await visitor(id, 1), [to]: await visitor(to, 2) } }
}
const ready = splitOff()

async function checkBoth(t: Test) {
  const { first, id, moved, to, shown } = await ready
  for (const [one, visits] of [
    [id, 1],
    [to, 2],
  ] as const) {
    const { firstSeenAt, lastSeenAt, linkedAccounts } = shown[one]
    t.match(await visitor(one, visits), { visitorId: one, firstSeenAt, lastSeenAt, linkedAccounts })
  }
  t.same(await requestIdsOf(to), [...moved].reverse())
  t.same(await requestIdsOf(id), [first.requestId])
  for (const requestId of moved) t.equal((await client.get(`/v1/events/${requestId}`)).body.visitorId, to)
}

async function startAgain() {
  server = await startServer({ ...options, keys })
  client = clientOf(server)
}
async function rebuilt(isTrimmed: boolean) {
  t.equal(await server.stop(), 0)
  if (isTrimmed) {
    const trimmed = await openOps(dataDir)
    await trimAll(trimmed)
    await trimmed.close()
  }
  rmSync(join(dataDir, 'kv'), { recursive: true })
  const ops = await openOps(dataDir)
  await rebuild(ops)
  await ops.close()
  await startAgain()
}

t.test('a restored backup has both', async (t) => {
  await ready
  t.equal(await server.stop(), 0)
  const dir = join(temporaryFolder(), 'backup')
  const from = await openOps(dataDir)
  await backup({ ...from, product: 'test' }, dir)
  await from.close()
  const restoredDir = temporaryFolder()
  const into = await openOps(restoredDir)
  await restore(into, dir, await checkBackup(dir, quiet))
  await into.close()
  server = await startServer({ ...options, dataDir: restoredDir, keys })
  client = clientOf(server)
  await checkBoth(t)
  const { first, again, id, to } = await ready
  t.equal((await visit(b, again.storageToken)).visitorId, to)
  t.equal((await visit(a, first.storageToken)).visitorId, id)
  t.equal(await server.stop(), 0)
  await startAgain()
})

t.test('a rebuild while the log has the split', async (t) => {
  await rebuilt(false)
  await checkBoth(t)
})

t.test('a rebuild of what ClickHouse and `changes` tell', async (t) => {
  await rebuilt(true)
  await checkBoth(t)
  const { first, copied, again, id, to } = await ready
  for (const token of [copied, again]) t.equal((await visit(b, token.storageToken)).visitorId, to)
  t.equal((await visit(a, first.storageToken)).visitorId, id)
  t.equal((await visitor(to, 4)).totalVisits, 4)
})

t.test('the server stops in order', async (t) => {
  t.equal(await server.stop(), 0)
})
