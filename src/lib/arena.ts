// Memory for values that lmdb reads from a thread of its own until their transaction is over: one piece for one after the other.

import { markAsUntransferable } from 'node:worker_threads'

const ARENA_BYTES = 1024 * 1024

export interface Arena {
  /** A copy that stays as it is until `reset`. */
  copyOf(value: Uint8Array): Buffer
  /** Nobody reads what was copied any more. */
  reset(): void
}

/** `bytesMax`: the most that is kept from one transaction to the next. */
export function openArena(bytesMax: number): Arena {
  let arena = allocate(Math.min(ARENA_BYTES, bytesMax))
  let used = 0
  return {
    copyOf(value) {
      const { length } = value
      if (used + length > arena.length) {
        // The former one stays until the transaction is over: what was put points into it.
        const isLarge = length > bytesMax / 4
        const larger = allocate(isLarge ? length : Math.min(bytesMax, Math.max(2 * arena.length, length)))
        if (isLarge) {
          larger.set(value)
          return larger
        }
        arena = larger
        used = 0
      }
      const copy = arena.subarray(used, used + length)
      copy.set(value)
      used += length
      return copy
    },
    reset() {
      used = 0
    },
  }
}

function allocate(bytes: number): Buffer {
  const buffer = Buffer.allocUnsafeSlow(bytes)
  markAsUntransferable(buffer.buffer)
  return buffer
}
