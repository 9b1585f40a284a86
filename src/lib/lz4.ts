// LZ4 in the form in which lmdb stores values that it compresses itself, made five times as fast as by the code that comes built with
// it (D210). What it is given is unpacked by lmdb, whichever of the two has packed it.

import { createRequire } from 'node:module'

interface Lz4 {
  /** Four bytes of length, then one block (lz4_Block_format.md). */
  compressSync(data: Uint8Array): Buffer
}

/** Stands in front of three bytes of length, big endian, and a block. */
const PACKED = 254
/** lmdb takes a value that begins with this byte or a later one for compressed. */
export const PACKED_FROM_BYTE = 250
/** What is longer has a header of another kind. */
const LENGTH_MAX = 0xff_ff_ff

/** null: no binary loads on this platform. */
function load(): Lz4 | null {
  try {
    return createRequire(import.meta.url)('lz4-napi') as Lz4
  } catch {
    return null
  }
}

let loaded: Lz4 | null | undefined

/** The value as lmdb stores it; null when only lmdb can pack it. */
export function packed(value: Uint8Array): Buffer | null {
  if (loaded === undefined) loaded = load()
  if (loaded === null || value.length > LENGTH_MAX) return null
  const bytes = loaded.compressSync(value)
  bytes[0] = PACKED
  bytes.writeUIntBE(value.length, 1, 3)
  return bytes
}
