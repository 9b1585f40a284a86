// Strict decoding of request bytes: what is not UTF-8 is refused, never repaired.
import { isAscii, isUtf8 } from 'node:buffer'

/** The text, a leading byte order mark included, or null when the bytes are not valid UTF-8. */
export function decodeUtf8(bytes: Uint8Array): string | null {
  // Most texts are, and their characters are their bytes.
  if (isAscii(bytes)) return Buffer.prototype.latin1Slice.call(bytes, 0, bytes.length)
  return isUtf8(bytes) ? Buffer.prototype.utf8Slice.call(bytes, 0, bytes.length) : null
}
