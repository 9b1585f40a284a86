// The promise of the product: what was accepted survives kill -9 at any moment, once. The real process, under load.

import t from 'tap'
import { testSeed } from '../helpers/rng.ts'
import { cleanUp } from '../helpers/server.ts'
import { KILLS, openEmbedded } from './embedded.ts'
import { runSeries } from './series.ts'

const CYCLES = 15
const TEST_MS_MAX = 800_000

t.setTimeout(TEST_MS_MAX)
t.teardown(cleanUp)

t.test('what was accepted survives 15 kills under load, exactly once, and the server comes back', async (t) => {
  const seed = testSeed()
  t.comment(`seed ${seed}`)
  const summary = await runSeries({
    seed,
    cycles: CYCLES,
    connections: 16,
    open: () => openEmbedded({ kinds: KILLS }),
    byIdMax: 150,
    print: (line) => t.comment(line),
  })
  const { violation, readyMs, decidingMs, ...figures } = summary
  t.comment(JSON.stringify(figures))
  // How long that takes is for `npm run bench -- start` to say.
  t.comment(`ready after ${readyMs.join(', ')} ms; all partitions ${decidingMs.join(', ')} ms later`)
  t.equal(violation, null, 'every promise is kept')
  t.equal(figures.cycles, CYCLES)
  t.equal(figures.listed, figures.acked, 'every id that a client was told of is listed, and no other')
  t.ok(figures.acked > 1_000, 'there was a load')
  t.ok(figures.counts.unknown > 0, 'the kills hit requests in flight')
})
