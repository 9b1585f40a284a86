// A hundred requests to every endpoint that the document allows, and a hundred that it does not; `npm run fuzz:api` sends many.

import t from 'tap'
import { testSeed } from '../helpers/rng.ts'
import { cleanUp, startServer } from '../helpers/server.ts'
import { fuzzApi } from './fuzz-api.ts'

t.teardown(cleanUp)
// Two hundred requests to each of some sixty endpoints.
t.setTimeout(1_400_000)

const seed = testSeed()
t.comment(`SEED=${seed}`)

t.test(
  'requests as the document has them are served, all others refused by name, and nothing fails or hangs',
  async (t) => {
    const server = await startServer()
    const result = await fuzzApi(server, { runs: 100, seed })
    t.same(result.findings, [], `seed ${seed}`)
    t.ok(result.requests > 8_000, `${result.requests} requests`)
    t.ok(result.served > result.requests / 10, `${result.served} of them were served`)
    t.doesNotThrow(() => process.kill(server.pid, 0), 'the process is alive')
  },
)
