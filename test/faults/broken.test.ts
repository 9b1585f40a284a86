// The negative control: the same harness, on builds with a promise broken, must say so, mostly at the first kill.

import t from 'tap'
import { sized } from '../helpers/depth.ts'
import { testSeed } from '../helpers/rng.ts'
import { cleanUp } from '../helpers/server.ts'
import { breakBuild, FAULTS } from './broken.ts'
import { KILLS, openEmbedded } from './embedded.ts'
import { runSeries } from './series.ts'

const CYCLES_MAX = 20
/** What shows a broken promise soonest: many strangers, and kills at the moment of an answer. */
const SHORT = {
  connections: 12,
  byIdMax: 60,
  loadMsMax: 100,
  answersMin: 60,
  atAnswer: true,
  kinds: ['server'],
} as const
const NEW_SHARE = 0.5
/** All work is done by one partition, which has always decided some that no checkpoint has yet. */
const ENV = sized<Readonly<Record<string, string>>>({ usual: { FINGERPOST_DATA_PARTITIONS: '1' }, long: {} })
/** As in the campaign. */
const LONG = { connections: 8, byIdMax: 200, kinds: KILLS } as const

t.setTimeout(850_000)
t.teardown(cleanUp)

for (const fault of FAULTS) {
  t.test(`a build without "${fault.promise}" is caught`, async (t) => {
    const seed = testSeed()
    const main = breakBuild(fault)
    const { kinds, ...config } = sized<typeof SHORT | typeof LONG>({ usual: SHORT, long: LONG })
    const habits = sized({ usual: { newShare: NEW_SHARE, nonceShare: fault.nonceShare }, long: {} })
    const { violation, cycles } = await runSeries({
      seed,
      cycles: CYCLES_MAX,
      checkEvery: true,
      habits,
      ...config,
      open: () => openEmbedded({ main, kinds, env: { ...ENV, FINGERPOST_DECISION_WAIT_MS: '3000' } }),
      print: () => undefined,
    })
    t.comment(`seed ${seed}, cycle ${cycles}: ${violation?.id} ${violation?.what}`)
    for (const line of violation?.history.slice(0, 6) ?? []) t.comment(`  ${line}`)
    t.ok(violation !== null, 'the checker names an id')
  })
}
