// One of several threads that let the same host in and out as fast as they can, and count how many are inside at once.

import { parentPort, workerData } from 'node:worker_threads'
import { openHosts } from '../../src/http/hosts.ts'
import { joinCounts } from '../../src/lib/counts.ts'

export interface Racing {
  readonly cells: Int32Array
  /** How many are inside now; how often there were too many; how many came in. */
  readonly inside: Int32Array
  readonly max: number
  readonly rounds: number
  readonly threads: number
}

const { cells, inside, max, rounds, threads } = workerData as Racing
const hosts = openHosts({ max, hostOf: (address) => address, counts: joinCounts({ all: cells }) })

// All begin together.
Atomics.add(inside, 3, 1)
while (Atomics.load(inside, 3) < threads);
for (let round = 0; round < rounds; round++) {
  const host = hosts.enter('192.0.2.1')
  if (host === null) continue
  if (Atomics.add(inside, 0, 1) >= max) Atomics.add(inside, 1, 1)
  Atomics.add(inside, 2, 1)
  Atomics.sub(inside, 0, 1)
  hosts.leave(host)
}
parentPort?.postMessage('done')
