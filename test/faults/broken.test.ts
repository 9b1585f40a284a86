// The negative control: the same harness, on builds with a promise broken, must say so within 20 kills.

import t from 'tap'
import { testSeed } from '../helpers/rng.ts'
import { cleanUp } from '../helpers/server.ts'
import { breakBuild, FAULTS } from './broken.ts'
import { KILLS, openEmbedded } from './embedded.ts'
import { runSeries } from './series.ts'

const CYCLES_MAX = 20

t.setTimeout(850_000)
t.teardown(cleanUp)

for (const fault of FAULTS) {
  t.test(`a build without "${fault.promise}" is caught`, async (t) => {
    const seed = testSeed()
    const main = breakBuild(fault)
    const { violation, cycles } = await runSeries({
      ...{ seed, cycles: CYCLES_MAX, connections: 8, byIdMax: 200, checkEvery: true },
      // A broken build may never answer: that is seen soon enough.
      settleMsMax: 12_000,
      open: () => openEmbedded({ main, kinds: KILLS, env: { FINGERPOST_DECISION_WAIT_MS: '3000' } }),
      print: () => undefined,
    })
    t.comment(`seed ${seed}, cycle ${cycles}: ${violation?.id} ${violation?.what}`)
    for (const line of violation?.history.slice(0, 6) ?? []) t.comment(`  ${line}`)
    t.ok(violation !== null, 'the checker names an id')
  })
}
