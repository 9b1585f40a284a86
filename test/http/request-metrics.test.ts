// What is counted in plain numbers reads as if the library had counted it.

import { Counter, Histogram, Registry } from 'prom-client'
import t from 'tap'
import { openRequestMetrics } from '../../src/lib/request-metrics.ts'
import { rng, testSeed } from '../helpers/rng.ts'

const BUCKETS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15]

t.test('every answer is in the totals of the next scrape, as the library would write them', async (t) => {
  const seed = testSeed()
  t.comment(`seed ${seed}`)
  const r = rng(seed)
  const registry = new Registry()
  const { observe } = openRequestMetrics(registry)
  const expected = new Registry()
  const requests = new Counter({
    name: 'fingerpost_http_requests_total',
    help: 'Answered requests by route, method and status code.',
    labelNames: ['route', 'method', 'code'],
    registers: [expected],
  })
  const seconds = new Histogram({
    name: 'fingerpost_http_request_duration_seconds',
    help: 'Time from the arrival of the headers to the answer.',
    labelNames: ['route'],
    buckets: BUCKETS,
    registers: [expected],
  })
  // The order of labels and of samples says nothing.
  const samples = async (of: Registry) =>
    (await of.metrics())
      .split('\n')
      .map((line) => line.replace(/\{(.*)\}/, (_, labels: string) => `{${labels.split(',').sort().join(',')}}`))
      .sort()
  for (let scrape = 0; scrape < 4; scrape++) {
    for (let i = 0; i < 500; i++) {
      const route = r.pick(['/v1/identify', '(framing)', '/v1/"odd\\"\n'])
      const [method, code] = [r.pick(['GET', 'POST', 'OTHER']), r.pick([200, 202, 400, 499])]
      // Also what is exactly as long as a bucket, and longer than all.
      const ms = r.chance(0.3) ? r.pick(BUCKETS) * 1_000 : r.float() * 10 ** r.int(5)
      observe(route, method, code, ms)
      requests.inc({ route, method, code })
      seconds.observe({ route }, ms / 1_000)
    }
    t.same(await samples(registry), await samples(expected))
  }
})
