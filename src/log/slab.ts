// Owns copies of records in few allocations: a caller may reuse its buffer, and lmdb reads ours from another thread.
import { markAsUntransferable } from 'node:worker_threads'

export interface Slab {
  copy(record: Uint8Array): Uint8Array
}

const SLAB_BYTES = 64 * 1024

/** One per partition, so that records that are forgotten together lie together. */
export function openSlab(): Slab {
  let bytes = Buffer.alloc(0)
  let used = 0
  return {
    copy(record) {
      if (record.length > SLAB_BYTES / 4) return new Uint8Array(record)
      if (used + record.length > bytes.length) {
        bytes = Buffer.allocUnsafeSlow(SLAB_BYTES)
        used = 0
        markAsUntransferable(bytes.buffer)
      }
      const copy = bytes.subarray(used, used + record.length)
      copy.set(record)
      used += record.length
      return copy
    },
  }
}
