// An erasure that was asked for before the kv was wiped: who asks how far it has come is told, and it comes to its end.

import { rmSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { rebuild } from '../../src/ops/rebuild.ts'
import { clientOf, eventually } from '../helpers/client.ts'
import { openOps } from '../helpers/deployment.ts'
import { deviceOf } from '../helpers/devices.ts'
import { cleanUp, startServer, temporaryFolder } from '../helpers/server.ts'

t.teardown(cleanUp)

const dataDir = temporaryFolder()
const env = { FINGERPOST_PURGE_EVERY_SECONDS: '2', FINGERPOST_LOG_KEEP_SECONDS: '10' }

t.test('after a rebuild an erasure is still known, to those who asked for it alone', async (t) => {
  let server = await startServer({ dataDir, env: { FINGERPOST_PURGE_EVERY_SECONDS: '3600' } })
  let client = clientOf(server)
  const { keys, port } = server
  const key = keys.testSecret
  const { body: event } = await client.identify(deviceOf(1), { key })
  const path = `/v1/visitors/${event.visitorId}`
  await eventually(
    () => client.get(path, key),
    ({ status }) => status === 200,
  )
  const { body } = await client.send('DELETE', path, { key })
  const ask = (withKey: string) => client.get(`/v1/erasures/${body.erasureId}`, withKey)
  const before = await eventually(
    () => ask(key),
    (answer) => answer.body.stores.every(({ status }: { status: string }) => status !== 'hidden'),
  )
  t.match(before, { status: 200, body: { status: 'in_progress' } })
  t.equal(await server.stop(), 0)
  rmSync(join(dataDir, 'kv'), { recursive: true })
  const ops = await openOps(dataDir)
  await rebuild(ops)
  await ops.close()

  server = await startServer({ dataDir, keys, port, env })
  client = clientOf(server)
  const after = await ask(key)
  t.equal(after.status, 200, after.text)
  const apartMs = Math.abs(Date.parse(after.body.requestedAt) - Date.parse(before.body.requestedAt))
  t.ok(apartMs < 30_000, `${apartMs} ms apart`)
  t.equal((await ask(keys.secret)).status, 404, 'another environment knows nothing of it')
  const done = await eventually(
    () => ask(key),
    (answer) => answer.body.status === 'done',
    240_000,
  )
  t.match(done.body, { erasureId: body.erasureId, status: 'done' })
  t.equal((await client.get(path, key)).status, 404)
  t.equal(await server.stop(), 0)
})
