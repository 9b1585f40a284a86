// Memory for the rows of a batch, which the next batch uses again. Rows wait for a second until they are inserted: as buffers of their own
// they outlived V8's young generation, and the whole heap was marked for them every few seconds (D234).

import { withRoom } from '../lib/room.ts'

export interface Bytes {
  add(bytes: Uint8Array): void
  clear(): void
  /** A view that the next `add` behind a `clear` writes over. */
  all(): Uint8Array
}

const BYTES_MIN = 65_536

export function openBytes(): Bytes {
  let memory = Buffer.allocUnsafeSlow(BYTES_MIN)
  let used = 0
  return {
    add(bytes) {
      memory = withRoom(memory, used, bytes.length)
      memory.set(bytes, used)
      used += bytes.length
    },
    clear() {
      // What a rush took is given back step by step.
      if (4 * used < memory.length && memory.length > BYTES_MIN) memory = Buffer.allocUnsafeSlow(memory.length >> 1)
      used = 0
    },
    all: () => memory.subarray(0, used),
  }
}

export interface RowMemory {
  /** For rows of a partition. */
  of(partition: number): Bytes
  /** One behind the other, until it is called again. */
  join(rows: readonly Uint8Array[]): Uint8Array
  /** Somebody may still read what was given out: nothing of it is used again. */
  abandon(): void
}

export function openRowMemory(): RowMemory {
  let byPartition = new Map<number, Bytes>()
  let joined = openBytes()
  return {
    of(partition) {
      const known = byPartition.get(partition) ?? openBytes()
      byPartition.set(partition, known)
      return known
    },
    join(rows) {
      joined.clear()
      for (const some of rows) joined.add(some)
      return joined.all()
    },
    abandon() {
      byPartition = new Map()
      joined = openBytes()
    },
  }
}
