// Velocity in a cluster: what engines count in processes of their own adds up in all of them, also when one dies.

import type { Test } from 'tap'
import { browserBody, CHROME, eventually } from '../helpers/client.ts'
import { sized } from '../helpers/depth.ts'
import { pause } from '../helpers/processes.ts'
import type { Deployed } from './deployed.ts'

const IP = '198.51.100.7'
/** Each looks at another partition. */
const LOOKS = sized({ usual: 3, long: 6 })
const ROUNDS = sized({ usual: 2, long: 4 })
const LOOK_MS_MAX = 90_000
/** News take a moment from one engine to another, and each look is news itself. */
const NEWS_MS = 250
const NEWS_MS_MAX = 2_000

interface Velocity {
  readonly ip: {
    readonly events: Readonly<Record<string, number>>
    readonly visitors: Readonly<Record<string, number>>
  }
  readonly linkedId: { readonly visitors: Readonly<Record<string, number>> }
}
interface Visited {
  readonly visitorId: string
  readonly velocity: Velocity
}

export async function openVelocity(deployed: Deployed) {
  const { first: ingress } = await deployed.openWorkspace('velocity')
  let visited = 0
  let made = 0
  const visitors = new Set<string>()

  /** Another device each time, so that all partitions are asked. */
  async function visit(): Promise<Visited> {
    const nonce = `nonce-of-a-visit-${String(++made).padStart(8, '0')}`
    const body = { ...browserBody(`GPU ${made}`), userAgent: CHROME, ip: IP, linkedId: 'someone', nonce }
    const answer = await eventually(
      () => ingress.identify(body),
      ({ status }) => status === 200,
    )
    if (answer.status !== 200) throw new Error(`${answer.status} ${answer.text}`)
    return answer.body
  }

  async function visits(count: number): Promise<Visited[]> {
    const all = await Promise.all(Array.from({ length: count }, visit))
    visited += count
    for (const { visitorId } of all) visitors.add(visitorId)
    return all
  }

  /** Visits one at a time, with time for news between, until one is told of all before it. */
  async function look(): Promise<Velocity> {
    const from = performance.now()
    for (let pauseMs = NEWS_MS; ; pauseMs = Math.min(2 * pauseMs, NEWS_MS_MAX)) {
      await pause(pauseMs)
      const [{ velocity }] = (await visits(1)) as [Visited]
      const { ip, linkedId } = velocity
      const seen = [ip.events['24h'], ip.visitors['24h'], linkedId.visitors['24h']]
      if (seen.join() === [visited, visitors.size, visitors.size].join()) return velocity
      if (performance.now() - from > LOOK_MS_MAX) return velocity
    }
  }

  /** Whichever partition each of some visits comes to, it is told of all of them. */
  async function complete(t: Test, why: string): Promise<void> {
    for (let i = 0; i < LOOKS; i++) {
      const { ip, linkedId } = await look()
      t.match(ip.events, { '1h': visited, '24h': visited }, why)
      t.equal(ip.visitors['24h'], visitors.size)
      t.equal(linkedId.visitors['24h'], visitors.size)
    }
  }

  return {
    complete,
    async counted(t: Test): Promise<void> {
      for (let round = 0; round < ROUNDS; round++) {
        const tooMany = (await visits(8)).filter(({ velocity }) => (velocity.ip.events['5m'] as number) > visited)
        t.same(tooMany, [], 'never too many')
      }
      await complete(t, 'each event once')
    },
  }
}
