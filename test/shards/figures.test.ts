// What shards have counted is added up, and does not fall when one of them is lost or hangs.

import { Registry } from 'prom-client'
import t from 'tap'
import { Unavailable } from '../../src/lib/failures.ts'
import { openMetrics } from '../../src/lib/metrics.ts'
import { addUp, openDeclarations, type Samples } from '../../src/lib/prometheus.ts'
import { openFigures } from '../../src/shards/figures.ts'
import { readMetrics } from '../helpers/scrape.ts'

function openThread() {
  const registry = new Registry()
  const { counter, gauge, histogram } = openDeclarations(registry)
  const events = counter('events_total', 'Events.', ['partition'])
  const held = gauge('held', 'Held now.')
  const took = histogram('took_seconds', 'How long.', [1, 10])
  return { events, held, took, samples: () => registry.getMetricsAsJSON() as Promise<Samples> }
}

async function openWorld() {
  const threads = [openThread(), openThread()]
  let ask = (index: number): Promise<Samples> => (threads[index] as ReturnType<typeof openThread>).samples()
  const figures = openFigures({
    count: 2,
    restarts: openMetrics(null).shardRestarts,
    clock: { sleep: () => new Promise((resolve) => setImmediate(resolve)) },
    ask: (index) => ask(index),
  })
  return {
    threads,
    figures,
    read: async () => readMetrics(await addUp(await figures.samples()).metrics()),
    break(how: (index: number) => Promise<Samples>) {
      const before = ask
      ask = (index) => (index === 0 ? how(index) : before(index))
      return () => {
        ask = before
      }
    },
  }
}

t.test('counters and histograms of a lost shard stay in the sums, its gauges do not', async (t) => {
  const { threads, figures, read } = await openWorld()
  for (const [i, { events, held, took }] of threads.entries()) {
    events.inc({ partition: String(i) }, 5)
    held.set(2)
    took.observe(3, 4)
  }
  t.equal((await read()).sum('fingerpost_held'), 4)
  for (let losses = 0; losses < 3; losses++) {
    figures.lost(0)
    threads[0] = openThread()
    threads[0].events.inc({ partition: '0' }, 1)
    const now = await read()
    t.equal(now.sum('fingerpost_events_total', { partition: '0' }), 6 + losses)
    t.equal(now.sum('fingerpost_events_total', { partition: '1' }), 5)
    t.equal(now.sum('fingerpost_took_seconds_count'), 8)
    t.equal(now.sum('fingerpost_took_seconds_sum'), 24)
    t.equal(now.sum('fingerpost_held'), 2, 'what is held now is held by the others')
  }
})

for (const [what, answer] of [
  ['hangs', () => new Promise<Samples>(() => undefined)],
  ['is lost while it is asked', () => Promise.reject(new Unavailable('lost'))],
] as const) {
  t.test(`a scrape is answered while a shard ${what}, with what it told last`, async (t) => {
    const world = await openWorld()
    world.threads[0]?.events.inc({ partition: '0' }, 5)
    await world.read()
    const mend = world.break(answer)
    t.equal((await world.read()).sum('fingerpost_events_total'), 5)
    mend()
    t.equal((await world.read()).sum('fingerpost_events_total'), 5, 'nothing is counted twice')
  })
}
