// A bounded cache of entries of the kv, with what has changed since they were read. It forgets by generations: keeping entries in
// order of use would cost each use two changes of a map.

export interface ListTable<T> {
  /** undefined: not loaded. null: known to be absent. */
  get(id: string): T | null | undefined
  /** Whether it is loaded; counts as no use. */
  has(id: string): boolean
  set(id: string, value: T): void
  /** What the kv has, unless something is known already. */
  load(id: string, value: T | null): void
  /** What was set since the last call, to be in the kv before the next one; then the table makes room. `nowMs`: monotonic. */
  takeDirty(nowMs: number): [string, T][]
  dirtyCount(): number
}

/**
 * What nobody used for so long makes room even where there is some, at the latest when it is twice as long: while it is held
 * each event pays for its place in the heap, and reading it again costs as much as a minute or two of that (D223).
 */
export const UNUSED_MS_MAX = 60_000

/** The same for what holds so many entries. Where these are not bounded nothing goes: no kv need be behind them. */
export const unusedMsMaxOf = (entriesMax: number): number =>
  entriesMax === Number.POSITIVE_INFINITY ? entriesMax : UNUSED_MS_MAX

/** After `takeDirty` holds half as many again as `entriesMax` at most, and what it took; of those used last half as many stay. */
export function createTable<T>(entriesMax: number): ListTable<T> {
  let young = new Map<string, T | null>()
  let old = new Map<string, T | null>()
  let dirty = new Set<string>()
  const unusedMsMax = unusedMsMaxOf(entriesMax)
  let youngSinceMs: number | null = null

  return {
    get(id) {
      const value = young.get(id)
      if (value !== undefined) return value
      const older = old.get(id)
      if (older === undefined) return undefined
      old.delete(id)
      young.set(id, older)
      return older
    },
    has: (id) => young.has(id) || old.has(id),
    set(id, value) {
      // An older value is found by nobody any more.
      young.set(id, value)
      dirty.add(id)
    },
    load(id, value) {
      if (!young.has(id) && !old.has(id)) young.set(id, value)
    },
    takeDirty(nowMs) {
      // Taken entries are among the young. They stay until the next call at least, and are in the kv by then.
      const taken = Array.from(dirty, (id): [string, T] => [id, young.get(id) as T])
      dirty = new Set()
      youngSinceMs ??= nowMs
      if (young.size > entriesMax / 2 || nowMs - youngSinceMs >= unusedMsMax) {
        old = young.size > entriesMax ? new Map<string, T | null>(taken) : young
        young = new Map()
        youngSinceMs = nowMs
      }
      return taken
    },
    dirtyCount: () => dirty.size,
  }
}
