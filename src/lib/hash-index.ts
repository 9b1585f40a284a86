// Which entry of somebody's arrays has a key: a hash table of the entries' numbers, in one array outside of the heap. A Map of long life
// allocates its tables in V8's old generation, one each time it is full of deleted entries: for what comes and goes by the thousand a
// second that was an eighth of all that made a shard's heap old (D232).

/** Entries are numbers from 0 on. Where an entry lies is told by the lowest bits of its hash, a number of at most 53. */
export interface HashIndex<K> {
  size(): number
  /** The entry that has the key, or `NO_ENTRY`. */
  find(hash: number, key: K): number
  /** From now on this entry has the key. */
  put(hash: number, key: K, entry: number): void
  /** The entry that had the key, or `NO_ENTRY`. */
  remove(hash: number, key: K): number
  clear(): void
}

export const NO_ENTRY = -1

/** Powers of two. */
const PLACES_MIN = 64
/** Numbers to a place, which is why hashes are shifted by one. */
const WIDTH = 2
/** Behind the entry. */
const LOW = 1

/**
 * `hashOf` says what the hash of an entry in the index is; `isOf`, of one with the key's hash, whether it has the key. Where the hash is the
 * key there is nothing more to say.
 */
export function createHashIndex<K>(
  hashOf: (entry: number) => number,
  isOf: (entry: number, key: K) => boolean = () => true,
): HashIndex<K> {
  /**
   * Two numbers to a place: 0 where there is nothing, else one more than the entry, and the low bits of its hash. An entry lies behind the
   * place these name, without a gap between (linear probing). Entries of others are passed by without a look at where they lie: each
   * would be a miss of the processor's caches, and eight of them what it takes to find that a key is not there.
   */
  let table = new Int32Array(WIDTH * PLACES_MIN)
  let size = 0

  /** Where in the table the key's entry is, or the empty place where it belongs. */
  function placeOf(hash: number, key: K): number {
    const mask = table.length - 1
    const low = hash | 0
    let place = (low << 1) & mask
    for (;;) {
      const held = table[place] as number
      if (held === 0) return place
      if (table[place + LOW] === low && hashOf(held - 1) === hash && isOf(held - 1, key)) return place
      place = (place + WIDTH) & mask
    }
  }

  function set(place: number, held: number, low: number): void {
    table[place] = held
    table[place + LOW] = low
  }

  function grow(): void {
    const before = table
    table = new Int32Array(2 * before.length)
    const mask = table.length - 1
    for (let from = 0; from < before.length; from += WIDTH) {
      const held = before[from] as number
      if (held === 0) continue
      const low = before[from + LOW] as number
      let place = (low << 1) & mask
      while (table[place] !== 0) place = (place + WIDTH) & mask
      set(place, held, low)
    }
  }

  /** Fills the gap with what could not lie there while it was taken (Knuth, The Art of Computer Programming 3, 6.4, algorithm R). */
  function close(at: number): void {
    const mask = table.length - 1
    let gap = at
    for (let place = (at + WIDTH) & mask; ; place = (place + WIDTH) & mask) {
      const held = table[place] as number
      if (held === 0) break
      const low = table[place + LOW] as number
      const home = (low << 1) & mask
      if (((place - home) & mask) < ((place - gap) & mask)) continue
      set(gap, held, low)
      gap = place
    }
    table[gap] = 0
  }

  return {
    size: () => size,
    find: (hash, key) => (table[placeOf(hash, key)] as number) - 1,
    put(hash, key, entry) {
      if (4 * (size + 1) > 3 * (table.length / WIDTH)) grow()
      const place = placeOf(hash, key)
      if (table[place] === 0) size++
      set(place, entry + 1, hash | 0)
    },
    remove(hash, key) {
      const place = placeOf(hash, key)
      const entry = (table[place] as number) - 1
      if (entry !== NO_ENTRY) {
        close(place)
        size--
      }
      return entry
    },
    clear() {
      table.fill(0)
      size = 0
    },
  }
}
