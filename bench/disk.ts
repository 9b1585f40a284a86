// Bytes written and kept per event: what the process hands to the disk for its log and state and what ClickHouse's child writes, by the
// kernel's count of their write calls, at each rate; then what lies in the folder, and what a visitor takes. npm run bench -- disk
// [--rates 500,2000,0] [--seconds 30] [--devices 20000]; rate 0 is as fast as it goes. Goal 6 KB written per event in all.

import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { readMetrics, type Scrape } from '../test/helpers/scrape.ts'
import { cleanUp, type Server, startServer } from '../test/helpers/server.ts'
import { childrenOf } from './measure.ts'
import { openOfferer } from './offer.ts'

const { values: options } = parseArgs({
  allowPositionals: true,
  options: {
    rates: { type: 'string', default: '500,2000,0' },
    seconds: { type: 'string', default: '30' },
    devices: { type: 'string', default: '20000' },
  },
})
const seconds = Number(options.seconds)
const devices = Number(options.devices)
const GOAL_BYTES = 6_000
/** The longest time between two checkpoints. */
const CHECKPOINT_MS = 5_000
const STORES = ['log', 'kv', 'clickhouse'] as const

/** Of the threads that write files; the main thread's are answers and rows on their way to the engine, through sockets and pipes. */
function writtenBytes(pid: number): number {
  const threads = readdirSync(`/proc/${pid}/task`).filter((id) => Number(id) !== pid)
  return threads.reduce((sum, id) => {
    const [, bytes = '0'] = /^wchar: (\d+)/m.exec(readFileSync(`/proc/${pid}/task/${id}/io`, 'utf8')) ?? []
    return sum + Number(bytes)
  }, 0)
}

function folderBytes(dir: string): number {
  const [bytes = '0'] = execFileSync('du', ['-s', '--block-size=1', dir], { encoding: 'utf8' }).split('\t')
  return Number(bytes)
}

function ownBytes(pid: number): number {
  const [, kb = '0'] = /^RssAnon:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
  return Number(kb) * 1_024
}

const look = async ({ url }: Server): Promise<Scrape> => readMetrics(await (await fetch(`${url}/metrics`)).text())
const DECIDED = 'fingerpost_identifications_decided_total'

/** Until ClickHouse has everything and the state is written. */
async function settled(server: Server): Promise<Scrape> {
  for (;;) {
    const metrics = await look(server)
    if (metrics.sum('fingerpost_sink_rows_total') >= metrics.sum(DECIDED)) break
    await sleep(200)
  }
  await sleep(2 * CHECKPOINT_MS)
  return look(server)
}

try {
  const server = await startServer({ asShipped: true, env: { FINGERPOST_TRUSTED_PROXIES: '127.0.0.1/32' } })
  const [engine] = childrenOf(server.pid)
  if (engine === undefined) throw new Error('the server has no engine')
  const [kvEmpty, ownEmpty] = [(await look(server)).sum('fingerpost_kv_bytes'), ownBytes(server.pid)]
  const offerer = await openOfferer({ url: server.url, publicKey: server.keys.public }, devices)
  let before = await settled(server)
  const kvBytes = before.sum('fingerpost_kv_bytes') - kvEmpty
  console.log(
    `${devices} visitors: ${Math.round(kvBytes / devices)} bytes of state each, ${Math.round((ownBytes(server.pid) - ownEmpty) / 1e6)} MB more memory of its own after their first visits`,
  )
  for (const rate of options.rates.split(',').map(Number)) {
    const [served, sunk] = [writtenBytes(server.pid), writtenBytes(engine)]
    const { answered } = await offerer.offer({ offered: rate === 0 ? null : rate, seconds })
    const after = await settled(server)
    const events = after.sum(DECIDED) - before.sum(DECIDED)
    const grown = (name: string, labels = {}) => after.sum(name, labels) - before.sum(name, labels)
    const flushes = (store: string) => grown('fingerpost_store_flush_duration_seconds_count', { store })
    const [own, engines] = [(writtenBytes(server.pid) - served) / events, (writtenBytes(engine) - sunk) / events]
    console.log(
      `${answered}/s: ${Math.round(own)} bytes written per event for log and state (${(events / flushes('log')).toFixed(1)} events a flush of the log, ${(events / flushes('kv')).toFixed(0)} of the state), ` +
        `${Math.round(engines)} by ClickHouse: ${Math.round(own + engines)} of ${GOAL_BYTES} allowed`,
    )
    before = after
  }
  const events = before.sum(DECIDED)
  const kept = STORES.map((store) => `${store} ${Math.round(folderBytes(join(server.dataDir, store)) / events)}`)
  console.log(`kept per event of ${events}, bytes on the disk: ${kept.join(', ')}`)
  offerer.close()
  await server.stop()
} finally {
  await cleanUp()
}
