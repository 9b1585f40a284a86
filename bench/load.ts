// What is answered, and how late, at each rate that is offered: npm run bench -- load [--rates 500,1000,2000] [--seconds 8]
// [--devices 2000] [--main FILE] [--json FILE]. With --main another build of the server is measured; `bench load-picture` draws.

import { writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import autocannon from 'autocannon'
import { cleanUp, type Server, startServer } from '../test/helpers/server.ts'
import { makeDevice, TOKENLESS_SHARE } from './population.ts'

export interface Load {
  readonly offered: number
  readonly answered: number
  readonly p50Ms: number
  readonly p99Ms: number
  readonly refused: number
}

const { values: options } = parseArgs({
  allowPositionals: true,
  options: {
    rates: { type: 'string', default: '250,500,1000,1500,2000,3000,4000,5000,6000' },
    seconds: { type: 'string', default: '8' },
    devices: { type: 'string', default: '2000' },
    main: { type: 'string' },
    json: { type: 'string' },
  },
})
const devices = Number(options.devices)
const CONNECTIONS = 128

interface Visitor {
  readonly headers: Readonly<Record<string, string>>
  readonly rest: string
}

function visitorOf(i: number, token: string | null): Visitor {
  const { body, ip, userAgent } = makeDevice(i + 1)
  return {
    headers: { 'content-type': 'text/plain', 'x-forwarded-for': ip, 'user-agent': userAgent },
    rest: `,"storageToken":${JSON.stringify(token)},${JSON.stringify(body).slice(1)}`,
  }
}

async function enrol(server: Server): Promise<Visitor[]> {
  const visitors: Visitor[] = []
  for (let from = 0; from < devices; from += 50) {
    const some = Array.from({ length: Math.min(50, devices - from) }, async (_, k) => {
      const { headers, rest } = visitorOf(from + k, null)
      const nonce = `enrol-${String(from + k).padStart(16, '0')}`
      const url = `${server.url}/v1/identify?key=${server.keys.public}`
      const response = await fetch(url, { method: 'POST', headers, body: `{"nonce":"${nonce}"${rest}` })
      const { storageToken } = (await response.json()) as { storageToken: string }
      return visitorOf(from + k, (from + k) % 100 >= TOKENLESS_SHARE * 100 ? storageToken : null)
    })
    visitors.push(...(await Promise.all(some)))
  }
  return visitors
}

let sent = 0

async function offer(server: Server, visitors: readonly Visitor[], offered: number, seconds: number): Promise<Load> {
  const { requests, latency, non2xx, errors } = await autocannon({
    url: server.url,
    connections: CONNECTIONS,
    duration: seconds,
    overallRate: offered,
    setupClient(client) {
      const next = () => {
        const { headers, rest } = visitors[(sent * 7919) % visitors.length] as Visitor
        client.setHeadersAndBody(headers, `{"nonce":"load-${String(sent++).padStart(16, '0')}"${rest}`)
      }
      next()
      client.on('response', next)
    },
    requests: [{ method: 'POST', path: `/v1/identify?key=${server.keys.public}` }],
  })
  const answered = Math.round((requests.total - non2xx) / seconds)
  return { offered, answered, p50Ms: latency.p50, p99Ms: latency.p99, refused: non2xx + errors }
}

try {
  const env = { FINGERPOST_TRUSTED_PROXIES: '127.0.0.1/32' }
  const server = await startServer({
    asShipped: true,
    env,
    ...(options.main === undefined ? {} : { main: options.main }),
  })
  const visitors = await enrol(server)
  await offer(server, visitors, 2_000, 15)
  const loads: Load[] = []
  for (const rate of options.rates.split(',').map(Number)) {
    const load = await offer(server, visitors, rate, Number(options.seconds))
    console.log(JSON.stringify(load))
    loads.push(load)
  }
  if (options.json !== undefined) writeFileSync(options.json, `${JSON.stringify(loads, null, 2)}\n`)
} finally {
  await cleanUp()
}
