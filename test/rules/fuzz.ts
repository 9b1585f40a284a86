// `npm run fuzz:rules -- --pairs 1000000 --seed 7`: the differential fuzz for as long as one likes. Ends with 1 on a finding.

import { parseArgs } from 'node:util'
import { LIST_ENTRIES, listSource } from '../helpers/stored-events.ts'
import { fuzzRules } from './fuzz-rules.ts'
import { openSqlEngine } from './sql-engine.ts'

const { values } = parseArgs({ options: { pairs: { type: 'string' }, seed: { type: 'string' } } })
const pairs = Number(values.pairs ?? 1_000_000)
const seed = Number(values.seed ?? Date.now() >>> 0)
if (!Number.isSafeInteger(pairs) || pairs < 1 || !Number.isSafeInteger(seed) || seed < 0) {
  console.error('--pairs and --seed are whole numbers')
  process.exit(2)
}
console.log(`seed ${seed}, ${pairs} pairs of a rule and a set of events`)
const startedAt = performance.now()
const seconds = () => (performance.now() - startedAt) / 1_000
const engine = await openSqlEngine(listSource, Object.keys(LIST_ENTRIES))
try {
  let shown = 0
  const result = await fuzzRules(engine, seed, pairs, (done) => {
    if (seconds() < shown + 5 && done < pairs) return
    shown = seconds()
    console.log(`${done} of ${pairs}, ${Math.round(done / shown)} per second`)
  })
  if (result.finding === null) {
    const share = ((100 * result.held) / result.answers).toFixed(1)
    console.log(
      `no difference in ${result.pairs} pairs, ${result.answers} answers (${share} % true), ${seconds().toFixed(0)} s`,
    )
  } else {
    const { who, rule, event, expected, scores } = result.finding
    console.log(`after ${result.pairs} pairs: ${who} differ from the interpreter, which says ${expected}; seed ${seed}`)
    console.log(JSON.stringify({ scores, conditions: rule, expected, event }, null, 2))
    process.exitCode = 1
  }
} finally {
  await engine.close()
}
