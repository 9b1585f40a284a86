// Room for what is filled in order. Lists are as long as they will be from their start: one that grows from nothing makes room for sixteen
// items at once, and so does the list of length 0 for four, and most of a visit have one item or two.

export const roomFor = <T>(count: number): T[] => (count === 0 ? [] : new Array(count))

/** The same for numbers alone: the compiler learns of this list that it holds no objects, and keeps them in it. */
export const roomForNumbers = (count: number): number[] => (count === 0 ? [] : new Array(count))

/** A buffer with room for `wanted` bytes behind the first `used`: the given one, or one at least twice as long that begins with those. */
export function withRoom(bytes: Buffer<ArrayBuffer>, used: number, wanted: number): Buffer<ArrayBuffer> {
  if (used + wanted <= bytes.length) return bytes
  const larger = Buffer.allocUnsafeSlow(Math.max(2 * bytes.length, used + wanted))
  bytes.copy(larger, 0, 0, used)
  return larger
}
