// A service that is killed after a receiver has the request and before it knows the answer: nothing is lost, and what comes twice
// is the same to the byte.

import t from 'tap'
import { browserBody, CHROME, clientOf, eventually } from '../helpers/client.ts'
import { answer, makeAuthority, openReceiver } from '../helpers/receiver.ts'
import { cleanUp, type Server, startServer } from '../helpers/server.ts'

t.teardown(cleanUp)
t.setTimeout(400_000)

const VISITS = 40
const KILLS = [7, 25]

t.test(
  'killed between POST and the state that tells of it, every event still arrives, and repeats are identical',
  async (t) => {
    const authority = makeAuthority(t)
    const receiver = await openReceiver(t, authority.leaf('DNS:localhost'))
    const env = {
      FINGERPOST_WEBHOOKS_ALLOW_PRIVATE_CIDRS: '127.0.0.0/8',
      FINGERPOST_WEBHOOKS_EXTRA_CA_FILE: authority.caFile,
    }
    let server: Server = await startServer({ env })
    const { dataDir, keys, port } = server
    const url = `https://localhost:${receiver.port}/hook`
    const body = { url, events: ['identification.complete'] }
    const { id } = (await clientOf(server).send('POST', '/v1/webhooks', { body })).body

    let dying: Promise<void> | null = null
    receiver.behave = (request, response, sent) => {
      if (!KILLS.includes(receiver.hits.length)) return answer(200)(request, response, sent)
      // The request is here, the answer never comes.
      dying = server.kill9()
    }
    async function back(): Promise<void> {
      if (dying === null) return
      await dying
      dying = null
      server = await startServer({ env, dataDir, keys, port })
    }
    const accepted: string[] = []
    for (let n = 0; n < VISITS; n++) {
      const visit = () =>
        clientOf(server).identify({ ...browserBody(`GPU ${n}`), userAgent: CHROME, nonce: `visit-number-${n}-x` })
      const done = await visit().catch(async () => {
        await eventually(
          async () => dying,
          (at) => at !== null,
        )
        await back()
        return visit()
      })
      t.equal(done.status, 200, done.text)
      accepted.push(done.body.requestId)
      await back()
    }
    const requestOf = (text: string) => JSON.parse(text).data.requestId as string
    await eventually(
      async () => {
        await back()
        return new Set(receiver.hits.map((hit) => requestOf(hit.body)))
      },
      (arrived) => accepted.every((requestId) => arrived.has(requestId)),
      120_000,
    )
    const bodies = new Map<string, Set<string>>()
    for (const hit of receiver.hits) {
      const requestId = requestOf(hit.body)
      bodies.set(requestId, (bodies.get(requestId) ?? new Set()).add(hit.body))
      const { eventId, idempotencyKey } = JSON.parse(hit.body)
      t.equal(idempotencyKey, eventId.replace('evt_', 'ik_'))
      t.equal(hit.headers['x-service-delivery'], eventId)
    }
    for (const requestId of accepted)
      t.equal(bodies.get(requestId)?.size, 1, `${requestId} arrived, always with the same bytes`)
    const twice = receiver.hits.length - bodies.size
    t.ok(twice >= KILLS.length && twice <= KILLS.length * 32, `${twice} came twice`)
    const listed = await eventually(
      () => clientOf(server).get(`/v1/webhooks/${id}/deliveries?status=delivered&limit=100`),
      ({ body: page }) => page.data.length === VISITS,
    )
    t.equal(listed.body.data.length, VISITS, 'each is known to be delivered, once')
  },
)
