// Visitors nobody saw for `retention.visitorsDays` against a real server: who is forgotten, who is not, and who comes back.

import t from 'tap'
import { CHROME, clientOf, eventually } from '../helpers/client.ts'
import { deviceOf } from '../helpers/devices.ts'
import { cleanUp, startServer, temporaryFolder } from '../helpers/server.ts'

t.teardown(cleanUp)

const DAY_MS = 86_400_000

t.test('a visitor has its time, unless it is on a list or labelled, and its token revives it', async (t) => {
  const dataDir = temporaryFolder()
  let server = await startServer({ dataDir })
  let client = clientOf(server)
  const { keys, port } = server
  const key = keys.testSecret
  async function visit(device: number, daysAgo: number, storageToken: string | null = null) {
    const page = deviceOf(device)
    const at = new Date(Date.now() - daysAgo * DAY_MS).toISOString()
    const body = { ...page, userAgent: CHROME, storageToken, mock: { ...page.mock, at } }
    const answer = await client.identify(body, { key })
    t.equal(answer.status, 200)
    return answer.body as { readonly visitorId: string; readonly storageToken: string; readonly requestId: string }
  }
  const seen = async ({ visitorId }: { readonly visitorId: string }) =>
    (await client.get(`/v1/visitors/${visitorId}`, key)).status
  const [old, listed, labelled] = [await visit(1, 10), await visit(2, 10), await visit(3, 10)]
  const recent = await visit(4, 4)
  // One visitor whom nobody saw, one whose other half was seen, and one that was taken apart.
  const [gone, joined, alive, half] = [
    await visit(31, 10),
    await visit(32, 11),
    await visit(33, 10),
    await visit(34, 3),
  ]
  const parted = [await visit(35, 11)]
  parted.push(await visit(35, 10, parted[0]?.storageToken))
  const merge = (one: { visitorId: string }, other: { visitorId: string }) =>
    client.send('POST', `/v1/visitors/${one.visitorId}/merge`, { key, body: { visitorId: other.visitorId } })
  t.same([(await merge(gone, joined)).status, (await merge(alive, half)).status], [200, 200])
  const visits = { key, body: { requestIds: [parted[1]?.requestId] } }
  const split = () => client.send('POST', `/v1/visitors/${parted[0]?.visitorId}/split`, visits)
  const { body: apart } = await eventually(split, ({ status }) => status < 300)
  const list = await client.send('POST', '/v1/lists', { key, body: { name: 'watched', type: 'visitor' } })
  const entries = { key, body: { add: [listed.visitorId] } }
  t.equal((await client.send('PATCH', `/v1/lists/${list.body.id}/entries`, entries)).status, 200)
  const label = () => client.send('PATCH', `/v1/events/${labelled.requestId}`, { key, body: { label: 'legitimate' } })
  t.equal((await eventually(label, ({ status }) => status === 200)).status, 200)
  t.same(
    await Promise.all([old, listed, labelled, recent].map(seen)),
    [200, 200, 200, 200],
    'events are kept for longer',
  )
  t.equal(await server.stop(), 0)

  const env = { FINGERPOST_RETENTION_VISITORS_DAYS: '5', FINGERPOST_PURGE_EVERY_SECONDS: '1' }
  server = await startServer({ dataDir, keys, port, env })
  client = clientOf(server)
  const isGone = (status: number) => status === 404
  await eventually(() => seen(old), isGone)
  // Of every partition: a sweep takes them one after the other.
  for (let device = 5; device < 9; device++) {
    const another = await visit(device, 10)
    await eventually(() => seen(another), isGone)
  }
  for (const one of [gone, joined, ...parted, apart]) await eventually(() => seen(one), isGone)
  t.same(await Promise.all([listed, labelled, recent, alive, half].map(seen)), [200, 200, 200, 200, 200])
  t.equal((await client.get(`/v1/visitors/${alive.visitorId}`, key)).body.totalVisits, 2, 'all of it')
  t.equal((await visit(32, 0, joined.storageToken)).visitorId, gone.visitorId, 'who was merged stays merged')
  t.equal((await visit(20, 0, old.storageToken)).visitorId, old.visitorId, 'a genuine token revives the id')
  t.equal((await client.send('DELETE', `/v1/visitors/${old.visitorId}`, { key })).status, 200)
  t.not((await visit(20, 0, old.storageToken)).visitorId, old.visitorId, 'of an erased one never')
})
