// The checks can fail: each rule of the protocol, broken on purpose, is caught within a few hundred seeds that pass otherwise.

import t from 'tap'
import { MUTATIONS } from './mutations.ts'
import { runWorld } from './world.ts'

const SEEDS_MAX = 300

Error.stackTraceLimit = 2

for (const { rule, what, tamper } of MUTATIONS) {
  t.test(`${rule}: it is noticed when ${what}`, async (t) => {
    let seed = 0
    let caught: string | undefined
    while (caught === undefined && seed < SEEDS_MAX) {
      seed++
      const { failures } = await runWorld(seed, tamper)
      caught = failures[0]?.check
    }
    t.ok(caught !== undefined, `caught by: ${caught} (seed ${seed})`)
    const { failures } = await runWorld(seed)
    t.same(failures, [], `seed ${seed} passes with the protocol as it is`)
  })
}

t.test('every rule has a mutation', async (t) => {
  const rules = new Set(MUTATIONS.map(({ rule }) => rule))
  t.same([...rules].sort(), ['R1', 'R2', 'R3', 'R4', 'R5', 'R6', 'R7', 'R8', 'R9'])
})
