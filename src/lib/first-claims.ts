// Who came first, by key, within the last while: memory that the threads of a process share.

const WAYS = 8
/** Of an entry: two words of its key, the second with what was claimed above the key's bits, and the time. */
const WORDS = 3
const SET_WORDS = 1 + WAYS * WORDS
const HIGH_BITS = 21

export interface FirstClaims {
  /** What was claimed for `key` (a safe integer) within the window, or null: `value` then is, below 2 ** (32 - HIGH_BITS). */
  claim(key: number, value: number): number | null
}

/** Memory for `entries` within a window; of more the oldest that share a set of eight are forgotten. */
export function newClaims(entries: number): Int32Array {
  return new Int32Array(new SharedArrayBuffer(4 * SET_WORDS * Math.ceil(entries / WAYS)))
}

/** `now`: milliseconds that all threads share. */
export function openClaims(memory: Int32Array, windowMs: number, now: () => number): FirstClaims {
  const sets = Math.floor(memory.length / SET_WORDS)
  const windowSeconds = Math.ceil(windowMs / 1000)

  function claimIn(set: number, low: number, high: number, value: number): number | null {
    // Of 32 bits, which are full in 2038 and begin anew. 0 says that an entry is free.
    const at = (Math.floor(now() / 1000) + 1) | 0 || 1
    let oldest = set + 1
    for (let entry = set + 1; entry < set + SET_WORDS; entry += WORDS) {
      const since = memory[entry + 2] as number
      const isRecent = since !== 0 && ((at - since) | 0) <= windowSeconds
      const packed = memory[entry + 1] as number
      if (isRecent && memory[entry] === low && (packed & (2 ** HIGH_BITS - 1)) === high) return packed >>> HIGH_BITS
      if (since === 0 || ((since - (memory[oldest + 2] as number)) | 0) < 0) oldest = entry
    }
    memory[oldest] = low
    memory[oldest + 1] = (value << HIGH_BITS) | high
    memory[oldest + 2] = at
    return null
  }

  return {
    claim(key, value) {
      const low = key | 0
      const high = Math.floor(key / 2 ** 32)
      const set = ((key >>> 0) % sets) * SET_WORDS
      // Held for less than a microsecond.
      while (Atomics.compareExchange(memory, set, 0, 1) !== 0);
      try {
        return claimIn(set, low, high, value)
      } finally {
        Atomics.store(memory, set, 0)
      }
    },
  }
}
