// A keyed digest of 96 bits for tables of texts: rounds of HalfSipHash, four characters at a time where each fits a byte. With a
// secret key nobody can look for two texts with the same digest, and by chance a million million of them have none.

/** Writes into `words`, which it shares between calls: read them before the next one. */
export interface Digest {
  readonly words: Int32Array
  text(text: string): void
  numbers(a: number, b: number, c: number, d: number, e: number): void
}

export const DIGEST_WORDS = 3
export const DIGEST_KEY_WORDS = 4

/** `key`: DIGEST_KEY_WORDS random numbers of 32 bits. */
export function createDigest(key: readonly number[]): Digest {
  const [k0 = 0, k1 = 0, k2 = 0, k3 = 0] = key
  const words = new Int32Array(DIGEST_WORDS)
  const numbers = new Int32Array(5)
  // One function with variables of its own: only those stay in the processor's registers. It takes in a text, or the numbers.
  function run(text: string | null): void {
    let v0 = k0 | 0
    let v1 = k1 | 0
    let v2 = k2 ^ 0x6c796765
    let v3 = k3 ^ 0x74656462
    const length = text === null ? 4 * numbers.length : text.length
    for (let i = 0; i < length; ) {
      let word = 0
      if (text === null) {
        word = numbers[i >> 2] as number
        i += 4
      } else {
        const a = text.charCodeAt(i)
        const b = i + 1 < length ? text.charCodeAt(i + 1) : 0
        const c = i + 2 < length ? text.charCodeAt(i + 2) : 0
        const d = i + 3 < length ? text.charCodeAt(i + 3) : 0
        if ((a | b | c | d) < 256) {
          word = a | (b << 8) | (c << 16) | (d << 24)
          i += 4
        } else {
          // Marked, so that two wide characters are never taken for four narrow ones.
          v2 ^= 0x57
          word = a | (b << 16)
          i += 2
        }
      }
      v3 ^= word
      v0 = (v0 + v1) | 0
      v1 = ((v1 << 5) | (v1 >>> 27)) ^ v0
      v0 = (v0 << 16) | (v0 >>> 16)
      v2 = (v2 + v3) | 0
      v3 = ((v3 << 8) | (v3 >>> 24)) ^ v2
      v0 = (v0 + v3) | 0
      v3 = ((v3 << 7) | (v3 >>> 25)) ^ v0
      v2 = (v2 + v1) | 0
      v1 = ((v1 << 13) | (v1 >>> 19)) ^ v2
      v2 = (v2 << 16) | (v2 >>> 16)
      v0 ^= word
    }
    // The length tells texts apart that differ in zeros at their end.
    v3 ^= length
    for (let i = 0; i < ROUNDS_LAST; i++) {
      v0 = (v0 + v1) | 0
      v1 = ((v1 << 5) | (v1 >>> 27)) ^ v0
      v0 = (v0 << 16) | (v0 >>> 16)
      v2 = (v2 + v3) | 0
      v3 = ((v3 << 8) | (v3 >>> 24)) ^ v2
      v0 = (v0 + v3) | 0
      v3 = ((v3 << 7) | (v3 >>> 25)) ^ v0
      v2 = (v2 + v1) | 0
      v1 = ((v1 << 13) | (v1 >>> 19)) ^ v2
      v2 = (v2 << 16) | (v2 >>> 16)
    }
    words[0] = v0
    words[1] = v1
    words[2] = v2 ^ v3
  }

  return {
    words,
    text: run,
    numbers(a, b, c, d, e) {
      numbers[0] = a
      numbers[1] = b
      numbers[2] = c
      numbers[3] = d
      numbers[4] = e
      run(null)
    },
  }
}

const ROUNDS_LAST = 5
