// Velocity in a cluster: what engines count in processes of their own adds up in all of them, also when one dies.

import t from 'tap'
import { browserBody, CHROME, clientOf, eventually } from '../api/client.ts'
import { pause } from '../faults/processes.ts'
import { type Member, startCluster } from '../helpers/cluster.ts'
import { cleanUp } from '../helpers/server.ts'

t.setTimeout(180_000)
t.teardown(cleanUp)

const cluster = await startCluster({ roles: ['ingress,api', 'engine', 'engine,jobs'], partitions: 4 })
t.teardown(() => cluster.stop())
const [ingress] = cluster.membersOf('ingress').map(({ server }) => clientOf(server)) as [ReturnType<typeof clientOf>]
const ip = '198.51.100.7'
/** Longer than news take from one engine to another, also when a message is lost. */
const NEWS_MS = 2_000

interface Velocity {
  readonly ip: {
    readonly events: Readonly<Record<string, number>>
    readonly visitors: Readonly<Record<string, number>>
  }
  readonly linkedId: { readonly visitors: Readonly<Record<string, number>> }
}
interface Visited {
  readonly visitorId: string
  readonly storageToken: string
  readonly velocity: Velocity
}

let made = 0
/** Another device each time, so that all partitions are asked. */
async function visit(more: object = {}): Promise<Visited> {
  const nonce = `nonce-of-a-visit-${String(++made).padStart(8, '0')}`
  const body = { ...browserBody(`GPU ${made}`), userAgent: CHROME, ip, linkedId: 'someone', nonce, ...more }
  const answer = await eventually(
    () => ingress.identify(body),
    ({ status }) => status === 200,
    20_000,
  )
  if (answer.status !== 200) throw new Error(`${answer.status} ${answer.text}`)
  return answer.body
}

let visited = 0
const visitors = new Set<string>()
async function visits(count: number): Promise<Visited[]> {
  const all = await Promise.all(Array.from({ length: count }, () => visit()))
  visited += count
  for (const { visitorId } of all) visitors.add(visitorId)
  return all
}

t.test('an address and an account are counted over all engines, each event once', async (t) => {
  for (let round = 0; round < 4; round++) {
    for (const { velocity } of await visits(8)) {
      t.ok((velocity.ip.events['5m'] as number) <= visited, 'never too many')
    }
  }
  // Whichever partition each of these comes to.
  for (let i = 0; i < 6; i++) {
    await pause(NEWS_MS)
    const [last] = (await visits(1)) as [Visited]
    t.match(last.velocity.ip, {
      events: { '5m': visited, '1h': visited, '24h': visited },
      visitors: { '24h': visitors.size },
    })
    t.equal(last.velocity.linkedId.visitors['24h'], visitors.size)
  }
})

t.test('an engine that dies takes no counts with it', async (t) => {
  const [victim] = cluster.membersOf('engine') as [Member]
  await victim.kill9()
  await visits(8)
  await pause(NEWS_MS)
  for (let i = 0; i < 4; i++) {
    const [last] = (await visits(1)) as [Visited]
    t.equal(last.velocity.ip.events['24h'], visited)
    t.equal(last.velocity.ip.visitors['24h'], visitors.size)
  }
  await victim.restart()
  await pause(NEWS_MS)
  for (let i = 0; i < 4; i++) {
    await pause(NEWS_MS / 2)
    const [last] = (await visits(1)) as [Visited]
    t.equal(last.velocity.ip.events['24h'], visited, 'with the engine back')
  }
})
