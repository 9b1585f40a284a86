// Work that asks, done at once with what is found at once.

import type { Asking } from '../../src/engine/asking.ts'
import type { LoadedEntry, WantedEntry } from '../../src/engine/state.ts'

export function answered<T>(asking: Asking<T>, load: (wanted: readonly WantedEntry[]) => readonly LoadedEntry[]): T {
  let turn = asking.next([])
  while (!turn.done) turn = asking.next(load(turn.value))
  return turn.value
}

/** Where everything that exists is in memory. */
export const absent = (wanted: readonly WantedEntry[]): LoadedEntry[] =>
  wanted.flatMap(({ kind, id }) => (kind === 'ruleset' ? [] : [{ kind, id, value: null }]))
