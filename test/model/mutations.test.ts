// The checks can fail: each rule of the protocol, broken on purpose, is caught by the seed that is written beside it, which passes
// otherwise. A seed that catches it no longer, since runs have changed, gives way to the first of a few hundred that does: the run
// then names the seed to write down. The long run searches for every mutation, whether its seed is known or not; the quick one takes
// one mutation of each rule and the seed's word that it passes otherwise.

import t, { type Test } from 'tap'
import { DEPTH, sized } from '../helpers/depth.ts'
import { range, shortStacks } from './explore.ts'
import { MUTATIONS, type Mutation } from './mutations.ts'
import { ERASURE_MUTATIONS } from './mutations-erasures.ts'
import { HEAL_MUTATIONS } from './mutations-heals.ts'
import { LIST_MUTATIONS } from './mutations-lists.ts'
import { MERGE_MUTATIONS } from './mutations-merges.ts'
import { PIPELINING_MUTATIONS } from './mutations-pipelining.ts'
import { SHARD_MUTATIONS } from './mutations-shards.ts'
import { SPLIT_MUTATIONS } from './mutations-splits.ts'
import { runWorld } from './world.ts'

const SEEDS_MAX = 300
/** A protocol that never comes to rest is known sooner than where the protocol is the product's. */
const STEPS_MAX = 20_000
const ALL = [
  ...MUTATIONS,
  ...ERASURE_MUTATIONS,
  ...LIST_MUTATIONS,
  ...MERGE_MUTATIONS,
  ...HEAL_MUTATIONS,
  ...SPLIT_MUTATIONS,
  ...PIPELINING_MUTATIONS,
  ...SHARD_MUTATIONS,
]
/** Of each rule the mutation that is written first. */
const ONE_OF_EACH = [...new Map(ALL.toReversed().map((mutation) => [mutation.rule, mutation])).values()]

shortStacks(t)

/** The first of the seeds that catches the mutation, and which check did. */
async function findSeed({ tamper, options }: Mutation, seeds: Iterable<number>) {
  for (const seed of seeds) {
    const [failure] = (await runWorld(seed, tamper, { ...options, stepsMax: STEPS_MAX })).failures
    if (failure !== undefined) return { seed, check: failure.check }
  }
  return null
}

async function isCaught(t: Test, mutation: Mutation, seeds: Iterable<number>): Promise<void> {
  const found = await findSeed(mutation, seeds)
  if (found === null) {
    t.fail('no check fails')
    return
  }
  t.pass(`caught by: ${found.check} (seed ${found.seed})`)
  if (DEPTH === 'quick') return
  const { failures } = await runWorld(found.seed, {}, { ...mutation.options, stepsMax: STEPS_MAX })
  t.same(failures, [], `seed ${found.seed} passes with the protocol as it is`)
}

/** The known seed, and after it those of a search. */
function* known({ seed, from = 1 }: Mutation, t: Test): Generator<number> {
  yield seed
  t.comment(`seed ${seed} does not catch it any more; the one named below does`)
  yield* range(from, SEEDS_MAX)
}

for (const mutation of sized({ quick: ONE_OF_EACH, usual: ALL, long: ALL })) {
  const { rule, what, from = 1 } = mutation
  t.test(`${rule}: it is noticed when ${what}`, async (t) => {
    await isCaught(t, mutation, known(mutation, t))
    if (DEPTH === 'long') await isCaught(t, mutation, range(from, SEEDS_MAX))
  })
}

t.test('every rule has a mutation', async (t) => {
  const rules = new Set(ALL.map(({ rule }) => rule))
  t.same([...rules].sort(), [
    'R1',
    'R2',
    'R3',
    'R4',
    'R5',
    'R6',
    'R7',
    'R8',
    'R9',
    'erasures',
    'heals',
    'merges',
    'splits',
  ])
})
