// Some sequences of calls against a model of what must be there; `npm run fuzz:api` does many.

import t from 'tap'
import { testSeed } from '../helpers/rng.ts'
import { cleanUp, startServer } from '../helpers/server.ts'
import { fuzzStates } from './fuzz-states.ts'

t.teardown(cleanUp)

const TIME_MS_MAX = 15_000
const seed = testSeed()
t.comment(`SEED=${seed}`)

t.test(
  'whatever is made, changed and removed in whatever order, what is read back is what must be there',
  async (t) => {
    const server = await startServer()
    const untilMs = performance.now() + TIME_MS_MAX
    const result = await fuzzStates(server, { seed, sequencesMax: 500, untilMs })
    t.equal(result.finding, null, `seed ${seed}`)
    t.ok(result.calls > 20, `${result.calls} calls in ${result.sequences} sequences`)
  },
)
