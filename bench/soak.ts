// A real server under a steady load for long: memory, descriptors, lag and p99 over time, as its own /metrics tell them, and whether they
// stay where they were: the last quarter of the time against the second. npm run bench -- soak [--minutes 60] [--rate 500] [--devices 20000]
// [--every 5] [--json FILE] [--svg bench/soak.svg]. Without --rate it is half of what the server answers at most in twenty seconds.

import { readFileSync, writeFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { readMetrics, type Scrape } from '../test/helpers/scrape.ts'
import { cleanUp, startServer } from '../test/helpers/server.ts'
import { type Chart, decades, drawCharts, upTo } from './chart.ts'
import { childrenOf, rssMegabytes } from './measure.ts'
import { openOfferer } from './offer.ts'
import { readFacts } from './result.ts'

const { values: options } = parseArgs({
  allowPositionals: true,
  options: {
    minutes: { type: 'string', default: '60' },
    rate: { type: 'string' },
    devices: { type: 'string', default: '20000' },
    every: { type: 'string', default: '5' },
    json: { type: 'string' },
    svg: { type: 'string' },
  },
})
const seconds = Number(options.minutes) * 60
const MB = 2 ** 20
/** Of the load generator: an hour on a machine with others on it. */
const GIVES_WAY = 10
/** What a figure of the last quarter may be of that of the second. */
const GROWTH_MAX = 1.1
const DURATION = 'fingerpost_http_request_duration_seconds'
const IDENTIFY = { route: '/v1/identify' }

/** Of one moment; rates and quantiles are those since the one before. */
interface Sample {
  readonly minute: number
  readonly perSecond: number
  readonly p50Ms: number
  readonly p99Ms: number
  readonly rssMb: number
  /** Of the server without pages of files, such as those of the log: from /proc, like the engine's. */
  readonly ownMb: number
  readonly clickhouseMb: number
  /** Of all threads. */
  readonly heapMb: number
  readonly descriptors: number
  readonly loopLagP99Ms: number
  readonly oldestPendingMs: number
  readonly oldestUnsunkMs: number
  readonly refused: number
}

/** By its bucket, in between by its place there; milliseconds. */
function quantileMs(before: Scrape, after: Scrape, q: number): number {
  const bounds = [...new Set(after.samples.filter(({ name }) => name === `${DURATION}_bucket`).map((s) => s.labels.le))]
  const upToBound = bounds
    .map((le = '') => ({ le: le === '+Inf' ? Number.POSITIVE_INFINITY : Number(le), labels: { ...IDENTIFY, le } }))
    .sort((a, b) => a.le - b.le)
    .map(({ le, labels }) => ({
      le,
      count: after.sum(`${DURATION}_bucket`, labels) - before.sum(`${DURATION}_bucket`, labels),
    }))
  const wanted = q * (upToBound.at(-1)?.count ?? 0)
  const at = upToBound.findIndex(({ count }) => count >= wanted)
  const [from, to] = [upToBound[at - 1] ?? { le: 0, count: 0 }, upToBound[at]]
  if (to === undefined || to.count === from.count) return Number.NaN
  return 1_000 * (from.le + ((to.le - from.le) * (wanted - from.count)) / (to.count - from.count))
}

function ownMegabytes(pid: number): number {
  const [, kb = '0'] = /^RssAnon:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
  return Number(kb) / 1_024
}

const median = (figures: readonly number[]): number =>
  figures.toSorted((a, b) => a - b)[figures.length >> 1] ?? Number.NaN

function judge(samples: readonly Sample[]): string[] {
  const quarter = Math.floor(samples.length / 4)
  const [second, last] = [samples.slice(quarter, 2 * quarter), samples.slice(-quarter)]
  const figures = [
    'rssMb',
    'ownMb',
    'clickhouseMb',
    'heapMb',
    'descriptors',
    'loopLagP99Ms',
    'oldestPendingMs',
    'oldestUnsunkMs',
    'p50Ms',
    'p99Ms',
  ] as const
  return figures.map((figure) => {
    const [was, is] = [second, last].map((some) => median(some.map((sample) => sample[figure]))) as [number, number]
    const said = was === 0 && is === 0 ? 'flat' : is / was <= GROWTH_MAX ? 'flat' : 'grows'
    return `${figure.padEnd(16)} second quarter ${was.toFixed(1)}, last ${is.toFixed(1)}, ratio ${(is / was).toFixed(2)}: ${said}`
  })
}

function charts(samples: readonly Sample[]): Chart[] {
  const minutes = samples.at(-1)?.minute ?? 1
  const line = (name: string, of: (sample: Sample) => number) => ({
    name,
    points: samples.map((sample) => [sample.minute, of(sample)] as const),
  })
  const most = (...of: readonly ((sample: Sample) => number)[]) =>
    Math.max(...samples.flatMap((sample) => of.map((one) => one(sample))).filter(Number.isFinite))
  const step = [1, 2, 5, 10, 15, 30].find((one) => minutes / one <= 8) ?? 60
  const x = { from: 0, to: minutes, ticks: Array.from({ length: Math.floor(minutes / step) + 1 }, (_, i) => i * step) }
  const linear = (title: string, named: Readonly<Record<string, (sample: Sample) => number>>): Chart => ({
    title,
    lines: Object.entries(named).map(([name, of]) => line(name, of)),
    x,
    y: upTo(most(...Object.values(named))),
  })
  const logarithmic = (title: string, named: Readonly<Record<string, (sample: Sample) => number>>): Chart => ({
    ...linear(title, named),
    y: decades(1, Math.max(10, most(...Object.values(named)))),
  })
  return [
    linear('identifications per second', { answered: ({ perSecond }) => perSecond }),
    logarithmic('answer, ms (logarithmic)', { p50: ({ p50Ms }) => p50Ms, p99: ({ p99Ms }) => p99Ms }),
    linear('memory, MB', {
      'server, resident': ({ rssMb }) => rssMb,
      'server, without files': ({ ownMb }) => ownMb,
      ClickHouse: ({ clickhouseMb }) => clickhouseMb,
      'heaps in use': ({ heapMb }) => heapMb,
    }),
    linear('open descriptors of the server', { descriptors: ({ descriptors }) => descriptors }),
    logarithmic('lag, ms (logarithmic)', {
      'main loop p99': ({ loopLagP99Ms }) => loopLagP99Ms,
      'oldest undecided': ({ oldestPendingMs }) => oldestPendingMs,
      'oldest not in ClickHouse': ({ oldestUnsunkMs }) => oldestUnsunkMs,
    }),
  ]
}

try {
  const server = await startServer({ asShipped: true, env: { FINGERPOST_TRUSTED_PROXIES: '127.0.0.1/32' } })
  const [engine] = childrenOf(server.pid)
  if (engine === undefined) throw new Error('the server has no engine')
  const offerer = await openOfferer(
    { url: server.url, publicKey: server.keys.public },
    Number(options.devices),
    GIVES_WAY,
  )
  const full = options.rate === undefined ? await offerer.offer({ offered: null, seconds: 20 }) : null
  const rate = full === null ? Number(options.rate) : Math.round(full.answered / 2)
  const { cpu, threads, commit, load } = readFacts()
  console.log(`${rate}/s for ${options.minutes} min, ${cpu}, ${threads} threads, load ${load.toFixed(1)}, ${commit}`)

  const look = async () => readMetrics(await (await fetch(`${server.url}/metrics`)).text())
  const samples: Sample[] = []
  const startedAt = performance.now()
  const offered = offerer.offer({ offered: rate, seconds })
  let [before, beforeAt] = [await look(), performance.now()]
  for (let n = 1; n * Number(options.every) < seconds; n++) {
    await sleep(startedAt + n * Number(options.every) * 1_000 - performance.now())
    const [after, afterAt] = [await look(), performance.now()]
    const grown = (name: string, labels = {}) => after.sum(name, labels) - before.sum(name, labels)
    samples.push({
      minute: (afterAt - startedAt) / 60_000,
      perSecond: (grown(`${DURATION}_count`, IDENTIFY) * 1_000) / (afterAt - beforeAt),
      p50Ms: quantileMs(before, after, 0.5),
      p99Ms: quantileMs(before, after, 0.99),
      rssMb: after.sum('process_resident_memory_bytes') / MB,
      ownMb: ownMegabytes(server.pid),
      clickhouseMb: rssMegabytes(engine),
      heapMb: after.sum('fingerpost_thread_heap_used_bytes') / MB,
      descriptors: after.sum('process_open_fds'),
      loopLagP99Ms: 1_000 * after.sum('nodejs_eventloop_lag_p99_seconds'),
      oldestPendingMs: 1_000 * after.sum('fingerpost_identifications_oldest_pending_seconds'),
      oldestUnsunkMs: 1_000 * after.sum('fingerpost_sink_oldest_unsunk_seconds'),
      refused: grown('fingerpost_identifications_refused_total'),
    })
    ;[before, beforeAt] = [after, afterAt]
    // What is known so far survives whatever ends a long run.
    if (options.json !== undefined) writeFileSync(options.json, `${JSON.stringify(samples)}\n`)
    if (options.svg !== undefined && n % 12 === 0) writeFileSync(options.svg, drawCharts(charts(samples), 'minutes'))
  }
  const { answered, p50Ms, p99Ms, refused } = await offered
  console.log(`the client saw ${answered}/s, p50 ${p50Ms} ms, p99 ${p99Ms} ms, ${refused} refused`)
  for (const line of judge(samples)) console.log(line)
  if (options.svg !== undefined) writeFileSync(options.svg, drawCharts(charts(samples), 'minutes'))
  offerer.close()
  await server.stop()
} finally {
  await cleanUp()
}
