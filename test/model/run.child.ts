// One process of a long run: takes every second seed and tells its parent how it goes.

import { explore, range, tell } from './explore.ts'
import type { WorldOptions, WorldResult } from './world.ts'

const [from, count, step] = process.argv.slice(2, 5).map(Number) as [number, number, number]
const options = JSON.parse(process.argv[5] ?? '{}') as WorldOptions
const REPORT_EVERY = 50

Error.stackTraceLimit = 2
let done = 0
function onSeed(result: WorldResult): void {
  done++
  if (result.failures.length > 0) process.send?.({ failed: tell(result) })
  if (done % REPORT_EVERY === 0 || done === count) process.send?.({ done })
}
const { failed } = await explore(range(from, count, step), { options, failedMax: 20, onSeed })
process.exitCode = failed.length > 0 ? 1 : 0
process.disconnect?.()
