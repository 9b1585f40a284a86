// A queue whose entries are found by a hash of 53 bits, in flat arrays outside of the heap: a million of them are nothing to its collector.

import { createHashIndex } from './hash-index.ts'

/** An entry is named by its slot, until the next `push`, which may move all of them. */
export interface HashQueue {
  size(): number
  /** One of the numbers of an entry. */
  number(column: number, slot: number): number
  setNumber(column: number, slot: number, value: number): void
  /** Bytes of each entry, one behind the other by slot. */
  bytes(): Buffer
  /** The slot of the newest entry with this hash, or `NO_ENTRY`. */
  find(hash: number): number
  /** The slot of a new entry, whose numbers and bytes are those of an older one until they are written. */
  push(hash: number): number
  hashOf(slot: number): number
  /** The slot of the entry before which there are `place` older ones. */
  slotAt(place: number): number
  dropOldest(): void
}

/** A power of two. */
const CAPACITY_MIN = 64

export function createHashQueue(columnCount: number, bytesPerEntry = 0): HashQueue {
  let capacity = CAPACITY_MIN
  let hashes = new Float64Array(capacity)
  const columns = Array.from({ length: columnCount }, () => new Float64Array(capacity))
  let bytes = Buffer.alloc(capacity * bytesPerEntry)
  // Slots are used as a ring from the oldest on.
  let head = 0
  let size = 0
  const index = createHashIndex<number>((slot) => hashes[slot] as number)

  const slotAt = (place: number): number => (head + place) & (capacity - 1)

  /** Called when the ring is full: the copies begin with the oldest. */
  function grow(): void {
    const doubled = (values: Float64Array) => {
      const wider = new Float64Array(2 * capacity)
      wider.set(values.subarray(head))
      wider.set(values.subarray(0, head), capacity - head)
      return wider
    }
    hashes = doubled(hashes)
    for (const [at, values] of columns.entries()) columns[at] = doubled(values)
    const headBytes = head * bytesPerEntry
    bytes = Buffer.concat([bytes.subarray(headBytes), bytes.subarray(0, headBytes)], 2 * bytes.length)
    head = 0
    capacity *= 2
    index.clear()
    for (let slot = 0; slot < size; slot++) {
      const hash = hashes[slot] as number
      index.put(hash, hash, slot)
    }
  }

  return {
    size: () => size,
    number: (column, slot) => (columns[column] as Float64Array)[slot] as number,
    setNumber(column, slot, value) {
      ;(columns[column] as Float64Array)[slot] = value
    },
    bytes: () => bytes,
    find: (hash) => index.find(hash, hash),
    push(hash) {
      if (size === capacity) grow()
      const slot = slotAt(size)
      hashes[slot] = hash
      index.put(hash, hash, slot)
      size++
      return slot
    },
    hashOf: (slot) => hashes[slot] as number,
    slotAt,
    dropOldest() {
      const hash = hashes[head] as number
      // A newer one of the same hash is the one that is found.
      if (index.find(hash, hash) === head) index.remove(hash, hash)
      head = slotAt(1)
      size--
    },
  }
}
