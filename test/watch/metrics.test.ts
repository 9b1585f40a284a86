// What a process of several shards says at /metrics: names that Prometheus takes, series that exist before anything happens, and
// sums that are exact whichever thread counted.

import { spawnSync } from 'node:child_process'
import t from 'tap'
import { markBackup } from '../../src/ops/backup-mark.ts'
import { browserBody, clientOf } from '../helpers/client.ts'
import { sized } from '../helpers/depth.ts'
import { scrape } from '../helpers/scrape.ts'
import { cleanUp, startServer } from '../helpers/server.ts'

t.teardown(cleanUp)

const SHARDS = 3
const VISITS = sized({ quick: 20, usual: 60, long: 1_000 })

const server = await startServer({
  env: {
    FINGERPOST_ENGINE_THREADS: String(SHARDS),
    FINGERPOST_ENGINE_THREADS_MIN: String(SHARDS),
    FINGERPOST_LOG_DURABILITY: 'relaxed',
  },
})
const first = await scrape(server.url)

t.test('promtool finds nothing to say about names and types', async (t) => {
  const { stdout, stderr, status } = spawnSync('promtool', ['check', 'metrics'], {
    input: first.text,
    encoding: 'utf8',
  })
  t.equal(status, 0, stdout + stderr)
  t.equal(stdout + stderr, '')
})

t.test('what Node measures has the names that stock dashboards know', async (t) => {
  for (const name of ['process_cpu_seconds_total', 'process_resident_memory_bytes', 'nodejs_eventloop_lag_seconds']) {
    t.ok(first.types.has(name), name)
  }
  const others = [...first.types.keys()].filter((name) => !/^(?:fingerpost|process|nodejs)_/.test(name))
  t.same(others, [], 'everything else is the product’s own')
})

t.test('every counter and histogram has its series at 0 before anything happened', async (t) => {
  const named = new Set(first.samples.map(({ name }) => name))
  for (const [name, type] of first.types) {
    if (type === 'counter') t.ok(named.has(name), name)
    // A route nobody has asked has no durations; that it failed is counted from the start on.
    if (type === 'histogram') t.ok(named.has(`${name}_count`), name)
  }
  const failures = first.samples.filter(({ name, labels }) => name === HTTP && labels.code === '500')
  t.ok(failures.some(({ labels }) => labels.route === '/v1/identify' && labels.method === 'POST'))
  t.ok(failures.some(({ labels }) => labels.route === '/v1/events/:id' || labels.route === '/v1/events/:requestId'))
  t.ok(failures.every(({ value }) => value === 0))
})

t.test('buckets of durations reach to fifteen seconds', async (t) => {
  const bounds = first.samples
    .filter(({ name }) => name === 'fingerpost_http_request_duration_seconds_bucket')
    .map(({ labels }) => Number(labels.le === '+Inf' ? Number.POSITIVE_INFINITY : labels.le))
  t.ok(bounds.includes(15))
})

t.test('what runs is told by build_info', async (t) => {
  const info = first.samples.find(({ name }) => name === 'fingerpost_build_info')
  t.match(info?.labels, { version: /^\d/, commit: /./, node: process.version, driver: /uws|node/, mode: 'embedded' })
})

t.test('a backup is told of as soon as the data folder knows of it', async (t) => {
  const LAST = 'fingerpost_backup_last_timestamp_seconds'
  t.equal(first.sum(LAST), 0)
  markBackup(server.dataDir, '2026-01-02T03:04:05.000Z')
  t.equal((await scrape(server.url)).sum(LAST), Date.UTC(2026, 0, 2, 3, 4, 5) / 1_000)
})

t.test('figures of all shards are added up exactly', async (t) => {
  const client = clientOf(server)
  for (let i = 0; i < VISITS; i += 10) {
    const answers = await Promise.all(
      Array.from({ length: 10 }, () => client.identify(browserBody(), { headers: { connection: 'close' } })),
    )
    for (const { status } of answers) t.equal(status, 200)
  }
  const after = await scrape(server.url)
  t.equal(after.sum(HTTP, { route: '/v1/identify', method: 'POST', code: '200' }), VISITS)
  t.equal(after.sum('fingerpost_http_request_duration_seconds_count', { route: '/v1/identify' }), VISITS)
  t.equal(after.sum('fingerpost_identifications_decided_total'), VISITS)
})

const HTTP = 'fingerpost_http_requests_total'
