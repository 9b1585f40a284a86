// Velocity in a cluster: what engines count in processes of their own adds up in all of them, also when one dies.

import t from 'tap'
import { browserBody, CHROME, clientOf, eventually } from '../helpers/client.ts'
import { type Member, startCluster } from '../helpers/cluster.ts'
import { pause } from '../helpers/processes.ts'
import { cleanUp } from '../helpers/server.ts'

t.setTimeout(400_000)
t.teardown(cleanUp)

const cluster = await startCluster({ roles: ['ingress,api', 'engine', 'engine,jobs'], partitions: 4 })
t.teardown(() => cluster.stop())
const [ingress] = cluster.membersOf('ingress').map(({ server }) => clientOf(server)) as [ReturnType<typeof clientOf>]
const ip = '198.51.100.7'
/** Longer than news take from one engine to another, also when a message is lost. */
const NEWS_MS = 2_000
/** Where the machine stands still news are late: then the next visit tells. */
const VISITS_MAX = 10

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

/** The last of single visits with time for news before each, until one `holds`. */
async function visitAfterNews(holds: (velocity: Velocity) => boolean, pauseMs = NEWS_MS): Promise<Velocity> {
  for (let tries = 1; ; tries += 1) {
    await pause(tries === 1 ? pauseMs : NEWS_MS)
    const [{ velocity }] = (await visits(1)) as [Visited]
    if (holds(velocity) || tries === VISITS_MAX) return velocity
  }
}

const isComplete = ({ ip: { events, visitors: seen }, linkedId }: Velocity): boolean =>
  events['24h'] === visited && seen['24h'] === visitors.size && linkedId.visitors['24h'] === visitors.size

t.test('an address and an account are counted over all engines, each event once', async (t) => {
  for (let round = 0; round < 4; round++) {
    for (const { velocity } of await visits(8)) {
      t.ok((velocity.ip.events['5m'] as number) <= visited, 'never too many')
    }
  }
  // Whichever partition each of these comes to.
  for (let i = 0; i < 6; i++) {
    const last = await visitAfterNews(isComplete)
    t.match(last.ip, {
      events: { '5m': visited, '1h': visited, '24h': visited },
      visitors: { '24h': visitors.size },
    })
    t.equal(last.linkedId.visitors['24h'], visitors.size)
  }
})

t.test('an engine that dies takes no counts with it', async (t) => {
  const [victim] = cluster.membersOf('engine') as [Member]
  await victim.kill9()
  await visits(8)
  await pause(NEWS_MS)
  for (let i = 0; i < 4; i++) {
    const last = await visitAfterNews(isComplete, 0)
    t.equal(last.ip.events['24h'], visited)
    t.equal(last.ip.visitors['24h'], visitors.size)
  }
  await victim.restart()
  await pause(NEWS_MS)
  for (let i = 0; i < 4; i++) {
    const last = await visitAfterNews(isComplete, NEWS_MS / 2)
    t.equal(last.ip.events['24h'], visited, 'with the engine back')
  }
})
