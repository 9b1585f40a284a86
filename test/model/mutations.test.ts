// The checks can fail: each rule of the protocol, broken on purpose, is caught within a few hundred seeds that pass otherwise.

import t from 'tap'
import { MUTATIONS } from './mutations.ts'
import { ERASURE_MUTATIONS } from './mutations-erasures.ts'
import { LIST_MUTATIONS } from './mutations-lists.ts'
import { MERGE_MUTATIONS } from './mutations-merges.ts'
import { SPLIT_MUTATIONS } from './mutations-splits.ts'
import { runWorld } from './world.ts'

const SEEDS_MAX = 300

Error.stackTraceLimit = 2

const ALL = [...MUTATIONS, ...ERASURE_MUTATIONS, ...LIST_MUTATIONS, ...MERGE_MUTATIONS, ...SPLIT_MUTATIONS]

for (const { rule, what, tamper, options, seed: first = 1 } of ALL) {
  t.test(`${rule}: it is noticed when ${what}`, async (t) => {
    let seed = first - 1
    let caught: string | undefined
    while (caught === undefined && seed < first + SEEDS_MAX) {
      seed++
      const { failures } = await runWorld(seed, tamper, options)
      caught = failures[0]?.check
    }
    t.ok(caught !== undefined, `caught by: ${caught} (seed ${seed})`)
    const { failures } = await runWorld(seed, {}, options)
    t.same(failures, [], `seed ${seed} passes with the protocol as it is`)
  })
}

t.test('every rule has a mutation', async (t) => {
  const rules = new Set(ALL.map(({ rule }) => rule))
  t.same([...rules].sort(), ['R1', 'R2', 'R3', 'R4', 'R5', 'R6', 'R7', 'R8', 'R9', 'erasures', 'merges', 'splits'])
})
