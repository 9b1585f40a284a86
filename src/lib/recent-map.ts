// A bounded memory of the last while, by numbers, forgetting by generations, so that neither a timer nor a queue is needed.

export interface RecentMap<T> {
  get(key: number): T | undefined
  set(key: number, value: T): void
}

/**
 * Entries live at least `keepMs`, unless more than `entriesMax` come within it, and at most twice that while something is set.
 */
export function createRecentMap<T>(keepMs: number, entriesMax: number, now: () => number): RecentMap<T> {
  let young = new Map<number, T>()
  let old = new Map<number, T>()
  let turnedAt = now()
  return {
    get: (key) => young.get(key) ?? old.get(key),
    set(key, value) {
      if (young.size >= entriesMax || now() - turnedAt >= keepMs) {
        old = young
        young = new Map()
        turnedAt = now()
      }
      young.set(key, value)
    },
  }
}
