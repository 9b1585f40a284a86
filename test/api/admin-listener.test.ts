// The operator's API on a port of its own: there, and nowhere else.

import t from 'tap'
import { freePort } from '../helpers/port.ts'
import { cleanUp, startServer } from '../helpers/server.ts'

t.teardown(cleanUp)

t.test('with a port of its own the operator’s API is served there alone', async (t) => {
  const port = await freePort()
  const server = await startServer({ env: { FINGERPOST_ADMIN_PORT: String(port) } })
  const apart = `http://127.0.0.1:${port}`
  const ask = async (origin: string, path: string, key: string) => {
    const response = await fetch(origin + path, { headers: { Authorization: `Bearer ${key}` } })
    return { status: response.status, body: (await response.json()) as { total?: number; error?: { code: string } } }
  }
  const path = '/admin/v1/workspaces'
  t.match(await ask(apart, path, server.operatorToken), { status: 200, body: { total: 1 } })
  t.match(await ask(apart, path, server.keys.secret), { status: 403 })
  t.match(await ask(server.url, path, server.operatorToken), {
    status: 404,
    body: { error: { code: 'route_not_found' } },
  })
  t.match(await ask(apart, '/v1/meta', server.keys.secret), { status: 200 }, 'the console reads the API there')
  t.equal((await fetch(`${apart}/console/api/state`)).status, 200)
  t.equal((await fetch(`${server.url}/console/api/state`)).status, 404, 'people sign in there alone')
  t.match(await ask(server.url, '/v1/meta', server.keys.secret), { status: 200 })
  const plain = async (origin: string, at: string) => {
    const response = await fetch(origin + at)
    return { status: response.status, text: await response.text() }
  }
  t.match(await plain(apart, '/metrics'), { status: 200, text: /fingerpost_/ })
  t.equal((await plain(server.url, '/metrics')).status, 404, 'figures are served there alone')
  t.match(JSON.parse((await plain(apart, '/readyz')).text), { status: 'ready', checks: {}, roles: [] })
  t.match(await plain(server.url, '/readyz'), { status: 200, text: '{"status":"ready"}' }, 'ready or not, and no more')
  t.equal((await plain(server.url, '/healthz')).status, 200)
  t.equal(await server.stop(), 0)
  await t.rejects(fetch(apart + path), 'it ends with the process')
})
