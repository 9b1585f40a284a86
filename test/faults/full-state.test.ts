// A server whose state has reached its cap refuses before it accepts, says which store it is, and goes on when the cap is raised.

import t from 'tap'
import { CHROME, clientOf, eventually } from '../helpers/client.ts'
import { withOps } from '../helpers/deployment.ts'
import { cleanUp, startServer, temporaryFolder } from '../helpers/server.ts'

t.teardown(cleanUp)

const dataDir = temporaryFolder()
const CAP = '2000000'

t.test('a full state refuses identifications with 503, and nothing that was accepted is lost', async (t) => {
  let server = await startServer({ dataDir })
  const { keys, port } = server
  const key = keys.secret
  const accepted = await clientOf(server).identify({ userAgent: CHROME }, { key })
  t.equal(accepted.status, 200)
  t.equal(await server.stop(), 0)
  const put = [1, 2, 3].map((n) => ({ key: ['padding', String(n)] as const, value: new Uint8Array(900_000) }))
  await withOps(dataDir, async ({ kv }) => {
    for (const one of put) await kv.commit([{ scope: 'system', put: [one] }])
  })

  server = await startServer({ dataDir, keys, port, env: { FINGERPOST_KV_BYTES_MAX: CAP }, until: '/healthz' })
  const client = clientOf(server)
  const refused = await client.identify({ userAgent: CHROME }, { key })
  t.equal(refused.status, 503, refused.text)
  t.match(refused.body, { error: { code: 'unavailable' } })
  const ready = await client.get('/readyz')
  t.match(ready.body, { failing: ['kv'], checks: { kv: /no room/, log: null } })
  t.match((await client.get('/metrics')).text, /^fingerpost_kv_bytes [2-9]\d{6}$/m)
  t.equal((await client.get(`/v1/events/${accepted.body.requestId}`, key)).status, 200, 'reads go on')
  t.equal(await server.stop(), 0)

  server = await startServer({ dataDir, keys, port })
  const again = await eventually(
    () => clientOf(server).identify({ userAgent: CHROME }, { key }),
    ({ status }) => status === 200,
  )
  t.equal(again.status, 200)
})
