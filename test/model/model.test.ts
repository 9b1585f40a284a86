// The protocol under simulation: each seed is a deployment with clients, faults and crashes of its own. Deployments of other kinds
// have files of their own. The seeds are the same in every run, so that a red run is one's own doing: on others faults are known that
// come once in many thousand. The long form: npm run model -- --seeds 100000 [--from N].

import { readFileSync } from 'node:fs'
import t from 'tap'
import { sized } from '../helpers/depth.ts'
import { holds, shortStacks, tell } from './explore.ts'
import { runWorld, type WorldOptions } from './world.ts'

const SEEDS = sized({ quick: 4, usual: 110, long: 1_000 })
/** The newest ones alone where time is short. */
const REGRESSIONS_MAX = sized({ quick: 3, usual: 1_000, long: 1_000 })
const SAME_SEEDS = sized({ quick: [17], usual: [3, 17, 42], long: [3, 17, 42] })
const REGRESSIONS = JSON.parse(
  readFileSync(new URL('./regressions.json', import.meta.url), 'utf8'),
) as (WorldOptions & {
  readonly seed: number
  readonly broke: string
})[]

shortStacks(t)

t.test('seeds that once failed pass', async (t) => {
  for (const { seed, broke, ...options } of REGRESSIONS.slice(-REGRESSIONS_MAX)) {
    const result = await runWorld(seed, {}, options)
    t.ok(result.failures.length === 0, result.failures.length === 0 ? `seed ${seed}: ${broke}` : tell(result))
  }
})

t.test('the same seed is the same run', async (t) => {
  const hashes = new Set<number>()
  for (const seed of SAME_SEEDS) {
    const [one, two] = [await runWorld(seed), await runWorld(seed)]
    t.equal(one.traceHash, two.traceHash, `seed ${seed}`)
    t.equal(one.steps, two.steps)
    hashes.add(one.traceHash)
  }
  hashes.add((await runWorld(1)).traceHash)
  t.equal(hashes.size, SAME_SEEDS.length + 1, 'and another seed is another run')
})

t.test('every accepted identification is decided once and never contradicted', (t) => holds(t, 1, SEEDS))

t.test('who reads a visitor finds every visit that was answered before, whoever decided it', (t) =>
  holds(t, 1, sized({ quick: 3, usual: 35, long: 200 }), { reading: true }),
)
