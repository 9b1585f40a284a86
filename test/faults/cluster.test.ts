// The promise of the product in a cluster: what was accepted survives whatever happens to a role or to a server under it, once.
// The long form: npm run faults -- --cluster --cycles 100.

import t from 'tap'
import { sized } from '../helpers/depth.ts'
import { testSeed } from '../helpers/rng.ts'
import { cleanUp } from '../helpers/server.ts'
import { type ClusterTargetOptions, openCluster } from './cluster.ts'
import { runSeries } from './series.ts'

const KINDS = [
  'kill engine',
  'wipe redis',
  'kill nats',
  'cut replies of clickhouse',
  'pause engine',
  'kill everything',
  'restart roles one by one',
] as const

const SHORT: ClusterTargetOptions = {
  kinds: KINDS,
  roles: ['ingress,api', 'engine,jobs,dispatcher', 'engine,jobs'],
  partitions: 2,
  durations: { outageMsMax: 500, pauseMsMax: 4_500, networkMsMax: 1_000 },
}
const SHORT_LOAD = { ...{ connections: 4, byIdMax: 40, loadMsMax: 500, answersMin: 30 }, habits: { thinkMs: 100 } }
const LONG_LOAD = { connections: 8, byIdMax: 150, answersMin: 70 }

t.setTimeout(800_000)
t.teardown(cleanUp)

t.test('what was accepted survives faults of every part of a cluster, exactly once', async (t) => {
  const seed = testSeed()
  t.comment(`seed ${seed}`)
  const options = sized({ usual: SHORT, long: { kinds: KINDS } })
  const load = sized({ usual: SHORT_LOAD, long: LONG_LOAD })
  const { violation, readyMs, decidingMs, ...figures } = await runSeries({
    seed,
    cycles: KINDS.length,
    ...load,
    open: () => openCluster(options),
    print: (line) => t.comment(line),
  })
  t.comment(JSON.stringify(figures))
  t.comment(`ready after ${readyMs.join(', ')} ms; all partitions ${decidingMs.join(', ')} ms later`)
  t.equal(violation, null, 'every promise is kept')
  t.equal(figures.cycles, KINDS.length)
  t.equal(figures.listed, figures.acked, 'every id that a client was told of is listed, and no other')
  t.ok(figures.acked >= KINDS.length * load.answersMin, 'there was a load')
})
