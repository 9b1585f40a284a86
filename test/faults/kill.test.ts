// The promise of the product: what was accepted survives kill -9 at any moment, once. The real process, under load.
// The long form: npm run faults -- --cycles 300.

import t from 'tap'
import { sized } from '../helpers/depth.ts'
import { testSeed } from '../helpers/rng.ts'
import { cleanUp } from '../helpers/server.ts'
import { KILLS, openEmbedded } from './embedded.ts'
import { runSeries } from './series.ts'

const EACH_ONCE = {
  cycles: 4,
  connections: 6,
  byIdMax: 60,
  loadMsMax: 600,
  answersMin: 60,
  ackedMin: 240,
  kinds: ['server', 'engine', 'both', 'starting'],
} as const
const MANY = { cycles: 15, connections: 16, byIdMax: 150, answersMin: 70, ackedMin: 1_000, kinds: KILLS } as const
const TEST_MS_MAX = 800_000

t.setTimeout(TEST_MS_MAX)
t.teardown(cleanUp)

t.test('what was accepted survives kills under load, exactly once, and the server comes back', async (t) => {
  const seed = testSeed()
  t.comment(`seed ${seed}`)
  const { kinds, ackedMin, ...size } = sized<typeof EACH_ONCE | typeof MANY>({ usual: EACH_ONCE, long: MANY })
  const summary = await runSeries({
    seed,
    ...size,
    open: () => openEmbedded({ kinds }),
    print: (line) => t.comment(line),
  })
  const { violation, readyMs, decidingMs, ...figures } = summary
  t.comment(JSON.stringify(figures))
  // How long that takes is for `npm run bench -- start` to say.
  t.comment(`ready after ${readyMs.join(', ')} ms; all partitions ${decidingMs.join(', ')} ms later`)
  t.equal(violation, null, 'every promise is kept')
  t.equal(figures.cycles, size.cycles)
  t.equal(figures.listed, figures.acked, 'every id that a client was told of is listed, and no other')
  t.ok(figures.acked >= ackedMin, 'there was a load')
  t.ok(figures.counts.unknown > 0, 'the kills hit requests in flight')
})
