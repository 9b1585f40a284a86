// npm run faults -- --cycles N [--seed S] [--connections C]: the long form of the kill test, in series of 20 kills with a
// data folder each. Ends with one line of figures, and with exit code 1 and the history of the first id at fault.

import { parseArgs } from 'node:util'
import { testSeed } from '../helpers/rng.ts'
import { cleanUp } from '../helpers/server.ts'
import { runSeries, type Summary } from './series.ts'

const CYCLES_PER_SERIES = 20
const BY_ID_MAX = 200

const { values } = parseArgs({
  options: {
    cycles: { type: 'string', default: '100' },
    seed: { type: 'string', default: String(testSeed()) },
    connections: { type: 'string', default: '16' },
  },
})
const cycles = Number(values.cycles)
const seed = Number(values.seed)
const connections = Number(values.connections)
if (![cycles, seed, connections].every(Number.isSafeInteger) || cycles < 1 || connections < 1) {
  throw new Error('--cycles, --seed and --connections take whole numbers')
}

const sum = (numbers: readonly number[]): number => numbers.reduce((total, n) => total + n, 0)
const most = (numbers: readonly number[]): number => numbers.reduce((max, n) => Math.max(max, n), 0)

function figures(done: readonly Summary[]): string {
  const total = (of: (summary: Summary) => number) => sum(done.map(of))
  const ready = done.flatMap(({ readyMs }) => readyMs).sort((a, b) => a - b)
  return [
    `${total((s) => s.cycles)} cycles`,
    `${total((s) => s.acked)} acknowledged ids checked (${total((s) => s.readById)} reads by id)`,
    `${total((s) => s.visitors)} visitors`,
    `${done.filter((s) => s.violation !== null).length} violations`,
    `${total((s) => s.counts.unknown)} unknown outcomes settled`,
    `${total((s) => s.counts.replayed)} replays`,
    `${total((s) => s.counts.refused)} refused`,
    `ready p50 ${ready[ready.length >> 1] ?? 0} ms, at most ${most(ready)} ms`,
    `partitions deciding at most ${most(done.flatMap(({ decidingMs }) => decidingMs))} ms later`,
    `seeds ${done.map((s) => s.seed).join(' ')}`,
  ].join(', ')
}

const done: Summary[] = []
for (let left = cycles; left > 0 && done.at(-1)?.violation == null; left -= CYCLES_PER_SERIES) {
  const series = { seed: seed + done.length, cycles: Math.min(left, CYCLES_PER_SERIES) }
  console.log(`series ${done.length + 1}, seed ${series.seed}`)
  try {
    done.push(await runSeries({ ...series, connections, byIdMax: BY_ID_MAX, print: (line) => console.log(line) }))
  } finally {
    await cleanUp()
  }
  console.log(figures(done))
}
const violation = done.at(-1)?.violation
if (violation != null) {
  console.log(`VIOLATION: ${violation.id} ${violation.what}\n  ${violation.history.join('\n  ')}`)
  process.exitCode = 1
}
