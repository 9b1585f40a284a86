// A mixed day: back ends that ask for each tenth event, a console that looks at lists and analytics, rules and lists that change and a
// webhook for each block, all beside a steady load of identifications; in turns with the load alone. npm run bench -- mixed [--rate 1000]
// [--seconds 15] [--rounds 3] [--devices 2000] [--verdicts 100]; `--verdicts` is how many events a second back ends ask for.

import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { authorityIn, openReceiver } from '../test/helpers/receiver.ts'
import { cleanUp, startServer, temporaryFolder } from '../test/helpers/server.ts'
import { besideLoad } from './beside-load.ts'
import { makeRule } from './population.ts'

const { values: options } = parseArgs({
  allowPositionals: true,
  options: {
    rate: { type: 'string', default: '1000' },
    seconds: { type: 'string', default: '15' },
    rounds: { type: 'string', default: '3' },
    devices: { type: 'string', default: '2000' },
    verdicts: { type: 'string', default: '100' },
  },
})
const EVERY_MS = { console: 2_000, rule: 1_000, list: 500 }
/** One in twenty of the devices: their account has a 99 in it. */
const BLOCKED = {
  name: 'Known fraud',
  status: 'live',
  action: { verdict: 'block' },
  conditions: { operator: 'AND', rules: [{ field: 'linkedId', operator: 'contains', value: '99' }] },
}
const LOOKED_AT = [
  '/v1/events?limit=50',
  '/v1/events?verdict=block&limit=50',
  '/v1/rules',
  '/v1/analytics/events?groupBy=verdict',
]

const closings: (() => unknown)[] = []
try {
  const authority = authorityIn(temporaryFolder())
  const closing = { teardown: (close: () => unknown) => void closings.push(close) }
  const receiver = await openReceiver(closing, authority.leaf('DNS:localhost'))
  const server = await startServer({
    asShipped: true,
    env: {
      FINGERPOST_TRUSTED_PROXIES: '127.0.0.1/32',
      FINGERPOST_WEBHOOKS_ALLOW_PRIVATE_CIDRS: '127.0.0.0/8',
      FINGERPOST_WEBHOOKS_EXTRA_CA_FILE: authority.caFile,
    },
  })
  const took = new Map<string, number[]>()
  let limited = 0
  async function ask<Answer>(what: string, method: string, path: string, body?: unknown): Promise<Answer | null> {
    const startedAt = performance.now()
    const headers = { authorization: `Bearer ${server.keys.secret}`, 'content-type': 'application/json' }
    const sent = body === undefined ? { method, headers } : { method, headers, body: JSON.stringify(body) }
    const response = await fetch(server.url + path, sent)
    const text = await response.text()
    if (response.status === 429) limited++
    else if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`)
    if (!response.ok) return null
    took.set(what, [...(took.get(what) ?? []), performance.now() - startedAt])
    return JSON.parse(text) as Answer
  }
  const rules: string[] = []
  for (let i = 0; i < 50; i++) {
    const made = await ask<{ id: string }>('making rules', 'POST', '/v1/rules', i === 0 ? BLOCKED : makeRule(i))
    if (made !== null && i > 0) rules.push(made.id)
  }
  const list = await ask<{ id: string }>('making lists', 'POST', '/v1/lists', { name: 'bad_ips', type: 'ip' })
  await ask('making webhooks', 'POST', '/v1/webhooks', {
    url: `https://localhost:${receiver.port}/`,
    events: ['verdict.block'],
  })

  async function every(ms: number, isOver: () => boolean, once: (n: number) => Promise<unknown>): Promise<void> {
    for (let n = 0; !isOver(); n++) {
      const due = performance.now() + ms
      await once(n)
      await sleep(Math.max(0, due - performance.now()))
    }
  }
  async function backEnds(isOver: () => boolean): Promise<void> {
    while (!isOver()) {
      const page = await ask<{ data: { requestId: string }[] }>('newest events', 'GET', '/v1/events?limit=100')
      const ids = page?.data.map(({ requestId }) => requestId) ?? []
      const running: Promise<unknown>[] = []
      for (let n = 0; n < Number(options.verdicts) && !isOver(); n++) {
        const id = ids[n % ids.length]
        if (id !== undefined) running.push(ask('one event', 'GET', `/v1/events/${id}`))
        await sleep(1_000 / Number(options.verdicts))
      }
      await Promise.all(running)
    }
  }
  let changes = 0
  async function work(isOver: () => boolean): Promise<void> {
    await Promise.all([
      backEnds(isOver),
      every(EVERY_MS.console, isOver, (n) => ask('console', 'GET', LOOKED_AT[n % LOOKED_AT.length] as string)),
      every(EVERY_MS.rule, isOver, (n) => {
        const { conditions } = makeRule(changes++)
        return ask('a rule changes', 'PUT', `/v1/rules/${rules[n % rules.length]}`, { conditions })
      }),
      every(EVERY_MS.list, isOver, () =>
        ask('a list grows', 'PATCH', `/v1/lists/${list?.id}/entries`, { add: [`198.51.100.${changes % 250}`] }),
      ),
    ])
  }
  const [rate, seconds, rounds, devices] = [options.rate, options.seconds, options.rounds, options.devices].map(Number)
  await besideLoad(server, { rate, seconds, rounds, devices } as Parameters<typeof besideLoad>[1], work)
  for (const [what, times] of took) {
    if (what.startsWith('making')) continue
    const sorted = times.toSorted((a, b) => a - b)
    const at = (q: number) => sorted[Math.min(sorted.length - 1, Math.floor(q * sorted.length))]?.toFixed(1)
    console.log(`${what}: ${times.length}, p50 ${at(0.5)}, p99 ${at(0.99)} ms`)
  }
  console.log(`webhooks: ${receiver.hits.length} deliveries of blocks; ${limited} calls were limited`)
  await server.stop()
} finally {
  for (const close of closings.reverse()) await close()
  await cleanUp()
}
