// What an identification costs is held to the figures of bench/budget.json. Not by the clock: by times of JSON.parse of the same body,
// measured in turns with it, so that a slow or busy machine makes both dearer.

import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { runProgram } from '../helpers/child.ts'

interface Price {
  readonly parses: number
  readonly kilobytes: number
}

/** What may come on top of the recorded figures before somebody has to look. */
const FACTOR_MAX = 1.5

const path = (name: string) => fileURLToPath(new URL(`../../../${name}`, import.meta.url))

t.test('an identification costs no more than half above what is recorded, in work and in garbage', async (t) => {
  const recorded = JSON.parse(readFileSync(path('bench/budget.json'), 'utf8')) as {
    readonly total: Price
    readonly steps: Readonly<Record<string, Price>>
  }
  // A process of its own: V8 optimizes it as it does the service, and no other test's code is in its way.
  const args = [path('build/bench/budget.js'), '--json', '--devices', '400', '--rounds', '400']
  const { code, said } = await runProgram(process.execPath, args, {})
  if (!t.equal(code, 0, 'the budget runs')) return t.comment(said)
  const { total, steps } = JSON.parse(said) as {
    readonly total: Price
    readonly steps: readonly (Price & { readonly name: string })[]
  }
  t.same(
    steps.map(({ name }) => name),
    Object.keys(recorded.steps),
    'of each step a figure is recorded',
  )
  const isWithin =
    total.parses <= FACTOR_MAX * recorded.total.parses && total.kilobytes <= FACTOR_MAX * recorded.total.kilobytes
  t.ok(isWithin, 'the total is within its limit; CONTRIBUTING says how to raise it')
  if (isWithin) return
  t.comment('step: times of JSON.parse (recorded), kB of garbage (recorded)')
  for (const { name, parses, kilobytes } of [...steps, { ...total, name: 'total' }]) {
    const was = name === 'total' ? recorded.total : recorded.steps[name]
    t.comment(`${name}: ${parses.toFixed(2)} (${was?.parses}), ${kilobytes.toFixed(1)} (${was?.kilobytes})`)
  }
})
