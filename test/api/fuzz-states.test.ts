// Some sequences of calls against a model of what must be there; `npm run fuzz:api` does many.

import t from 'tap'
import { DEPTH, sized } from '../helpers/depth.ts'
import { testSeed } from '../helpers/rng.ts'
import { cleanUp } from '../helpers/server.ts'
import { openTenant } from '../helpers/tenant.ts'
import { fuzzStates } from './fuzz-states.ts'

t.teardown(cleanUp)
t.setTimeout(1_400_000)

const SEQUENCES = sized({ quick: 3, usual: 20, long: 500 })
const seed = testSeed()
t.comment(`SEED=${seed}`)

t.test(
  'whatever is made, changed and removed in whatever order, what is read back is what must be there',
  async (t) => {
    const { server } = await openTenant()
    const { finding, calls, sequences } = await fuzzStates(server, { seed, sequencesMax: SEQUENCES })
    t.equal(finding, null, `seed ${seed}`)
    t.equal(sequences, SEQUENCES, `${calls} calls in ${sequences} sequences`)
    // Some sequences are drawn empty, of a few perhaps all.
    if (DEPTH !== 'quick') t.ok(calls >= SEQUENCES, `${calls} calls`)
  },
)
