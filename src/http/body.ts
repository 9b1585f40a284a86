// Collects a body within a limit, into memory of ours: the server's own buffers are gone when its callback returns.

const NOTHING = new Uint8Array(0)

export interface BodyReader {
  /** Takes one chunk; false when the limit is passed, and then nothing is kept. */
  take(chunk: ArrayBuffer, isLast: boolean): boolean
  /** What has come so far. */
  bytes(): Uint8Array
}

const SLAB_BYTES = 65_536

/** Copies bodies that came in one piece. Small ones share slabs: an allocation of its own costs more than the copy. */
export function openBodyCopier(): (chunk: ArrayBuffer) => Uint8Array {
  let slab = Buffer.allocUnsafeSlow(SLAB_BYTES).buffer
  let used = 0
  return (chunk) => {
    const length = chunk.byteLength
    if (length > SLAB_BYTES / 8) return new Uint8Array(chunk.slice(0))
    if (used + length > SLAB_BYTES) {
      slab = Buffer.allocUnsafeSlow(SLAB_BYTES).buffer
      used = 0
    }
    const copy = new Uint8Array(slab, used, length)
    copy.set(new Uint8Array(chunk))
    used += length
    return copy
  }
}

export function openBody(bodyBytesMax: number): BodyReader {
  let kept: Uint8Array = NOTHING
  let length = 0
  return {
    take(chunk, isLast) {
      const added = chunk.byteLength
      if (added === 0) return true
      if (length + added > bodyBytesMax) {
        kept = NOTHING
        length = 0
        return false
      }
      if (length + added > kept.length) {
        // Doubling keeps a body of one-byte chunks linear in time and memory; a body of one chunk is copied once.
        const room = isLast ? length + added : Math.min(bodyBytesMax, Math.max(length + added, 2 * kept.length))
        const larger = Buffer.allocUnsafe(room)
        larger.set(kept.subarray(0, length))
        kept = larger
      }
      kept.set(new Uint8Array(chunk), length)
      length += added
      return true
    },
    bytes: () => (length === kept.length ? kept : kept.subarray(0, length)),
  }
}
