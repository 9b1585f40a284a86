// Random bytes from the system's generator, fetched in blocks: one call serves hundreds of ids.

import { randomFillSync } from 'node:crypto'
import type { RandomBytes } from '../domain/ids.ts'

const BLOCK_BYTES = 16_384

/** Each byte is given out once; what a call returns may be kept but not written to. */
export function openRandom(): RandomBytes {
  let block = new Uint8Array(0)
  let used = 0
  return (n) => {
    if (n > BLOCK_BYTES) return randomFillSync(new Uint8Array(n))
    if (used + n > block.length) {
      block = randomFillSync(new Uint8Array(BLOCK_BYTES))
      used = 0
    }
    used += n
    return block.subarray(used - n, used)
  }
}
