// How long a server takes from its spawn to the first 200 of /readyz, and the CPU of its process until then: in an empty folder, in a
// used one, and in one whose server was killed. `npm run bench -- start [rounds] [another main.js ...]`, builds in turns; goal 3,000 ms.

import { cleanUp, type Server, startServer } from '../test/helpers/server.ts'
import { cpuSeconds } from './measure.ts'

const [rounds = '5', ...others] = process.argv.slice(3)
const builds = [undefined, ...others]

const took = new Map<string, { readonly wallMs: number; readonly cpuMs: number }[]>()

function note(name: string, main: string | undefined, { readyMs, pid }: Server): void {
  const row = main === undefined ? name : `${name}, ${main}`
  took.set(row, [...(took.get(row) ?? []), { wallMs: readyMs, cpuMs: 1_000 * (cpuSeconds(pid) ?? Number.NaN) }])
}

async function round(main: string | undefined): Promise<void> {
  const shipped = { asShipped: true, ...(main === undefined ? {} : { main }) }
  const empty = await startServer(shipped)
  note('empty', main, empty)
  const { dataDir, keys } = empty
  await empty.stop()
  const used = await startServer({ ...shipped, dataDir, keys })
  note('used', main, used)
  await used.kill9()
  const killed = await startServer({ ...shipped, dataDir, keys })
  note('killed', main, killed)
  await killed.stop()
}

function told(values: readonly number[]): string {
  const sorted = values.map(Math.round).sort((a, b) => a - b)
  const median = ((sorted[(sorted.length - 1) >> 1] ?? 0) + (sorted[sorted.length >> 1] ?? 0)) / 2
  return `median ${median} ms of ${sorted.join(', ')}`
}

try {
  for (let i = 0; i < Number(rounds); i++) for (const main of builds) await round(main)
} finally {
  await cleanUp()
}
for (const [row, starts] of [...took].sort(([a], [b]) => a.localeCompare(b))) {
  process.stdout.write(`${row}: wall ${told(starts.map(({ wallMs }) => wallMs))}\n`)
  process.stdout.write(`${row}: CPU ${told(starts.map(({ cpuMs }) => cpuMs))}\n`)
}
