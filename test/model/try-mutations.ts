// temporary
import { MUTATIONS } from './mutations.ts'
import { runWorld } from './world.ts'

Error.stackTraceLimit = 0
for (const m of MUTATIONS) {
  if (process.argv[2] && !`${m.rule} ${m.what}`.includes(process.argv[2])) continue
  let found = 0
  for (let seed = 1; seed <= 300; seed++) {
    const r = await runWorld(seed, m.tamper)
    if (r.failures.length > 0) {
      found = seed
      console.log(m.rule, m.what, '->', seed, r.failures[0])
      break
    }
  }
  if (!found) console.log(m.rule, m.what, 'NOT FOUND')
}
