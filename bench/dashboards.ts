// The dashboards of deploy/grafana drawn as SVG: one process and a cluster under load with some trouble, and a Prometheus that scrapes both.
// npm run bench -- dashboards, with BENCH_MINUTES (5) and BENCH_RATE (15 identifications a second) from the environment.

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { browserBody } from '../test/helpers/client.ts'
import { startCluster } from '../test/helpers/cluster.ts'
import { startPrometheus } from '../test/helpers/prometheus.ts'
import { answer, authorityIn, openReceiver } from '../test/helpers/receiver.ts'
import { cleanUp, type Keys, startServer, temporaryFolder } from '../test/helpers/server.ts'

const MINUTES = Number(process.env.BENCH_MINUTES ?? 5)
const PER_SECOND = Number(process.env.BENCH_RATE ?? 15)
const ROOT = new URL('../../', import.meta.url)
const OUT = fileURLToPath(new URL('deploy/grafana', ROOT))
const DRAWN_FROM = {
  service: 'fingerpost',
  pipeline: 'fingerpost',
  webhooks: 'fingerpost',
  cluster: 'fingerpost-cluster',
}
const SECOND = 1_000

interface Place {
  readonly urls: readonly string[]
  readonly api: string
  readonly keys: Keys
}

async function send({ api, keys }: Place, path: string, body: unknown): Promise<void> {
  const headers = { Authorization: `Bearer ${keys.secret}`, 'Content-Type': 'application/json' }
  const response = await fetch(api + path, { method: 'POST', headers, body: JSON.stringify(body) })
  if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`)
}

const rule = (name: string, verdict: string, kind: string) => ({
  name,
  status: 'live',
  conditions: { operator: 'AND', rules: [{ field: 'linkedId', operator: 'contains', value: kind }] },
  action: { verdict },
})

/** Visits of many devices, a few of whom are blocked or challenged; a burst in the middle of each minute. */
async function visit({ urls, keys }: Place, endMs: number): Promise<void> {
  let n = 0
  const headers = { Authorization: `Bearer ${keys.public}`, 'Content-Type': 'application/json' }
  const call = async () => {
    n++
    const kind = n % 40 === 0 ? 'bad' : n % 25 === 0 ? 'odd' : 'good'
    const body = JSON.stringify({ ...browserBody(`GPU ${n % 400}`), linkedId: `${kind}-${n % 100}` })
    const response = await fetch(`${urls[n % urls.length]}/v1/identify`, { method: 'POST', headers, body }).catch(
      () => null,
    )
    await response?.arrayBuffer()
  }
  while (performance.now() < endMs) {
    const second = Math.floor(performance.now() / SECOND) % 60
    for (let i = 0; i < (second > 30 && second < 40 ? 2 : 1); i++) void call()
    await sleep(SECOND / PER_SECOND)
  }
}

/** Now and then somebody looks at the history. */
async function read({ api, keys }: Place, endMs: number): Promise<void> {
  const headers = { Authorization: `Bearer ${keys.secret}` }
  while (performance.now() < endMs) {
    for (const path of ['/v1/events?limit=20', '/v1/rules', '/v1/analytics/events?groupBy=verdict']) {
      await fetch(api + path, { headers }).then(
        (response) => response.arrayBuffer(),
        () => null,
      )
    }
    await sleep(2 * SECOND)
  }
}

const closings: (() => unknown)[] = []
try {
  const authority = authorityIn(temporaryFolder())
  const receiver = await openReceiver(
    { teardown: (close) => void closings.push(close) },
    authority.leaf('DNS:localhost'),
  )
  const env = {
    FINGERPOST_WEBHOOKS_ALLOW_PRIVATE_CIDRS: '127.0.0.0/8',
    FINGERPOST_WEBHOOKS_EXTRA_CA_FILE: authority.caFile,
  }
  const server = await startServer({ env, asShipped: true })
  const cluster = await startCluster({ env, asShipped: true })
  const [api] = cluster.membersOf('api')
  const hostOf = (url: string) => new URL(url).host
  const prometheus = await startPrometheus({
    targets: [hostOf(server.url)],
    jobs: { 'fingerpost-cluster': cluster.members.map(({ url }) => hostOf(url)) },
    everySeconds: 5,
    rulesFile: fileURLToPath(new URL('deploy/prometheus/alerts.yml', ROOT)),
  })
  closings.push(() => prometheus.stop())
  const places: Place[] = [
    { urls: [server.url], api: server.url, keys: server.keys },
    {
      urls: cluster.membersOf('ingress').map(({ url }) => url),
      api: (api as { url: string }).url,
      keys: cluster.keys,
    },
  ]
  for (const place of places) {
    await send(place, '/v1/rules', rule('Known fraud', 'block', 'bad'))
    await send(place, '/v1/webhooks', { url: `https://localhost:${receiver.port}/`, events: ['identification'] })
  }
  const startedMs = performance.now()
  const endMs = startedMs + MINUTES * 60 * SECOND
  const load = places.flatMap((place) => [visit(place, endMs), read(place, endMs)])
  const at = (share: number) => sleep(startedMs + share * (endMs - startedMs) - performance.now())
  await at(0.3)
  for (const place of places) await send(place, '/v1/rules', rule('Odd ones', 'challenge', 'odd'))
  receiver.behave = answer(500)
  await at(0.45)
  receiver.behave = answer(200)
  await cluster.clickhouse.kill9()
  await at(0.6)
  await cluster.clickhouse.restart()
  const [, engine] = cluster.membersOf('engine')
  await engine?.kill9()
  await at(0.7)
  await engine?.restart()
  await Promise.all(load)
  const { drawDashboard, openView } = await import(new URL('.scripts/draw-dashboards.mjs', ROOT).href)
  const { dashboards } = await import(new URL('.scripts/make-dashboards.mjs', ROOT).href)
  for (const [file, text] of dashboards()) {
    const name = file.replace('.json', '') as keyof typeof DRAWN_FROM
    const view = openView(prometheus.url, { job: DRAWN_FROM[name], minutes: MINUTES })
    writeFileSync(join(OUT, `${name}.svg`), await drawDashboard(JSON.parse(text), view))
    console.log(`${name}.svg of ${DRAWN_FROM[name]}`)
  }
  await cluster.stop()
  await server.stop()
} finally {
  for (const close of closings.reverse()) await close()
  await cleanUp()
}
