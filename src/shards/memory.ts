// Memory that all threads of a process share.

import { HOST_CELLS } from '../http/hosts.ts'
import { joinCounts, newCounts } from '../lib/counts.ts'
import { newClaims } from '../lib/first-claims.ts'
import type { Cells, Shared } from './protocol.ts'

/** Nonces of two minutes: of more the oldest may be routed anew, to where the owner of their visitor knows them if the body is the same. */
const NONCES_MAX = 1_000_000

/** Memory for `count` shards, of which the first `deciding` decide to begin with. */
export function makeCells(count: number, deciding: number, partitions: number): Cells {
  const owner = new Int32Array(new SharedArrayBuffer(4 * partitions))
  for (const partition of owner.keys()) owner[partition] = partition % deciding
  return {
    beat: new Int32Array(new SharedArrayBuffer(4 * count)),
    deciding: new Float64Array(new SharedArrayBuffer(8 * partitions)),
    held: new Int32Array(new SharedArrayBuffer(4 * partitions)),
    owner,
    nonceRoutes: newClaims(NONCES_MAX),
    toldOfProxy: new Int32Array(new SharedArrayBuffer(4)),
    bells: new Int32Array(new SharedArrayBuffer(4 * count)),
  }
}

export const makeCounts = (): Shared => ({
  inFlight: newCounts(1),
  pending: newCounts(1),
  hosts: newCounts(HOST_CELLS),
})

/** The same memory for one more thread, which counts its own share by itself. */
export const joinAllCounts = ({ inFlight, pending, hosts }: Shared): Shared => ({
  inFlight: joinCounts(inFlight),
  pending: joinCounts(pending),
  hosts: joinCounts(hosts),
})
