// A Redis whose master dies and whose standby is promoted, under load: the address stays, and what was accepted is there once. The
// long form: npm run faults -- --failover --cycles 40.

import t from 'tap'
import { sized } from '../helpers/depth.ts'
import { testSeed } from '../helpers/rng.ts'
import { cleanUp } from '../helpers/server.ts'
import { openCluster } from './cluster.ts'
import { runSeries } from './series.ts'

const KINDS = ['fail redis over', 'kill engine'] as const
const SIZE = sized({
  usual: { cycles: 3, connections: 4, byIdMax: 40, loadMsMax: 1_000, answersMin: 30 },
  long: { cycles: 8, connections: 8, byIdMax: 150, loadMsMax: 4_000, answersMin: 70 },
})

t.setTimeout(600_000)
t.teardown(cleanUp)

t.test('what was accepted survives a failover of Redis, exactly once', async (t) => {
  const seed = testSeed()
  t.comment(`seed ${seed}`)
  const { violation, readyMs, decidingMs, ...figures } = await runSeries({
    seed,
    ...SIZE,
    open: () =>
      openCluster({
        kinds: KINDS,
        roles: ['ingress,api', 'engine,jobs,dispatcher', 'engine,jobs'],
        partitions: 2,
        durations: { outageMsMax: 1_000 },
      }),
    print: (line) => t.comment(line),
  })
  t.comment(JSON.stringify(figures))
  t.equal(violation, null, 'every promise is kept')
  t.equal(figures.cycles, SIZE.cycles)
  t.equal(figures.listed, figures.acked, 'every id that a client was told of is listed, and no other')
  t.ok(figures.acked >= SIZE.cycles * SIZE.answersMin, 'there was a load')
})
