// `npm run fuzz:api -- --requests 1000000 --seed 7`: the fuzz of the API for as long as one likes, with --driver node
// over that driver of HTTP. Ends with 1 on a finding.

import { parseArgs } from 'node:util'
import { cleanUp, startServer } from '../helpers/server.ts'
import { fuzzApi } from './fuzz-api.ts'
import { fuzzStates } from './fuzz-states.ts'

const { values } = parseArgs({
  options: { requests: { type: 'string' }, seed: { type: 'string' }, driver: { type: 'string', default: 'auto' } },
})
const requests = Number(values.requests ?? 1_000_000)
const firstSeed = Number(values.seed ?? Date.now() >>> 0)
if (!Number.isSafeInteger(requests) || requests < 1 || !Number.isSafeInteger(firstSeed) || firstSeed < 0) {
  console.error('--requests and --seed are whole numbers')
  process.exit(2)
}
const startedAt = performance.now()
const RUNS = 500
/** For sequences of calls against a model, in each round. */
const STATES_MS = 60_000
let done = 0
try {
  // A server of its own for each round: what earlier rounds have filled must not hide what an empty one would do.
  for (let seed = firstSeed; done < requests && process.exitCode !== 1; seed++) {
    console.log(`seed ${seed}`)
    const server = await startServer({ env: { FINGERPOST_HTTP_DRIVER: values.driver } })
    const untilMs = performance.now() + STATES_MS
    const states = await fuzzStates(server, { seed, sequencesMax: 5_000, untilMs })
    console.log(`${String(states.calls).padStart(6)} calls in ${states.sequences} sequences against the model`)
    const result = await fuzzApi(server, {
      runs: RUNS,
      seed,
      onDone: (endpoint, count) => console.log(`${String(count).padStart(6)} ${endpoint}`),
    })
    done += result.requests + states.calls
    const seconds = (performance.now() - startedAt) / 1_000
    console.log(
      `${done} of ${requests}, ${result.served} served in this round, ${Math.round(done / seconds)} per second`,
    )
    const findings = [...result.findings, ...(states.finding === null ? [] : [states.finding])]
    for (const finding of findings) console.log(`FINDING with seed ${seed}: ${finding}`)
    if (findings.length > 0) process.exitCode = 1
    await server.stop()
  }
} finally {
  await cleanUp()
}
