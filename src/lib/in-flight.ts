// What is under way, by key: a map whose values come and go by the thousand a second and are garbage when they leave. A Map that is
// long-lived, and so in V8's old generation, moves into a larger or fresh table there each time it is full of deleted entries; the table it
// leaves is dead, yet the scavenger takes all it still names for alive until the next mark-compact, and copies and promotes it (D209).
// Here a value is let go of where it lay, and what finds it lies outside of the heap (D232).

import { createHashIndex, NO_ENTRY } from './hash-index.ts'

export interface InFlight<K, V> {
  size(): number
  get(key: K): V | undefined
  set(key: K, value: V): void
  /** Takes the value out. */
  take(key: K): V | undefined
  /** In the order in which the keys were set first. Nothing may be set before it ends. */
  entries(): IterableIterator<[K, V]>
  /** Takes all of them out. */
  takeAll(): V[]
}

const CAPACITY_MIN = 64

/** `hashOf`: a number whose lowest 32 bits tell keys apart. */
export function openInFlight<K, V>(hashOf: (key: K) => number): InFlight<K, V> {
  // By slot, in the order in which keys were set. Slots from `head` to `end` are in use, but for those whose value was taken.
  const keys: (K | undefined)[] = []
  const values: (V | undefined)[] = []
  let hashes = new Int32Array(CAPACITY_MIN)
  let head = 0
  let end = 0
  const index = createHashIndex<K>(
    (slot) => hashes[slot] as number,
    (slot, key) => keys[slot] === key,
  )

  /** Called when no slot is left: what is in use moves to the beginning, where it takes most of the room there is twice as much. */
  function makeRoom(): void {
    const before = hashes
    if (2 * index.size() > before.length) hashes = new Int32Array(2 * before.length)
    index.clear()
    let to = 0
    for (let slot = head; slot < end; slot++) {
      if (values[slot] === undefined) continue
      const key = keys[slot] as K
      const hash = before[slot] as number
      keys[to] = key
      values[to] = values[slot]
      hashes[to] = hash
      index.put(hash, key, to)
      to++
    }
    keys.fill(undefined, to)
    values.fill(undefined, to)
    head = 0
    end = to
  }

  return {
    size: index.size,
    get(key) {
      const slot = index.find(hashOf(key) | 0, key)
      return slot === NO_ENTRY ? undefined : values[slot]
    },
    set(key, value) {
      const hash = hashOf(key) | 0
      const known = index.find(hash, key)
      if (known !== NO_ENTRY) {
        values[known] = value
        return
      }
      if (end === hashes.length) makeRoom()
      keys[end] = key
      values[end] = value
      hashes[end] = hash
      index.put(hash, key, end)
      end++
    },
    take(key) {
      const slot = index.remove(hashOf(key) | 0, key)
      if (slot === NO_ENTRY) return undefined
      const value = values[slot]
      keys[slot] = undefined
      values[slot] = undefined
      while (head < end && values[head] === undefined) head++
      if (head === end) {
        head = 0
        end = 0
      }
      return value
    },
    *entries() {
      for (let slot = head; slot < end; slot++) {
        const value = values[slot]
        if (value !== undefined) yield [keys[slot] as K, value]
      }
    },
    takeAll() {
      const all: V[] = []
      for (const value of values) if (value !== undefined) all.push(value)
      index.clear()
      keys.length = 0
      values.length = 0
      head = 0
      end = 0
      return all
    },
  }
}
