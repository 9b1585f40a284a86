// Lateness of the event loop as a scrape tells it: a loop that stood still is told, and what is of a process survives adding up.

import { Registry } from 'prom-client'
import t from 'tap'
import { measureEventLoopLag } from '../../src/lib/event-loop-lag.ts'
import { openMetrics } from '../../src/lib/metrics.ts'
import { until } from '../helpers/processes.ts'
import { readMetrics } from '../helpers/scrape.ts'

const STOOD_STILL_MS = 1_000
/** It may have been due this long after the loop stood still. */
const TICK_MS = 500
const BUILD = { version: '1', commit: 'c', node: process.version, driver: 'uws', mode: 'embedded' }

const named = async (registry: Registry, name: string) => readMetrics(await registry.metrics()).sum(name)

t.test('a loop that stood still is told by the next scrape', async (t) => {
  const registry = new Registry()
  measureEventLoopLag(registry)
  t.equal(await named(registry, 'nodejs_eventloop_lag_max_seconds'), 0, 'nothing was measured yet')
  const from = performance.now()
  while (performance.now() - from < STOOD_STILL_MS);
  const atLeast = (STOOD_STILL_MS - TICK_MS) / 1_000
  await until(
    'a scrape behind the tick',
    60_000,
    async () => (await named(registry, 'nodejs_eventloop_lag_max_seconds')) >= atLeast,
  )
})

t.test('what is of the process is told although its threads are added up', async (t) => {
  const { types, sum } = readMetrics(await openMetrics(BUILD).text([await openMetrics(null, '0').samples()]))
  t.equal(types.get('process_start_time_seconds'), 'gauge')
  t.ok(sum('process_start_time_seconds') > 1e9)
  t.equal([...types.keys()].filter((name) => name.startsWith('nodejs_eventloop_lag_')).length, 8)
})
