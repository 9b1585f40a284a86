// One process of a long run: takes every second seed and tells its parent how it goes.

import { explore, range, tell } from './explore.ts'

const [from, count, step] = process.argv.slice(2).map(Number) as [number, number, number]
const REPORT_EVERY = 50

Error.stackTraceLimit = 2
let done = 0
const { failed } = await explore(range(from, count, step), 20, (result) => {
  done++
  if (result.failures.length > 0) process.send?.({ failed: tell(result) })
  if (done % REPORT_EVERY === 0 || done === count) process.send?.({ done })
})
process.exitCode = failed.length > 0 ? 1 : 0
process.disconnect?.()
