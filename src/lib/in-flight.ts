// What is under way, by key: a map whose values come and go by the thousand a second and are garbage when they leave. A Map that is
// long-lived, and so in V8's old generation, moves into a larger or fresh table there each time it is full of deleted entries; the table it
// leaves is dead, yet the scavenger takes all it still names for alive until the next mark-compact, and copies and promotes it (D209).
// Here the table names numbers, and a value is let go of where it lay.

export interface InFlight<K, V> {
  readonly size: number
  get(key: K): V | undefined
  set(key: K, value: V): void
  /** Takes the value out. */
  take(key: K): V | undefined
  /** In the order in which the keys were set first. */
  entries(): IterableIterator<[K, V]>
  /** Takes all of them out. */
  takeAll(): V[]
}

export function openInFlight<K, V>(): InFlight<K, V> {
  const slots = new Map<K, number>()
  const values: (V | undefined)[] = []
  const free: number[] = []

  return {
    get size() {
      return slots.size
    },
    get(key) {
      const slot = slots.get(key)
      return slot === undefined ? undefined : values[slot]
    },
    set(key, value) {
      const slot = slots.get(key) ?? free.pop() ?? values.length
      values[slot] = value
      slots.set(key, slot)
    },
    take(key) {
      const slot = slots.get(key)
      if (slot === undefined) return undefined
      slots.delete(key)
      const value = values[slot]
      values[slot] = undefined
      free.push(slot)
      return value
    },
    *entries() {
      for (const [key, slot] of slots) yield [key, values[slot] as V]
    },
    takeAll() {
      const all = Array.from(slots.values(), (slot) => values[slot] as V)
      slots.clear()
      values.length = 0
      free.length = 0
      return all
    },
  }
}
