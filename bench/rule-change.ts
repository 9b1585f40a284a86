// Rule changes under load: what identify loses while rules change all the time, in turns with a load alone, and how long a change takes
// until everybody decides by it. npm run bench -- rule-change [--rate 1000] [--seconds 10] [--rounds 3] [--rules 200] [--every 100]
// [--devices 2000]; `--every` is in milliseconds. How fast changes are with 999 rules is `propagation`.

import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { cleanUp, startServer } from '../test/helpers/server.ts'
import { besideLoad } from './beside-load.ts'
import { makeRule } from './population.ts'

const { values: options } = parseArgs({
  allowPositionals: true,
  options: {
    rate: { type: 'string', default: '1000' },
    seconds: { type: 'string', default: '10' },
    rounds: { type: 'string', default: '3' },
    rules: { type: 'string', default: '200' },
    every: { type: 'string', default: '100' },
    devices: { type: 'string', default: '2000' },
  },
})

interface Changed {
  readonly id: string
  readonly propagationMs: number
  readonly propagated: boolean
}

try {
  const server = await startServer({ asShipped: true, env: { FINGERPOST_TRUSTED_PROXIES: '127.0.0.1/32' } })
  async function send(method: string, path: string, body: unknown): Promise<Changed> {
    const headers = { authorization: `Bearer ${server.keys.secret}`, 'content-type': 'application/json' }
    const response = await fetch(server.url + path, { method, headers, body: JSON.stringify(body) })
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`)
    return (await response.json()) as Changed
  }
  const ids: string[] = []
  for (let i = 0; i < Number(options.rules); i++) ids.push((await send('POST', '/v1/rules', makeRule(i))).id)
  const changes: Changed[] = []
  async function changing(isOver: () => boolean): Promise<void> {
    for (let n = 0; !isOver(); n++) {
      const { conditions } = makeRule(changes.length)
      changes.push(await send('PUT', `/v1/rules/${ids[n % ids.length]}`, { conditions }))
      await sleep(Number(options.every))
    }
  }
  const [rate, seconds, rounds, devices] = [options.rate, options.seconds, options.rounds, options.devices].map(Number)
  await besideLoad(server, { rate, seconds, rounds, devices } as Parameters<typeof besideLoad>[1], changing)
  const took = changes.map(({ propagationMs }) => propagationMs).sort((a, b) => a - b)
  const at = (q: number) => took[Math.min(took.length - 1, Math.floor(q * took.length))]
  const late = changes.filter(({ propagated }) => !propagated).length
  console.log(
    `${changes.length} changes of ${ids.length} live rules: in force after p50 ${at(0.5)}, p99 ${at(0.99)} ms; ${late} not everywhere in time`,
  )
  await server.stop()
} finally {
  await cleanUp()
}
