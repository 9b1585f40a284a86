// A set of digests with a time of expiry each, in memory that threads share: open addressing at a load of at most 0.7, and for
// large sets a blocked bloom filter in front, which answers for what is not there out of the processor's caches.

/** Four words per place: the digest and the second it expires in; 0: the place is empty. */
const PLACE_WORDS = 4
const LOAD_MAX = 0.7
const PLACES_MIN = 16
/** The filter pays where the places no longer fit the caches. */
const FILTERED_FROM = 100_000
const BITS_PER_ENTRY = 16
/** One cache line. */
const BLOCK_WORDS = 16
const TWO_32 = 4_294_967_296

/** Expires never, or has expired always: an entry that was taken off hides one beneath. */
export const NEVER_EXPIRES = 0xffff_ffff
export const GONE = 1

/** What makes a table; cheap to send to a thread, since the memory is shared. */
export interface TableMemory {
  readonly places: SharedArrayBuffer
  /** null: small enough to do without. */
  readonly filter: SharedArrayBuffer | null
}

export interface DigestTable {
  readonly memory: TableMemory
  /** Digests in it, expired ones included. */
  size(): number
  /** Bytes of places and of the filter. */
  bytes(): { readonly places: number; readonly filter: number }
  /** The second it expires in; 0 when it is not there. */
  find(a: number, b: number, c: number): number
  /** Adds it, or sets its expiry; false when there is no room. Only for the thread that made the table. */
  set(a: number, b: number, c: number, expiresAt: number): boolean
  /** Calls for each digest in places `from` to `to`. */
  each(from: number, to: number, visit: (a: number, b: number, c: number, expiresAt: number) => void): void
  places(): number
}

/** An empty table with room for `entries`. */
export function makeDigestTable(entries: number): DigestTable {
  const places = Math.max(PLACES_MIN, Math.ceil(entries / LOAD_MAX))
  const blocks = entries < FILTERED_FROM ? 0 : Math.ceil((entries * BITS_PER_ENTRY) / (BLOCK_WORDS * 32))
  return openDigestTable({
    places: new SharedArrayBuffer(places * PLACE_WORDS * 4),
    filter: blocks === 0 ? null : new SharedArrayBuffer(blocks * BLOCK_WORDS * 4),
  })
}

/** The table in memory that was made elsewhere. */
export function openDigestTable(memory: TableMemory): DigestTable {
  const words = new Int32Array(memory.places)
  const filter = memory.filter === null ? null : new Int32Array(memory.filter)
  const count = words.length / PLACE_WORDS
  const blocks = filter === null ? 0 : filter.length / BLOCK_WORDS
  const roomMax = Math.max(1, Math.floor(count * LOAD_MAX))
  let held = -1

  const firstPlace = (a: number): number => Math.floor(((a >>> 0) * count) / TWO_32)

  /** Six bits in one block. */
  function mayHold(a: number, b: number, c: number): boolean {
    if (filter === null) return true
    const block = Math.floor(((b >>> 0) * blocks) / TWO_32) * BLOCK_WORDS
    return (
      ((filter[block + ((c >>> 5) & 15)] as number) & (1 << (c & 31))) !== 0 &&
      ((filter[block + ((c >>> 14) & 15)] as number) & (1 << ((c >>> 9) & 31))) !== 0 &&
      ((filter[block + ((c >>> 23) & 15)] as number) & (1 << ((c >>> 18) & 31))) !== 0 &&
      ((filter[block + ((a >>> 5) & 15)] as number) & (1 << (a & 31))) !== 0 &&
      ((filter[block + ((a >>> 14) & 15)] as number) & (1 << ((a >>> 9) & 31))) !== 0 &&
      ((filter[block + ((a >>> 23) & 15)] as number) & (1 << ((c >>> 27) & 31))) !== 0
    )
  }

  function mark(a: number, b: number, c: number): void {
    if (filter === null) return
    const block = Math.floor(((b >>> 0) * blocks) / TWO_32) * BLOCK_WORDS
    const set = (word: number, bit: number) => {
      filter[block + (word & 15)] = (filter[block + (word & 15)] as number) | (1 << (bit & 31))
    }
    set(c >>> 5, c)
    set(c >>> 14, c >>> 9)
    set(c >>> 23, c >>> 18)
    set(a >>> 5, a)
    set(a >>> 14, a >>> 9)
    set(a >>> 23, c >>> 27)
  }

  /** The place it is in, or else the empty one it would be in. */
  function placeOf(a: number, b: number, c: number): number {
    let place = firstPlace(a)
    for (;;) {
      const at = place * PLACE_WORDS
      if (words[at + 3] === 0) return at
      if (words[at] === a && words[at + 1] === b && words[at + 2] === c) return at
      place = place + 1 === count ? 0 : place + 1
    }
  }

  function size(): number {
    if (held >= 0) return held
    held = 0
    for (let at = 3; at < words.length; at += PLACE_WORDS) if (words[at] !== 0) held++
    return held
  }

  return {
    memory,
    size,
    bytes: () => ({ places: words.byteLength, filter: filter?.byteLength ?? 0 }),
    find: (a, b, c) => (mayHold(a, b, c) ? (words[placeOf(a, b, c) + 3] as number) >>> 0 : 0),
    set(a, b, c, expiresAt) {
      const at = placeOf(a, b, c)
      if (words[at + 3] === 0) {
        if (size() >= roomMax) return false
        held++
        words[at] = a
        words[at + 1] = b
        words[at + 2] = c
        mark(a, b, c)
      }
      words[at + 3] = expiresAt
      return true
    },
    each(from, to, visit) {
      for (let at = from * PLACE_WORDS; at < to * PLACE_WORDS; at += PLACE_WORDS) {
        const expiresAt = (words[at + 3] as number) >>> 0
        if (expiresAt !== 0) visit(words[at] as number, words[at + 1] as number, words[at + 2] as number, expiresAt)
      }
    },
    places: () => count,
  }
}
