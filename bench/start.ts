// How long a server takes from its spawn to the first 200 of /readyz: in an empty folder, in a used one, and in one whose server
// was killed. `npm run bench -- start [rounds]`; goal 3,000 ms.

import { cleanUp, startServer } from '../test/helpers/server.ts'

const ROUNDS = Number(process.argv[3] ?? 5)

const took: Record<string, number[]> = { empty: [], used: [], killed: [] }
try {
  for (let round = 0; round < ROUNDS; round++) {
    const empty = await startServer({ asShipped: true })
    const { dataDir, keys } = empty
    await empty.stop()
    const used = await startServer({ asShipped: true, dataDir, keys })
    await used.kill9()
    const killed = await startServer({ asShipped: true, dataDir, keys })
    await killed.stop()
    took.empty?.push(empty.readyMs)
    took.used?.push(used.readyMs)
    took.killed?.push(killed.readyMs)
  }
} finally {
  await cleanUp()
}
for (const [name, ms] of Object.entries(took)) {
  const sorted = ms.map(Math.round).sort((a, b) => a - b)
  process.stdout.write(`${name}: median ${sorted[sorted.length >> 1]} ms of ${sorted.join(', ')}\n`)
}
