// What is answered, and how late, by what is stored already: servers with histories of different lengths, made by `fingerpost seed` with
// the state of their visitors, loaded in turns. npm run bench -- stored [--events 10000,100000,1000000] [--rounds 3] [--seconds 10]
// [--rate 1000] [--devices 2000] [--svg bench/stored.svg]. First as fast as it goes, then at the rate; then reads, one after the other.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { cleanUp, historyOpen, makeKeys, type Server, startServer, temporaryFolder } from '../test/helpers/server.ts'
import { type Chart, decades, drawCharts, upTo } from './chart.ts'
import { childrenOf, cpuSeconds } from './measure.ts'
import { type Offerer, openOfferer } from './offer.ts'

const { values: options } = parseArgs({
  allowPositionals: true,
  options: {
    events: { type: 'string', default: '10000,100000,1000000' },
    rounds: { type: 'string', default: '3' },
    seconds: { type: 'string', default: '10' },
    rate: { type: 'string', default: '1000' },
    devices: { type: 'string', default: '2000' },
    svg: { type: 'string' },
  },
})
const seconds = Number(options.seconds)
const ENV = { FINGERPOST_TRUSTED_PROXIES: '127.0.0.1/32' }
const MAIN = new URL('../server/main.js', import.meta.url).pathname
const READS = 40

interface Stored {
  readonly events: number
  readonly server: Server
  readonly offerer: Offerer
  readonly figures: Record<'perSecond' | 'micros' | 'p50Ms' | 'p99Ms' | 'eventMs' | 'listMs', number[]>
}

async function seed(dataDir: string, events: number): Promise<void> {
  const args = ['seed', '--events', String(events), '--days', '30', '--seed', '1', '--env', 'live']
  const env = { PATH: process.env.PATH, HOME: process.env.HOME, FINGERPOST_DATA_DIR: dataDir }
  const child = spawn(process.execPath, [MAIN, ...args], { stdio: ['ignore', 'ignore', 'inherit'], env })
  const [code] = await once(child, 'exit')
  if (code !== 0) throw new Error(`fingerpost seed ended with ${code}`)
}

async function open(events: number): Promise<Stored> {
  const [dataDir, keys] = [temporaryFolder(), makeKeys()]
  // The first start makes the workspace that the history belongs to.
  await (await startServer({ asShipped: true, dataDir, keys })).stop()
  const startedAt = performance.now()
  await seed(dataDir, events)
  console.log(`${events} events stored in ${((performance.now() - startedAt) / 1_000).toFixed(0)} s`)
  const server = await startServer({ asShipped: true, dataDir, keys, env: ENV })
  await historyOpen(server)
  const offerer = await openOfferer({ url: server.url, publicKey: keys.public }, Number(options.devices))
  const figures = { perSecond: [], micros: [], p50Ms: [], p99Ms: [], eventMs: [], listMs: [] }
  return { events, server, offerer, figures }
}

const median = (figures: readonly number[]): number =>
  figures.toSorted((a, b) => a - b)[figures.length >> 1] ?? Number.NaN
const cpuOf = ({ pid }: Server) => [pid, ...childrenOf(pid)].reduce((sum, one) => sum + (cpuSeconds(one) ?? 0), 0)

async function get({ url, keys }: Server, path: string): Promise<{ readonly data: readonly { requestId: string }[] }> {
  const response = await fetch(url + path, { headers: { Authorization: `Bearer ${keys.secret}` } })
  if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`)
  return (await response.json()) as { readonly data: readonly { requestId: string }[] }
}

async function medianMs(server: Server, paths: readonly string[]): Promise<number> {
  const took: number[] = []
  for (const path of paths) {
    const startedAt = performance.now()
    await get(server, path)
    took.push(performance.now() - startedAt)
  }
  return median(took)
}

async function round({ server, offerer, figures }: Stored): Promise<void> {
  const cpuBefore = cpuOf(server)
  const full = await offerer.offer({ offered: null, seconds })
  figures.perSecond.push(full.answered)
  figures.micros.push(((cpuOf(server) - cpuBefore) * 1e6) / (full.answered * seconds))
  const steady = await offerer.offer({ offered: Number(options.rate), seconds })
  figures.p50Ms.push(steady.p50Ms)
  figures.p99Ms.push(steady.p99Ms)
  // Of the middle of the history, where nothing is in memory.
  const before = new Date(Date.now() - 15 * 86_400_000).toISOString()
  const { data } = await get(server, `/v1/events?limit=${READS}&before=${before}`)
  figures.eventMs.push(
    await medianMs(
      server,
      data.map(({ requestId }) => `/v1/events/${requestId}`),
    ),
  )
  figures.listMs.push(
    await medianMs(
      server,
      Array.from({ length: READS }, () => `/v1/events?limit=50&before=${before}`),
    ),
  )
}

function charts(all: readonly Stored[]): Chart[] {
  const x = decades(Math.min(...all.map(({ events }) => events)), Math.max(...all.map(({ events }) => events)))
  const line = (name: string, figure: keyof Stored['figures']) => ({
    name,
    points: all.map(({ events, figures }) => [events, median(figures[figure])] as const),
  })
  const latencies = [
    line(`identify p50 at ${options.rate}/s`, 'p50Ms'),
    line('p99', 'p99Ms'),
    line('an event', 'eventMs'),
    line('a page of 50 events', 'listMs'),
  ]
  const highest = Math.max(...latencies.flatMap(({ points }) => points.map(([, y]) => y)))
  const answered = line('as fast as it goes', 'perSecond')
  return [
    {
      title: 'identifications per second',
      lines: [answered],
      x,
      y: upTo(Math.max(...answered.points.map(([, y]) => y))),
    },
    { title: 'ms (logarithmic)', lines: latencies, x, y: decades(1, highest) },
  ]
}

try {
  const all: Stored[] = []
  for (const events of options.events.split(',').map(Number)) all.push(await open(events))
  for (const { offerer } of all) await offerer.offer({ offered: null, seconds })
  for (let n = 0; n < Number(options.rounds); n++) for (const stored of all) await round(stored)
  for (const { events, figures } of all) {
    const said = (figure: keyof Stored['figures']) =>
      `${median(figures[figure]).toFixed(0)} (${figures[figure].map(Math.round).join(', ')})`
    console.log(
      `${events} stored: ${said('perSecond')} identifications/s, CPU ${said('micros')} us each; at ${options.rate}/s p50 ${said('p50Ms')}, p99 ${said('p99Ms')} ms; an event ${said('eventMs')}, a page ${said('listMs')} ms`,
    )
  }
  if (options.svg !== undefined) writeFileSync(options.svg, drawCharts(charts(all), 'events stored'))
  for (const { offerer, server } of all) {
    offerer.close()
    await server.stop()
  }
} finally {
  await cleanUp()
}
