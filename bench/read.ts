// What reads cost beside a long history: one event, the events of a visitor, analytics over thirty days. The history is made by
// `fingerpost seed`; with --data FOLDER it stays there and is used again. A server of its own answers, one question at a time.
// With --beside: what large answers cost those who identify meanwhile, see beside.ts.
// npm run bench -- read [--events 300000] [--days 30] [--reads 2000] [--runs 10] [--data FOLDER] [--beside [--seconds 4]]

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { loadavg } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { rng } from '../test/helpers/rng.ts'
import { cleanUp, type Keys, makeKeys, type Server, startServer, temporaryFolder } from '../test/helpers/server.ts'
import { besides } from './beside.ts'
import { atShare, childrenOf, cpuSeconds } from './measure.ts'

const { values } = parseArgs({
  args: process.argv.slice(2).filter((arg) => arg !== 'read'),
  options: {
    events: { type: 'string', default: '300000' },
    days: { type: 'string', default: '30' },
    reads: { type: 'string', default: '2000' },
    runs: { type: 'string', default: '10' },
    seed: { type: 'string', default: '7' },
    data: { type: 'string' },
    beside: { type: 'boolean', default: false },
    seconds: { type: 'string', default: '4' },
  },
})
const events = Number(values.events)
const days = Number(values.days)
const reads = Number(values.reads)
const runs = Number(values.runs)
const random = rng(Number(values.seed))
const DAY_MS = 86_400_000
const SAMPLED_PAGES = 60
const OPENING_TRIES_MAX = 240
const GROUPS = [null, 'verdict', 'platform', 'country', 'hour', 'day', 'week']
const SIGNAL_GROUPS = ['signal', 'day', 'week']

interface Summary {
  readonly requestId: string
  readonly visitorId: string
}

async function run(args: readonly string[], env: Readonly<Record<string, string>>): Promise<void> {
  const main = new URL('../server/main.js', import.meta.url).pathname
  const child = spawn(process.execPath, [main, ...args], {
    stdio: ['ignore', 'ignore', 'inherit'],
    env: { PATH: process.env.PATH, HOME: process.env.HOME, ...env },
  })
  const [code] = await once(child, 'exit')
  if (code !== 0) throw new Error(`fingerpost ${args[0]} ended with ${code}`)
}

/** A folder with the history, and the keys of its workspace. */
async function history(): Promise<{ readonly dataDir: string; readonly keys: Keys }> {
  const dataDir = values.data ?? temporaryFolder()
  mkdirSync(dataDir, { recursive: true })
  const file = join(dataDir, 'bench-keys.json')
  if (existsSync(file)) return { dataDir, keys: JSON.parse(readFileSync(file, 'utf8')) }
  const keys = makeKeys()
  // The first start makes the workspace that the history belongs to.
  const server = await startServer({ asShipped: true, dataDir, keys })
  await server.stop()
  const startedAt = performance.now()
  const args = ['seed', '--events', String(events), '--days', String(days), '--seed', values.seed, '--env', 'live']
  await run(args, { FINGERPOST_DATA_DIR: dataDir })
  console.log(`${events} events over ${days} days made in ${((performance.now() - startedAt) / 1_000).toFixed(0)} s`)
  writeFileSync(file, JSON.stringify(keys))
  return { dataDir, keys }
}

async function get(server: Server, path: string): Promise<unknown> {
  const response = await fetch(server.url + path, { headers: { Authorization: `Bearer ${server.keys.secret}` } })
  const text = await response.text()
  if (response.status !== 200) throw new Error(`${path}: ${response.status} ${text}`)
  return JSON.parse(text)
}

/** A server is ready before its history is. */
async function untilHistoryOpens(server: Server, path: string): Promise<void> {
  for (let tries = 0; ; tries++) {
    try {
      await get(server, path)
      return
    } catch (error) {
      if (tries === OPENING_TRIES_MAX) throw error
      await sleep(500)
    }
  }
}

interface Timed {
  /** Milliseconds of each question, ascending. */
  readonly took: readonly number[]
  /** CPU of server and engine per question, which other work on the machine does not lengthen as much. */
  readonly cpuMs: number
}

async function timed(server: Server, ask: (n: number) => Promise<unknown>, times: number): Promise<Timed> {
  const cpu = () => [server.pid, ...childrenOf(server.pid)].reduce((sum, pid) => sum + (cpuSeconds(pid) ?? 0), 0)
  const before = cpu()
  const took: number[] = []
  for (let n = 0; n < times; n++) {
    const startedAt = performance.now()
    await ask(n)
    took.push(performance.now() - startedAt)
  }
  return { took: took.sort((a, b) => a - b), cpuMs: ((cpu() - before) * 1_000) / times }
}

const quantile = (sorted: readonly number[], q: number): number => atShare(sorted, q) ?? Number.NaN

function report(name: string, { took, cpuMs }: Timed, q: number, budgetMs: number): void {
  const value = quantile(took, q)
  const label = q === 1 ? 'max' : `p${q * 100}`
  console.log(
    `${name.padEnd(34)} n ${String(took.length).padStart(5)}  p50 ${quantile(took, 0.5).toFixed(1).padStart(7)}  ` +
      `p99 ${quantile(took, 0.99).toFixed(1).padStart(7)}  max ${quantile(took, 1).toFixed(1).padStart(7)} ms  cpu ${cpuMs.toFixed(1)}  ` +
      `${label} ≤ ${budgetMs} ms: ${value <= budgetMs ? 'kept' : 'MISSED'}`,
  )
  if (value > budgetMs) process.exitCode = 1
}

/** Events from all over the history. */
async function sample(server: Server): Promise<Summary[]> {
  const found: Summary[] = []
  const nowMs = Date.now()
  for (let page = 0; page < SAMPLED_PAGES; page++) {
    const before = new Date(nowMs - random.float() * (days - 1) * DAY_MS).toISOString()
    const { data } = (await get(server, `/v1/events?limit=100&before=${before}`)) as { data: Summary[] }
    found.push(...data)
  }
  if (found.length === 0) throw new Error('the history is empty')
  return found
}

async function main(): Promise<void> {
  const { dataDir, keys } = await history()
  const server = await startServer({ asShipped: true, dataDir, keys })
  const nowMs = Date.now()
  const range = `from=${new Date(nowMs - days * DAY_MS).toISOString()}&to=${new Date(nowMs).toISOString()}`
  await untilHistoryOpens(server, `/v1/analytics/events?${range}`)
  const { total } = (await get(server, `/v1/analytics/events?${range}`)) as { total: number }
  const known = await sample(server)
  console.log(
    `${total} events in ${days} days, ready in ${server.readyMs.toFixed(0)} ms, load ${loadavg()[0]?.toFixed(1)}`,
  )
  const event = () => get(server, `/v1/events/${random.pick(known).requestId}`)
  const visitor = () => get(server, `/v1/events?visitorId=${random.pick(known).visitorId}`)
  await timed(server, event, 50)
  report('GET /v1/events/{id}', await timed(server, event, reads), 0.99, 10)
  await timed(server, visitor, 50)
  report('GET /v1/events?visitorId=', await timed(server, visitor, reads), 0.99, 50)
  for (const by of GROUPS) {
    const path = `/v1/analytics/events?${range}${by === null ? '' : `&groupBy=${by}`}`
    report(`analytics/events by ${by ?? 'nothing'}`, await timed(server, () => get(server, path), runs), 1, 1_000)
  }
  for (const by of SIGNAL_GROUPS) {
    const path = `/v1/analytics/signals?${range}&groupBy=${by}`
    report(`analytics/signals by ${by}`, await timed(server, () => get(server, path), runs), 1, 1_000)
  }
  console.log(`load ${loadavg()[0]?.toFixed(1)}`)
  await server.stop()
}

async function beside(): Promise<void> {
  const server = await startServer({ asShipped: true })
  await besides(server, Number(values.seconds) * 1_000)
  await server.stop()
}

try {
  await (values.beside ? beside() : main())
} finally {
  await cleanUp()
}
