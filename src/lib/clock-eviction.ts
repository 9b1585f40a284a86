// Making room in a map: an entry that was used since the last look stays once more. Keeping entries in order of use would cost
// each use two changes of the map.

/** Removes entries that were not used lately, until `entriesMax` are left or all others are `isKept`. */
export function evictByClock<K>(
  entries: Map<K, { used: boolean }>,
  entriesMax: number,
  isKept: (key: K) => boolean,
): void {
  for (const [key, entry] of entries) {
    if (entries.size <= entriesMax) return
    if (isKept(key)) continue
    entries.delete(key)
    if (!entry.used) continue
    entry.used = false
    // Comes up again behind all others.
    entries.set(key, entry)
  }
}
