// A service that is killed at random moments while visits come from many sides: whatever was accepted is told to each subscription
// at least once, always under the same id with the same bytes, and hardly anything twice that no kill explains. The short form is
// webhooks-kill.test.ts.

import t from 'tap'
import { browserBody, CHROME, clientOf, eventually } from '../helpers/client.ts'
import { answer, makeAuthority, openReceiver } from '../helpers/receiver.ts'
import { rng, testSeed } from '../helpers/rng.ts'
import { cleanUp, type Server, startServer } from '../helpers/server.ts'

t.teardown(cleanUp)
t.setTimeout(600_000)

const SEED = testSeed()
const VISITS = 240
const AT_ONCE = 8
const KILLS = 3
/** What may be under way towards one receiver when the service dies. */
const IN_FLIGHT_MAX = 32

t.test(`killed ${KILLS} times under load, nothing is lost (seed ${SEED})`, async (t) => {
  const random = rng(SEED)
  const authority = makeAuthority(t)
  const receiver = await openReceiver(t, authority.leaf('DNS:localhost'))
  receiver.behave = answer(200)
  const env = {
    FINGERPOST_WEBHOOKS_ALLOW_PRIVATE_CIDRS: '127.0.0.0/8',
    FINGERPOST_WEBHOOKS_EXTRA_CA_FILE: authority.caFile,
  }
  let server: Server = await startServer({ env })
  const { dataDir, keys, port } = server
  const shapes = [{ events: ['identification'] }, { events: ['identification.complete'] }]
  for (const [n, body] of shapes.entries()) {
    const url = `https://localhost:${receiver.port}/hook/${n}`
    t.equal((await clientOf(server).send('POST', '/v1/webhooks', { body: { url, ...body } })).status, 201)
  }

  let accepted = 0
  let begun = 0
  const requestIds: string[] = []
  async function visitor(): Promise<void> {
    for (let n = begun++; n < VISITS; n = begun++) {
      const body = { ...browserBody(`GPU ${n}`), userAgent: CHROME, nonce: `visit-number-${n}-of-${SEED}` }
      for (;;) {
        // The same nonce again: what was accepted before a kill is answered as it was.
        const done = await clientOf(server)
          .identify(body)
          .catch(() => null)
        if (done?.status === 200) {
          requestIds.push(done.body.requestId)
          break
        }
        await new Promise((resolve) => setTimeout(resolve, 100))
      }
      accepted += 1
    }
  }
  async function killer(): Promise<void> {
    for (let kill = 1; kill <= KILLS; kill++) {
      const at = Math.floor(((kill - random.float() / 2) / (KILLS + 1)) * VISITS)
      await eventually(
        async () => accepted,
        (count) => count >= at,
        120_000,
      )
      await new Promise((resolve) => setTimeout(resolve, random.int(60)))
      await server.kill9()
      server = await startServer({ env, dataDir, keys, port })
    }
  }
  await Promise.all([killer(), ...Array.from({ length: AT_ONCE }, visitor)])
  t.equal(requestIds.length, VISITS)

  const requestOf = (text: string) => JSON.parse(text).data.requestId as string
  const arrivedAt = (n: number) =>
    new Set(receiver.hits.filter(({ path }) => path === `/hook/${n}`).map(({ body }) => requestOf(body)))
  for (const n of shapes.keys()) {
    const arrived = await eventually(
      async () => arrivedAt(n),
      (some) => requestIds.every((id) => some.has(id)),
      120_000,
    )
    t.same(
      requestIds.filter((id) => !arrived.has(id)),
      [],
      `all arrived at subscription ${n}`,
    )
  }
  const told = new Map<string, { readonly ids: Set<string>; readonly bodies: Set<string>; count: number }>()
  for (const { path, headers, body } of receiver.hits) {
    const name = `${path} ${requestOf(body)}`
    const one = told.get(name) ?? { ids: new Set(), bodies: new Set(), count: 0 }
    one.ids.add(String(headers['x-service-delivery']))
    one.bodies.add(body)
    one.count += 1
    told.set(name, one)
  }
  t.ok(
    [...told.values()].every(({ ids, bodies }) => ids.size === 1 && bodies.size === 1),
    'one id and one body each',
  )
  const twice = receiver.hits.length - told.size
  t.comment(`${receiver.hits.length} deliveries of ${told.size}, ${twice} came again`)
  const unexplained = Math.max(0, twice - KILLS * shapes.length * IN_FLIGHT_MAX)
  t.ok(unexplained <= told.size / 100, `${unexplained} came again without a reason`)
})
