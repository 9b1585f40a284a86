// Merged visitors after the kv was wiped: who stands for whom comes back, and so do the visits of each.

import { rmSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { rebuild } from '../../src/ops/rebuild.ts'
import { browserBody, CHROME, clientOf, eventually } from '../helpers/client.ts'
import { openOps, trimAll } from '../helpers/deployment.ts'
import { cleanUp, startServer, temporaryFolder } from '../helpers/server.ts'

t.teardown(cleanUp)

const dataDir = temporaryFolder()
let server = await startServer({ dataDir })
let client = clientOf(server)
const { keys, port } = server

function newDevice(n: number) {
  const device = browserBody(`ANGLE (NVIDIA, NVIDIA GeForce GTX ${n} Direct3D11 vs_5_0 ps_5_0, D3D11)`)
  Object.assign(device.components, { fonts: { value: [`Font ${n}`] }, audio: { value: n } })
  return { ...device, userAgent: CHROME, ip: `198.${n}.100.7` }
}
async function visit(device: object, storageToken: string | null = null) {
  const { status, body } = await client.identify({ ...device, storageToken })
  t.equal(status, 200)
  return body as { visitorId: string; storageToken: string }
}
const visitor = async (id: string, visits: number) =>
  (
    await eventually(
      () => client.get(`/v1/visitors/${id}`),
      ({ body }) => body?.totalVisits === visits,
    )
  ).body

t.test('a rebuild brings merged visitors back as one', async (t) => {
  const [a, b] = [newDevice(31), newDevice(32)]
  const [first, second] = [await visit(a), await visit(b)]
  await Promise.all([visitor(first.visitorId, 1), visitor(second.visitorId, 1)])
  const path = `/v1/visitors/${first.visitorId}/merge`
  t.equal((await client.send('POST', path, { body: { visitorId: second.visitorId } })).status, 200)
  const late = await visit(b, second.storageToken)
  t.equal(late.visitorId, first.visitorId)
  const before = await visitor(first.visitorId, 3)
  await eventually(
    () => client.get(`/v1/visitors/${first.visitorId}/events`),
    ({ body }) => body.data.length === 3,
  )
  t.equal(await server.stop(), 0)

  // Nothing of it is in the log any more: ClickHouse and `changes` must tell.
  const trimmed = await openOps(dataDir)
  await trimAll(trimmed)
  await trimmed.close()
  rmSync(join(dataDir, 'kv'), { recursive: true })
  const ops = await openOps(dataDir)
  await rebuild(ops)
  await ops.close()
  server = await startServer({ dataDir, keys, port })
  client = clientOf(server)

  const after = await visitor(second.visitorId, 3)
  t.match(after, { visitorId: first.visitorId, firstSeenAt: before.firstSeenAt, totalVisits: 3 })
  t.match(await visit(b, late.storageToken), { visitorId: first.visitorId, firstSeenAt: before.firstSeenAt })
  t.equal((await visit(b, second.storageToken)).visitorId, first.visitorId)
  t.equal((await visit(a, first.storageToken)).visitorId, first.visitorId)
  t.equal((await visitor(first.visitorId, 6)).totalVisits, 6)
})

t.test('the server stops in order', async (t) => {
  t.equal(await server.stop(), 0)
})
