// An owner that freezes at the worst moments for longer than its lease, while another one takes over and a visitor is erased:
// nothing is lost, doubled, contradicted or resurrected when it goes on.

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { browserBody, CHROME, clientOf } from '../helpers/client.ts'
import { startCluster } from '../helpers/cluster.ts'
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
/** Longer than a lease lives. */
const FROZEN_MS = 6_000

t.setTimeout(600_000)
t.teardown(cleanUp)

t.test('an owner frozen for longer than its lease does no harm when it goes on', async (t) => {
  const seed = testSeed()
  t.comment(`seed ${seed}`)
  const folder = temporaryFolder()
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
  const load = openLoad({ random: rng(seed), ledger, keys, url: front.url, connections: 12 })
  t.teardown(() => load.close())
  await createRules(load, { url: front.url, keys })

  /** A visitor of the test environment, which the ledger knows nothing of. */
  async function makeVisitor(name: string) {
    const device = browserBody(`GPU of ${name}`)
    Object.assign(device.components, { fonts: { value: [name] } })
    const { body } = await client.identify({ ...device, userAgent: CHROME }, { key: keys.testSecret })
    return { device, ...(body as { visitorId: string; requestId: string; storageToken: string }) }
  }

  const erased: { visitorId: string; requestId: string }[] = []
  let round = 0
  for (const [moment, needle] of Object.entries(MOMENTS)) {
    for (const [n, engine] of engines.entries()) {
      const visitors = await Promise.all(Array.from({ length: 6 }, (_, i) => makeVisitor(`${moment} ${n} ${i}`)))
      const stopped = new AbortController()
      const running = load.run(stopped.signal)
      await pause(1_000)
      writeFileSync(fileOf(n), needle)
      await until(`${moment}: frozen`, 60_000, () => stateOf(engine.server.pid) === 'T')
      const thawed = pause(FROZEN_MS).then(() => process.kill(engine.server.pid, 'SIGCONT'))
      // Some belong to partitions of the frozen owner: their erasure waits for the one that takes over.
      const answers = await Promise.all(
        visitors.map(({ visitorId }) => client.send('DELETE', `/v1/visitors/${visitorId}`, { key: keys.testSecret })),
      )
      await thawed
      for (const [i, { status }] of answers.entries()) {
        if (status === 200) erased.push(visitors[i] as (typeof visitors)[number])
        else t.equal(status, 503, `${moment}: an erasure is carried out or refused`)
      }
      await pause(500)
      for (const { device, storageToken, visitorId } of visitors.filter((_, i) => answers[i]?.status === 200)) {
        const { body } = await client.identify({ ...device, storageToken, userAgent: CHROME }, { key: keys.testSecret })
        t.not(body.visitorId, visitorId, `${moment}: its token does not bring it back`)
      }
      stopped.abort()
      await running
      ledger.nextEpoch()
      await load.settle(90_000)
      round++
      t.equal(ledger.violation(), null, `${moment}, engine ${n + 1}`)
    }
  }
  t.equal(round, 6)
  t.ok(erased.length >= 18, `${erased.length} erasures were carried out`)

  await quiet(
    load,
    cluster.members.map(({ server }) => server),
    cluster.partitions,
  )
  const to = { agent: load.agent, url: front.url, secret: keys.secret, ledger }
  const answered = ledger.attempts.filter(({ answer }) => answer !== null)
  t.comment(`${answered.length} acknowledged, ${erased.length} erased`)
  t.equal(await checkById(to, answered.slice(-300)), null)
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
