// Nesting of JSON, measured on raw bytes: structures that parse but are too deep to copy or print never get parsed.

const QUOTE = 0x22
const BACKSLASH = 0x5c

/**
 * True when arrays and objects nest deeper than `depthMax`. Brackets in strings do not count. For bytes that are not
 * JSON it never misses a nesting that a JSON parser would enter.
 */
export function deeperThan(bytes: Uint8Array, depthMax: number): boolean {
  return opensMore(bytes, depthMax) && nestsDeeper(bytes, depthMax)
}

/**
 * True when there are more than `max` opening brackets, those in strings included. Most bodies have fewer than the depth
 * they may have, and four bytes at a time this costs a tenth of the exact answer.
 */
function opensMore(bytes: Uint8Array, max: number): boolean {
  const length = bytes.length
  const words = length & ~3
  const view = new DataView(bytes.buffer, bytes.byteOffset, length)
  let opens = 0
  let i = 0
  for (; i < words; i += 4) {
    // '[' and '{' differ in bit 5 alone: set it, and both are 0x7b, the only bytes that become zero below.
    const word = (view.getInt32(i, true) | 0x20202020) ^ 0x7b7b7b7b
    if (((word - 0x01010101) & ~word & 0x80808080) !== 0) {
      for (let at = i; at < i + 4; at++) if (((bytes[at] as number) | 0x20) === 0x7b) opens++
      if (opens > max) return true
    }
  }
  for (; i < length; i++) if (((bytes[i] as number) | 0x20) === 0x7b) opens++
  return opens > max
}

function nestsDeeper(bytes: Uint8Array, depthMax: number): boolean {
  const length = bytes.length
  let depth = 0
  for (let i = 0; i < length; i++) {
    const byte = bytes[i] as number
    if (byte === QUOTE) {
      for (i++; i < length; i++) {
        const inner = bytes[i] as number
        if (inner === QUOTE) break
        if (inner === BACKSLASH) i++
      }
    } else if (byte >= 0x5b) {
      const bracket = byte | 0x20
      if (bracket === 0x7b) {
        if (++depth > depthMax) return true
      } else if (bracket === 0x7d) depth--
    }
  }
  return false
}
