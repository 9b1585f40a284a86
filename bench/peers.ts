// This server beside what a team would otherwise assemble (bench/peers/server.ts: node:http, json-rules-engine, Redis with fsync always,
// ClickHouse in batches), in turns on this machine: the same bodies and rules, an answer when the event is on disk. Of the answers, none
// of the peer's has recognition by likeness, signals or scores. Usage: npm run bench -- peers [--seconds 15] [--rounds 2] [--connections 64]
// [--devices 500] [--rules 50]

import { fork } from 'node:child_process'
import { once } from 'node:events'
import { parseArgs } from 'node:util'
import autocannon from 'autocannon'
import { freePort } from '../test/helpers/port.ts'
import { startRedis } from '../test/helpers/redis.ts'
import { cleanUp, startServer, temporaryFolder } from '../test/helpers/server.ts'
import { childrenOf, cpuSeconds } from './measure.ts'
import { makeDevice, makeRule, TOKENLESS_SHARE } from './population.ts'

const { values: options } = parseArgs({
  args: process.argv.slice(2).filter((arg) => arg !== 'peers'),
  options: {
    seconds: { type: 'string', default: '15' },
    rounds: { type: 'string', default: '2' },
    connections: { type: 'string', default: '64' },
    devices: { type: 'string', default: '500' },
    rules: { type: 'string', default: '50' },
  },
})
const devices = Array.from({ length: Number(options.devices) }, (_, i) => makeDevice(i + 1))

interface Side {
  readonly name: string
  readonly url: string
  readonly path: string
  readonly tokens: string[]
  /** Of all its processes; their children count with them. */
  readonly pids: () => readonly number[]
}

const withChildren = (pid: number): number[] => [pid, ...childrenOf(pid).flatMap(withChildren)]
const cpuOf = (side: Side): number =>
  side
    .pids()
    .flatMap(withChildren)
    .reduce((sum, pid) => sum + (cpuSeconds(pid) ?? 0), 0)

const headersOf = (i: number) => {
  const { ip, userAgent } = devices[i % devices.length] as (typeof devices)[number]
  return { 'content-type': 'text/plain', 'x-forwarded-for': ip, 'user-agent': userAgent }
}
let nonces = 0
function bodyOf(side: Side, i: number): string {
  const nonce = `peers-${String(nonces++).padStart(12, '0')}`
  const isKnown = i % 100 >= TOKENLESS_SHARE * 100
  const storageToken = isKnown ? (side.tokens[i % devices.length] ?? null) : null
  return JSON.stringify({ storageToken, nonce, ...devices[i % devices.length]?.body })
}

/** First visits: every device gets its token. */
async function enrol(side: Side): Promise<void> {
  for (let i = 0; i < devices.length; i++) {
    const sent = { method: 'POST', headers: headersOf(i), body: bodyOf(side, i) }
    const response = await fetch(side.url + side.path, sent)
    if (response.status !== 200) throw new Error(`${side.name} answers ${response.status}: ${await response.text()}`)
    side.tokens.push(((await response.json()) as { storageToken: string }).storageToken)
  }
}

function drive(side: Side) {
  let sent = 0
  return autocannon({
    url: side.url,
    connections: Number(options.connections),
    duration: Number(options.seconds),
    setupClient: (client) => {
      const next = () => {
        const i = (sent++ * 7919) % 1_000_003
        client.setHeadersAndBody(headersOf(i), bodyOf(side, i))
      }
      next()
      client.on('response', next)
    },
    requests: [{ method: 'POST', path: side.path }],
  })
}

const median = (figures: readonly number[]): number => figures.toSorted((a, b) => a - b)[figures.length >> 1] ?? 0

const server = await startServer({ asShipped: true, env: { FINGERPOST_TRUSTED_PROXIES: '127.0.0.1/32' } })
for (let i = 0; i < Number(options.rules); i++) {
  const headers = { authorization: `Bearer ${server.keys.secret}`, 'content-type': 'application/json' }
  const sent = { method: 'POST', headers, body: JSON.stringify(makeRule(i)) }
  const { status } = await fetch(`${server.url}/v1/rules`, sent)
  if (status !== 201) throw new Error(`a rule was answered ${status}`)
}
const redis = await startRedis({ aof: 'always' })
const port = await freePort()
const script = new URL('./peers/server.js', import.meta.url)
const peer = fork(script, [String(port), redis.url, temporaryFolder(), options.rules])
await once(peer, 'message')

const own: Side = {
  name: 'own',
  url: server.url,
  path: `/v1/identify?key=${server.keys.public}`,
  tokens: [],
  pids: () => [server.pid],
}
const assembled: Side = {
  name: 'peer',
  url: `http://127.0.0.1:${port}`,
  path: '/v1/identify',
  tokens: [],
  pids: () => [peer.pid ?? 0, redis.pid()],
}
for (const side of [own, assembled]) await enrol(side)
const rates = new Map<Side, number[]>([own, assembled].map((side) => [side, []]))
const cpus = new Map<Side, number[]>([own, assembled].map((side) => [side, []]))
for (let round = 1; round <= Number(options.rounds); round++) {
  for (const [side, figures] of rates) {
    const cpuBefore = cpuOf(side)
    const { requests, latency, non2xx, errors } = await drive(side)
    const micros = Math.round(((cpuOf(side) - cpuBefore) * 1e6) / requests.total)
    cpus.get(side)?.push(micros)
    figures.push(requests.average)
    const failed = non2xx + errors
    console.log(
      `round ${round} ${side.name}: ${Math.round(requests.average)} requests/s, p50 ${latency.p50} ms, p99 ${latency.p99} ms, ${micros} us of CPU a request, ${failed} failed`,
    )
  }
}
const ratio = (of: ReadonlyMap<Side, number[]>) =>
  (median(of.get(own) ?? []) / median(of.get(assembled) ?? [])).toFixed(2)
console.log(`own to peer: ${ratio(rates)} of the requests/s, ${ratio(cpus)} of the CPU a request`)

peer.kill('SIGTERM')
await once(peer, 'exit')
await server.stop()
await redis.remove()
await cleanUp()
