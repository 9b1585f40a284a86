// Secrets that cannot be opened: the process says so and serves nothing, until the key is back or they are given up.

import { existsSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { browserBody, CHROME, clientOf, eventually } from '../helpers/client.ts'
import { filesOf } from '../helpers/folder.ts'
import { freePort } from '../helpers/port.ts'
import { cleanUp, type Server, startServer, temporaryFolder } from '../helpers/server.ts'

t.setTimeout(400_000)
t.teardown(cleanUp)
const HOOK = { url: 'https://hooks.example/one', events: ['*'] }

async function readiness({ url }: Pick<Server, 'url'>) {
  const response = await fetch(`${url}/readyz`)
  return {
    status: response.status,
    body: (await response.json()) as { failing: string[]; checks: { secrets: string } },
  }
}

async function unreadable({ url }: Pick<Server, 'url'>): Promise<number> {
  const text = await (await fetch(`${url}/metrics`)).text()
  return Number(/^fingerpost_secrets_unreadable (\d+)$/m.exec(text)?.[1] ?? -1)
}

async function isClosed(t: Test, server: Server, said: RegExp): Promise<void> {
  const { status, body } = await readiness(server)
  t.equal(status, 503)
  t.same(body.failing, ['secrets'])
  t.match(body.checks.secrets, said)
  t.equal((await fetch(`${server.url}/healthz`)).status, 200)
  t.ok((await unreadable(server)) > 0, 'a metric counts them')
  for (const [method, path] of [
    ['POST', '/v1/identify'],
    ['GET', '/v1/webhooks'],
  ] as const) {
    const headers = { Authorization: `Bearer ${server.keys.secret}`, 'Content-Type': 'application/json' }
    const refused = await fetch(server.url + path, { method, headers, ...(method === 'POST' ? { body: '{}' } : {}) })
    t.equal(refused.status, 503, path)
    t.match(await refused.json(), { error: { code: 'unavailable' } })
  }
}

const visit = async (server: Server, storageToken?: string) => {
  const body = { ...browserBody('A GPU'), userAgent: CHROME, ...(storageToken === undefined ? {} : { storageToken }) }
  const { status, body: event } = await clientOf(server).identify(body)
  if (status !== 200) throw new Error(`identify answers ${status}`)
  return event
}

/** Every byte below the folder, but not those of ClickHouse. */
const bytesIn = (dir: string): Buffer =>
  Buffer.concat(
    Array.from(filesOf(dir), ({ path, bytes }) => (path.startsWith(join(dir, 'clickhouse')) ? Buffer.alloc(0) : bytes)),
  )

t.test('without its master key a deployment is not ready, and goes on where it was when the key is back', async (t) => {
  const dataDir = join(temporaryFolder(), 'data')
  const key = join(dataDir, 'master.key')
  const first = await startServer({ dataDir })
  const { storageToken, visitorId } = await visit(first)
  t.notOk(
    /tokenSecret.{0,4}[0-9A-Za-z]{40}/s.test(bytesIn(dataDir).toString('latin1')),
    'no token secret lies in clear',
  )
  await first.stop()
  renameSync(key, `${dataDir}.key`)
  const options = { dataDir, keys: first.keys, until: '/healthz' } as const
  const closed = await startServer(options)
  await isClosed(t, closed, /master key .* is missing/)
  t.notOk(existsSync(key), 'no other key is made')
  t.equal(await closed.stop(), 0)
  const adminPort = await freePort()
  const apart = await startServer({ ...options, env: { FINGERPOST_HTTP_ADMIN_PORT: String(adminPort) } })
  const bare = await fetch(`${apart.url}/readyz`)
  t.equal(bare.status, 503)
  t.same(await bare.json(), { status: 'unavailable' }, 'with a port for operators the other one tells no details')
  t.equal((await fetch(`${apart.url}/metrics`)).status, 503)
  await isClosed(t, { ...apart, url: `http://127.0.0.1:${adminPort}` }, /master key .* is missing/)
  t.equal(await apart.stop(), 0)
  renameSync(`${dataDir}.key`, key)
  const back = await startServer({ dataDir, keys: first.keys })
  t.equal((await visit(back, storageToken)).visitorId, visitorId)
  t.equal(await unreadable(back), 0)
  await back.stop()
})

t.test('secrets that are given up: tokens count as none, webhooks wait for a new secret, and it lasts', async (t) => {
  const dataDir = join(temporaryFolder(), 'data')
  const first = await startServer({ dataDir })
  const { keys } = first
  const { storageToken } = await visit(first)
  const { body: hook } = await clientOf(first).send('POST', '/v1/webhooks', { key: keys.secret, body: HOOK })
  t.match(hook, { id: String })
  await first.stop()
  rmSync(join(dataDir, 'master.key'))
  const accepted = await startServer({ dataDir, keys, args: ['--accept-lost-secrets'] })
  const event = await visit(accepted, storageToken)
  t.notMatch(JSON.stringify(event), /token_forged/, 'none, not forged')
  const read = async (server: Server) =>
    (await clientOf(server).send('GET', `/v1/webhooks/${hook.id}`, { key: keys.secret })).body
  t.match(await read(accepted), { status: 'disabled', disabledReason: 'secret_lost' })
  await accepted.stop()

  const later = await startServer({ dataDir, keys })
  t.equal(await unreadable(later), 1, 'still counted')
  t.equal((await visit(later, event.storageToken)).visitorId, event.visitorId)
  const client = clientOf(later)
  const rotated = await client.send('POST', `/v1/webhooks/${hook.id}/rotate-secret`, { key: keys.secret, body: {} })
  t.equal(rotated.status, 200)
  t.equal(
    (await client.send('PUT', `/v1/webhooks/${hook.id}`, { key: keys.secret, body: { enabled: true } })).status,
    200,
  )
  t.match(
    await eventually(
      () => read(later),
      ({ status }) => status === 'active',
    ),
    { disabledReason: null },
  )
  await later.stop()
  const last = await startServer({ dataDir, keys })
  t.equal(await unreadable(last), 0)
  t.match(await read(last), { status: 'active' })
  await last.stop()
})
