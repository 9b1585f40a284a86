// An owner that freezes at the worst moments for longer than its lease, while another one takes over and a visitor is erased:
// nothing is lost, doubled, contradicted or resurrected when it goes on.

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { browserBody, CHROME, clientOf, eventually } from '../helpers/client.ts'
import { type Member, startCluster } from '../helpers/cluster.ts'
import { sized } from '../helpers/depth.ts'
import { pause, stateOf, until } from '../helpers/processes.ts'
import { rng, testSeed } from '../helpers/rng.ts'
import { cleanUp, temporaryFolder } from '../helpers/server.ts'
import { checkAll, checkById } from './checker.ts'
import { openLedger } from './ledger.ts'
import { openLoad } from './load.ts'
import { createRules, quiet } from './quiet.ts'

/** What the process is about to send when it freezes. */
const MOMENTS = {
  'between decide and append': '.log.events.',
  'between append and checkpoint': 'decidedTo',
  'between the mark and the insert': 'INSERT+INTO+events',
} as const
/** At the least; an owner stays frozen until another one has all that it had. */
const FROZEN_MS = sized({ usual: 0, long: 6_000 })
const TAKE_OVER_MS_MAX = 120_000
/** Of these an owner freezes at each moment: the two in turn, or both. */
const EACH = sized({ usual: false, long: true })
const SIZE = sized({
  usual: { visitors: 4, connections: 4, thinkMs: 30, byIdMax: 100 },
  long: { visitors: 6, connections: 12, thinkMs: 0, byIdMax: 300 },
})

/** Before an owner freezes. */
const ANSWERS_MIN = 40
/** Of each device when its owner goes on. */
const VISITS = 4

/** Partitions that an engine says it holds. */
async function held({ url }: Member): Promise<number> {
  const text = await (await fetch(`${url}/metrics`)).text()
  return Number(/^fingerpost_engine_partitions_held (\d+)/m.exec(text)?.[1] ?? Number.NaN)
}

t.setTimeout(600_000)
t.teardown(cleanUp)

t.test('an owner frozen for longer than its lease does no harm when it goes on', async (t) => {
  const seed = testSeed()
  t.comment(`seed ${seed}`)
  const folder = temporaryFolder()
  const { connections, thinkMs } = SIZE
  const fileOf = (n: number) => join(folder, `pause-${n}`)
  const cluster = await startCluster({
    roles: ['ingress,api,jobs'],
    partitions: 4,
    env: { FINGERPOST_DECISION_WAIT_MS: '25000' },
  })
  t.teardown(() => cluster.stop())
  const nodeArgs = ['--import', new URL('./pause-hook.js', import.meta.url).href]
  const engines = [
    await cluster.add('engine', { nodeArgs, env: { PAUSE_FILE: fileOf(0) } }),
    await cluster.add('engine', { nodeArgs, env: { PAUSE_FILE: fileOf(1) } }),
  ]
  const [front] = cluster.membersOf('ingress')
  if (front === undefined) throw new Error('no ingress')
  const client = clientOf(front.server)
  const { keys } = cluster
  const ledger = openLedger()
  const load = openLoad({ random: rng(seed), ledger, keys, url: front.url, connections, habits: { thinkMs } })
  t.teardown(() => load.close())
  await createRules(load, { url: front.url, keys })

  /** A visitor of the test environment, which the ledger knows nothing of. */
  async function makeVisitor(name: string) {
    const device = browserBody(`GPU of ${name}`)
    Object.assign(device.components, { fonts: { value: [name] } })
    const { body } = await client.identify({ ...device, userAgent: CHROME }, { key: keys.testSecret })
    const { visitorId, requestId, storageToken } = body as {
      visitorId: string
      requestId: string
      storageToken: string
    }
    return { device, visitorId, requestId, storageToken }
  }

  const erased: { visitorId: string; requestId: string }[] = []
  let round = 0
  for (const [at, [moment, needle]] of Object.entries(MOMENTS).entries()) {
    for (const [n, engine] of engines.entries()) {
      if (!EACH && n !== at % engines.length) continue
      const other = engines[1 - n] as Member
      const visitors = await Promise.all(
        Array.from({ length: SIZE.visitors }, (_, i) => makeVisitor(`${moment} ${n} ${i}`)),
      )
      const stopped = new AbortController()
      const running = load.run(stopped.signal)
      const answered = ledger.counts.answered + ANSWERS_MIN
      await until('a load', 60_000, () => ledger.counts.answered >= answered)
      writeFileSync(fileOf(n), needle)
      await until(`${moment}: frozen`, 60_000, () => stateOf(engine.server.pid) === 'T')
      const takenOver = async () => (await held(other)) === cluster.partitions
      const thawed = Promise.all([pause(FROZEN_MS), until('a take-over', TAKE_OVER_MS_MAX, takenOver)]).then(() =>
        process.kill(engine.server.pid, 'SIGCONT'),
      )
      // Some belong to partitions of the frozen owner: their erasure waits for the one that takes over.
      // One that is refused for now is asked for again, and had no effect or all of it.
      const erase = async ({ visitorId }: { readonly visitorId: string }) => {
        const asked: number[] = []
        await eventually(
          async () => {
            const { status } = await client.send('DELETE', `/v1/visitors/${visitorId}`, { key: keys.testSecret })
            asked.push(status)
            return status
          },
          (status) => status !== 503,
          TAKE_OVER_MS_MAX,
        )
        return asked
      }
      const answers = await Promise.all(visitors.map(erase))
      await thawed
      const isDone = (asked: readonly number[]) => asked.at(-1) === 200 || (asked.length > 1 && asked.at(-1) === 404)
      t.same(
        answers.filter((asked) => !isDone(asked)),
        [],
        `${moment}: an erasure is carried out, at once or later`,
      )
      erased.push(...visitors)
      const visit = async (device: object, storageToken: string) => {
        const answer = await client.identify({ ...device, storageToken, userAgent: CHROME }, { key: keys.testSecret })
        t.equal(answer.status, 200, `${moment}: a visit is answered`)
        return answer.body as { visitorId: string; storageToken: string }
      }
      for (const { device, storageToken, visitorId } of visitors) {
        const made = await visit(device, storageToken)
        t.not(made.visitorId, visitorId, `${moment}: its token does not bring it back`)
        // Whoever goes on says that it has stored all it decided before it hears that it owns nothing.
        for (let visits = 2; visits <= VISITS; visits++) {
          await visit(device, made.storageToken)
          const { body } = await client.get(`/v1/visitors/${made.visitorId}`, keys.testSecret)
          t.equal(body.totalVisits, visits, `${moment}: each visit is read once it was answered`)
        }
      }
      stopped.abort()
      await running
      ledger.nextEpoch()
      await load.settle(90_000)
      round++
      t.equal(ledger.violation(), null, `${moment}, engine ${n + 1}`)
    }
  }
  t.equal(round, Object.keys(MOMENTS).length * (EACH ? engines.length : 1))

  await quiet(
    load,
    cluster.members.map(({ server }) => server),
    cluster.partitions,
  )
  const to = { agent: load.agent, url: front.url, secret: keys.secret, ledger }
  const answered = ledger.attempts.filter(({ answer }) => answer !== null)
  t.comment(`${answered.length} acknowledged, ${erased.length} erased`)
  t.equal(await checkById(to, answered.slice(-SIZE.byIdMax)), null)
  const { violation, listed } = await checkAll(to)
  t.equal(violation, null)
  t.equal(listed, ledger.attempts.filter(({ answer }) => answer !== null).length)
  for (const { visitorId, requestId } of erased) {
    const { status } = await client.get(`/v1/events/${requestId}`, keys.testSecret)
    const { body } = await client.get(`/v1/events?visitorId=${visitorId}`, keys.testSecret)
    if (status !== 404 || body.data.length > 0) t.fail(`${visitorId} is back: ${status}, ${body.data.length} listed`)
  }
  t.equal((await client.get(`/v1/visitors/${erased[0]?.visitorId}`, keys.testSecret)).status, 404)
})
