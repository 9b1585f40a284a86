// The protocol under simulation: a thousand seeds, each a deployment with clients, faults and crashes of its own. A further thousand
// and other deployments have files of their own, because files run side by side. The long form: npm run model -- --seeds 100000.

import { readFileSync } from 'node:fs'
import t from 'tap'
import { holds, tell } from './explore.ts'
import { runWorld } from './world.ts'

const SEEDS = 1_000
const REGRESSIONS = JSON.parse(readFileSync(new URL('./regressions.json', import.meta.url), 'utf8')) as {
  readonly seed: number
  readonly broke: string
  readonly losesStream?: boolean
  readonly erasing?: boolean
  readonly merging?: boolean
}[]

// Conflicts and outages are everyday here, and nobody reads where they were made.
Error.stackTraceLimit = 2

t.test('seeds that once failed pass', async (t) => {
  for (const { seed, broke, losesStream = false, erasing = false, merging = false } of REGRESSIONS) {
    const result = await runWorld(seed, {}, { losesStream, erasing, merging })
    t.ok(result.failures.length === 0, result.failures.length === 0 ? `seed ${seed}: ${broke}` : tell(result))
  }
})

t.test('the same seed is the same run', async (t) => {
  for (const seed of [3, 17, 42]) {
    const [one, two] = [await runWorld(seed), await runWorld(seed)]
    t.equal(one.traceHash, two.traceHash, `seed ${seed}`)
    t.equal(one.steps, two.steps)
  }
  const hashes = new Set((await Promise.all([1, 2, 3].map((seed) => runWorld(seed)))).map((result) => result.traceHash))
  t.equal(hashes.size, 3, 'and another seed is another run')
})

t.test('every accepted identification is decided once and never contradicted', (t) => holds(t, 1, SEEDS))
