// A bounded memory of the last while: number → number, forgetting by generations, so that neither a timer nor a queue is needed.

export interface RecentMap {
  get(key: number): number | undefined
  set(key: number, value: number): void
}

/** Entries live at least `keepMs` and at most twice that, unless more than `entriesMax` come within `keepMs`. */
export function createRecentMap(keepMs: number, entriesMax: number, now: () => number): RecentMap {
  let young = new Map<number, number>()
  let old = new Map<number, number>()
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
