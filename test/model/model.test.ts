// The protocol under simulation: thousands of seeds, each a deployment with clients, faults and crashes of its own.

import { readFileSync } from 'node:fs'
import t from 'tap'
import { explore, range, tell } from './explore.ts'
import { runWorld } from './world.ts'

const SEEDS = 2_000
const LOSING_SEEDS = 200
const LIST_SEEDS = 300
const FIRST = 1
const REGRESSIONS = JSON.parse(readFileSync(new URL('./regressions.json', import.meta.url), 'utf8')) as {
  readonly seed: number
  readonly broke: string
  readonly losesStream?: boolean
}[]

// Conflicts and outages are everyday here, and nobody reads where they were made.
Error.stackTraceLimit = 2

t.test('seeds that once failed pass', async (t) => {
  for (const { seed, broke, losesStream = false } of REGRESSIONS) {
    const result = await runWorld(seed, {}, { losesStream })
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

t.test('every accepted identification is decided once and never contradicted', async (t) => {
  const startedAt = process.cpuUsage()
  const { seeds, events, steps, failed } = await explore(range(FIRST, SEEDS))
  const { user, system } = process.cpuUsage(startedAt)
  t.comment(`${seeds} seeds, ${events} events, ${steps} steps, ${Math.round((user + system) / 1e6)} s of CPU`)
  for (const result of failed) t.fail(tell(result))
  t.equal(seeds, SEEDS)
  t.ok(events > SEEDS * 5, 'the deployments did work')
})

t.test('where the log loses a partition, all that is accepted later is decided once', async (t) => {
  const { seeds, events, failed } = await explore(range(FIRST, LOSING_SEEDS), { options: { losesStream: true } })
  for (const result of failed) t.fail(tell(result))
  t.equal(seeds, LOSING_SEEDS)
  t.ok(events > LOSING_SEEDS * 5, 'the deployments did work')
})

t.test('what rules put on lists comes once, and erased visitors leave them', async (t) => {
  const { seeds, events, failed } = await explore(range(FIRST, LIST_SEEDS), { options: { lists: true, erasing: true } })
  for (const result of failed) t.fail(tell(result))
  t.equal(seeds, LIST_SEEDS)
  t.ok(events > LIST_SEEDS * 5, 'the deployments did work')
})
