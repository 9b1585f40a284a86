// A service that is killed after a receiver has the request and before it knows the answer, while visits come from several
// sides: nothing is lost, and what comes twice is the same to the byte. webhooks-load.long.test.ts kills at random moments.

import t from 'tap'
import { browserBody, CHROME, clientOf, eventually } from '../helpers/client.ts'
import { sized } from '../helpers/depth.ts'
import { answer, type Hit, makeAuthority, openReceiver } from '../helpers/receiver.ts'
import { cleanUp, type Server, startServer } from '../helpers/server.ts'

t.teardown(cleanUp)
t.setTimeout(400_000)

const VISITS = sized({ usual: 24, long: 80 })
const AT_ONCE = 4
/** How many requests the receiver has when the service dies. */
const KILLS = sized({ usual: [15], long: [7, 60, 100] })
const SHAPES = [{ events: ['identification'] }, { events: ['identification.complete'] }]
/** What may be under way towards one receiver when the service dies. */
const IN_FLIGHT_MAX = 32

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
    const ids: string[] = []
    for (const [n, events] of SHAPES.entries()) {
      const body = { url: `https://localhost:${receiver.port}/hook/${n}`, ...events }
      ids.push((await clientOf(server).send('POST', '/v1/webhooks', { body })).body.id)
    }

    let lives = 1
    let restarted: Promise<void> = Promise.resolve()
    receiver.behave = (request, response, sent) => {
      if (receiver.hits.length !== KILLS[lives - 1]) return answer(200)(request, response, sent)
      // The request is here, the answer never comes.
      lives += 1
      restarted = server.kill9().then(async () => {
        server = await startServer({ env, dataDir, keys, port })
      })
    }
    const accepted: string[] = []
    let begun = 0
    async function visitor(): Promise<void> {
      for (let n = begun++; n < VISITS; n = begun++) {
        const body = { ...browserBody(`GPU ${n}`), userAgent: CHROME, nonce: `visit-number-${n}-x` }
        // The same nonce again: what was accepted before a kill is answered as it was.
        const done = await eventually(
          async () => {
            await restarted
            return clientOf(server)
              .identify(body)
              .catch(() => null)
          },
          (given) => given?.status === 200,
          120_000,
        )
        accepted.push(done?.body.requestId)
      }
    }
    await Promise.all(Array.from({ length: AT_ONCE }, visitor))

    const requestOf = (text: string): string => JSON.parse(text).data.requestId
    const wanted = [...SHAPES.keys()].flatMap((n) => accepted.map((requestId) => `/hook/${n} ${requestId}`))
    const told = await eventually(
      async () => {
        const byName = new Map<string, Hit[]>()
        for (const hit of receiver.hits) {
          const name = `${hit.path} ${requestOf(hit.body)}`
          byName.set(name, [...(byName.get(name) ?? []), hit])
        }
        return byName
      },
      (arrived) => wanted.every((name) => arrived.has(name)),
      120_000,
    )
    await restarted
    t.equal(lives, KILLS.length + 1, 'it was killed each time')
    t.same([...told.keys()].sort(), wanted.sort(), 'everything arrived, and nothing of anything else')
    const unlike = [...told].filter(
      ([, hits]) =>
        new Set(hits.map(({ body }) => body)).size > 1 ||
        new Set(hits.map(({ headers }) => headers['x-service-delivery'])).size > 1,
    )
    t.same(unlike, [], 'one id and one body each')
    const full = receiver.hits.filter(({ path }) => path === '/hook/1')
    const misnamed = full.filter(({ body, headers }) => {
      const { eventId, idempotencyKey } = JSON.parse(body)
      return idempotencyKey !== eventId.replace('evt_', 'ik_') || headers['x-service-delivery'] !== eventId
    })
    t.same(misnamed, [])
    const twice = receiver.hits.length - told.size
    t.ok(
      twice >= KILLS.length && twice <= KILLS.length * SHAPES.length * IN_FLIGHT_MAX,
      `${twice} came twice, for ${KILLS.length} kills`,
    )
    for (const id of ids) {
      const listed = await eventually(
        () => clientOf(server).get(`/v1/webhooks/${id}/deliveries?status=delivered&limit=100`),
        ({ body: page }) => page.data.length === VISITS,
      )
      t.equal(listed.body.data.length, VISITS, 'each is known to be delivered, once')
    }
  },
)
