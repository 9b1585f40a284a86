// How much of what comes and goes reaches V8's old generation, measured in a process of its own.

import { execFile } from 'node:child_process'
import { promisify } from 'node:util'

/** The address of a built module of `src`, as source. */
export const built = (path: string): string => JSON.stringify(new URL(`../../src/${path}`, import.meta.url).href)

const PROMOTED_BY = `
  import { getHeapSpaceStatistics } from 'node:v8'
  const WARM_STEPS = 2_000
  const old = () => getHeapSpaceStatistics().find(({ space_name }) => space_name === 'old_space').space_used_size
  async function promotedBy(step, steps) {
    let n = 0
    while (n < WARM_STEPS) await step(n++)
    gc()
    gc()
    let promoted = 0
    let last = old()
    while (n < steps) {
      const wait = step(n++)
      if (wait !== undefined) await wait
      if (n % 100 !== 0) continue
      // A mark-compact takes back what was promoted before it.
      const now = old()
      promoted += Math.max(0, now - last)
      last = now
    }
    return promoted
  }`

/**
 * Runs `source`, a module, with a small young generation, and returns what it prints as JSON. It may call `promotedBy(step, steps)`, which
 * takes steps 0, 1, … and resolves with the bytes that were promoted behind the first 2,000 of them.
 */
export async function measurePromoted(source: string): Promise<unknown> {
  const args = ['--expose-gc', '--max-semi-space-size=1', '--input-type=module', '--eval', PROMOTED_BY + source]
  const { stdout } = await promisify(execFile)(process.execPath, args)
  return JSON.parse(stdout)
}
