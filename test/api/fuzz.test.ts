// As many requests to every endpoint that the document allows as ones that it does not: some in a short run, a hundred each in
// the long one; `npm run fuzz:api` sends many.

import t from 'tap'
import { sized } from '../helpers/depth.ts'
import { testSeed } from '../helpers/rng.ts'
import { cleanUp } from '../helpers/server.ts'
import { openTenant, removeAlerts } from '../helpers/tenant.ts'
import { fuzzApi } from './fuzz-api.ts'

t.teardown(cleanUp)
// Two hundred requests to each of some sixty endpoints in the long run.
t.setTimeout(1_400_000)

const RUNS = sized({ quick: 2, usual: 10, long: 100 })
const ENDPOINTS_MIN = 50
const seed = testSeed()
t.comment(`SEED=${seed}`)

t.test(
  'requests as the document has them are served, all others refused by name, and nothing fails or hangs',
  async (t) => {
    const { server, send } = await openTenant()
    t.teardown(() => removeAlerts({ server, send }))
    const { findings, requests, served } = await fuzzApi(server, { runs: RUNS, seed })
    t.same(findings, [], `seed ${seed}`)
    t.ok(requests > RUNS * ENDPOINTS_MIN * 1.6, `${requests} requests`)
    t.ok(served > requests / 10, `${served} of them were served`)
    t.doesNotThrow(() => process.kill(server.pid, 0), 'the process is alive')
  },
)
