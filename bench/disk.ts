// Bytes written and kept per event: what reached the device that the folder is on, by its own count, while nothing else writes to it,
// at each rate; then what lies in the folder, and what a visitor takes. npm run bench -- disk
// [--rates 500,2000,0] [--seconds 30] [--devices 20000]; rate 0 is as fast as it goes. Goal 6 KB written per event in all.

import { execFileSync } from 'node:child_process'
import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { readMetrics, type Scrape } from '../test/helpers/scrape.ts'
import { cleanUp, type Server, startServer } from '../test/helpers/server.ts'
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
const SECTORS_WRITTEN_AT = 6
const SECTOR_BYTES = 512
const STORES = ['log', 'kv', 'clickhouse'] as const

/**
 * What has been written to the device of a folder, that of others included: what processes count is what they wrote to sockets and pipes as well,
 * and of their pages the whole of what the kernel keeps together. Throws where the folder is on none, as in memory.
 */
function deviceBytes(dir: string): number {
  const device = statSync(dir).dev
  execFileSync('sync')
  const path = `/sys/dev/block/${Math.floor(device / 256)}:${device % 256}/stat`
  return Number(readFileSync(path, 'utf8').trim().split(/\s+/)[SECTORS_WRITTEN_AT]) * SECTOR_BYTES
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
  const [kvEmpty, ownEmpty] = [(await look(server)).sum('fingerpost_kv_bytes'), ownBytes(server.pid)]
  const offerer = await openOfferer({ url: server.url, publicKey: server.keys.public }, devices)
  let before = await settled(server)
  const kvBytes = before.sum('fingerpost_kv_bytes') - kvEmpty
  console.log(
    `${devices} visitors: ${Math.round(kvBytes / devices)} bytes of state each, ${Math.round((ownBytes(server.pid) - ownEmpty) / 1e6)} MB more memory of its own after their first visits`,
  )
  for (const rate of options.rates.split(',').map(Number)) {
    const written = deviceBytes(server.dataDir)
    const { answered } = await offerer.offer({ offered: rate === 0 ? null : rate, seconds })
    const after = await settled(server)
    const events = after.sum(DECIDED) - before.sum(DECIDED)
    const grown = (name: string, labels = {}) => after.sum(name, labels) - before.sum(name, labels)
    const flushes = (store: string) => grown('fingerpost_store_flush_duration_seconds_count', { store })
    const bytes = Math.round((deviceBytes(server.dataDir) - written) / events)
    console.log(
      `${answered}/s: ${bytes} bytes written per event of ${GOAL_BYTES} allowed (${(events / flushes('log')).toFixed(1)} events a flush of the log, ${(events / flushes('kv')).toFixed(0)} of the state)`,
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
