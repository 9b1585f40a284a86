// Which entry of somebody's arrays has a key: a hash table that holds the entries' numbers alone, in one array outside of the heap. A Map of
// long life allocates its tables in V8's old generation, one each time it is full of deleted entries: for what comes and goes by the
// thousand a second that was an eighth of all that made a shard's heap old (D232).

/** Entries are numbers from 0 on. Where an entry lies is told by the lowest bits of its hash, a number of at most 53. */
export interface HashIndex<K> {
  readonly size: number
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

/**
 * `hashOf` says what the hash of an entry in the index is; `isOf`, of one with the key's hash, whether it has the key. Where the hash is the
 * key there is nothing more to say.
 */
export function createHashIndex<K>(
  hashOf: (entry: number) => number,
  isOf: (entry: number, key: K) => boolean = () => true,
): HashIndex<K> {
  /** Entries behind the place their hash names, without a gap between (linear probing); 0: nothing, else one more than the entry. */
  let places = new Int32Array(PLACES_MIN)
  let size = 0

  /** The place of the key's entry, or the empty one where it belongs. */
  function placeOf(hash: number, key: K): number {
    const mask = places.length - 1
    let place = hash & mask
    for (;;) {
      const held = places[place] as number
      if (held === 0 || (hashOf(held - 1) === hash && isOf(held - 1, key))) return place
      place = (place + 1) & mask
    }
  }

  function grow(): void {
    const before = places
    places = new Int32Array(2 * before.length)
    const mask = places.length - 1
    for (const held of before) {
      if (held === 0) continue
      let place = hashOf(held - 1) & mask
      while (places[place] !== 0) place = (place + 1) & mask
      places[place] = held
    }
  }

  /** Fills the gap with what could not lie there while it was taken (Knuth, The Art of Computer Programming 3, 6.4, algorithm R). */
  function close(at: number): void {
    const mask = places.length - 1
    let gap = at
    for (let place = (at + 1) & mask; ; place = (place + 1) & mask) {
      const held = places[place] as number
      if (held === 0) break
      const home = hashOf(held - 1) & mask
      if (((place - home) & mask) < ((place - gap) & mask)) continue
      places[gap] = held
      gap = place
    }
    places[gap] = 0
  }

  return {
    get size() {
      return size
    },
    find: (hash, key) => (places[placeOf(hash, key)] as number) - 1,
    put(hash, key, entry) {
      if (4 * (size + 1) > 3 * places.length) grow()
      const place = placeOf(hash, key)
      if (places[place] === 0) size++
      places[place] = entry + 1
    },
    remove(hash, key) {
      const place = placeOf(hash, key)
      const entry = (places[place] as number) - 1
      if (entry !== NO_ENTRY) {
        close(place)
        size--
      }
      return entry
    },
    clear() {
      places.fill(0)
      size = 0
    },
  }
}
