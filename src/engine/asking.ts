// Work that asks for what it lacks on its way: each time it stops with what must be provided, and goes on with what was loaded.

import type { LoadedEntry, WantedEntry } from './state.ts'

export type Asking<T> = Generator<readonly WantedEntry[], T, readonly LoadedEntry[]>

/** Reads entries of a partition from the kv: one answer for each that was asked, null for the absent. */
export type Load = (wanted: readonly WantedEntry[]) => Promise<readonly LoadedEntry[]>

/** Does the work to its end, with what `load` finds. */
export async function provideAll<T>(asking: Asking<T>, load: Load): Promise<T> {
  let turn = asking.next([])
  while (!turn.done) turn = asking.next(await load(turn.value))
  return turn.value
}
