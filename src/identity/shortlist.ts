// Which of the visitors that share a match key with a visit are worth comparing: those that share the most telling keys,
// the latest first. Reading a visitor costs more than everything else here, so few are read.

import { roomFor, roomForNumbers } from '../lib/room.ts'

/** What the index holds under one key: ids, the newest last, and how many there ever were. */
export interface KeyEntry {
  readonly ids: readonly string[]
  readonly total: number
}

export interface Shortlist {
  /** Most promising first. */
  readonly ids: readonly string[]
  /** All that share the exact profile. */
  readonly exact: readonly string[]
  /** How many visitors were ever seen under each key, by the key's first letter. */
  readonly totals: Readonly<Record<string, number>>
}

export const SHORTLIST_MAX = 12
const NOBODY: readonly string[] = []

// By first letter of the key. An address is shared by few and says where, a profile what: both together beat either.
const WORTH: Readonly<Record<string, number>> = { a: 2, b: 3, c: 4, d: 2, e: 3, f: 2 }

/** `entries` are those of the keys, in their order. The list is a function of them alone. */
export function shortlist(keys: readonly string[], entries: readonly (KeyEntry | null | undefined)[]): Shortlist {
  const worth = new Map<string, number>()
  let exact = NOBODY
  const totals: Record<string, number> = {}
  for (let k = 0; k < keys.length; k++) {
    const key = keys[k] as string
    const entry = entries[k]
    if (!entry) continue
    const letter = key[0] as string
    totals[letter] = entry.total
    const { ids } = entry
    if (letter === 'e') exact = ids
    for (let i = ids.length - 1; i >= 0; i--) {
      const id = ids[i] as string
      // Newer ones first among those that share the same keys: less than any key is worth.
      const newness = (i + 1) / ids.length / 16
      worth.set(id, (worth.get(id) ?? 0) + (WORTH[letter] ?? 1) + newness)
    }
  }
  return { ids: mostWorth(worth), exact, totals }
}

/** The ids of the most worth, in order; equal ones by id. Many share a popular key, and few are wanted: no need to sort them all. */
function mostWorth(worth: ReadonlyMap<string, number>): string[] {
  const room = Math.min(worth.size, SHORTLIST_MAX)
  const ids = roomFor<string>(room)
  const worths = roomForNumbers(room)
  let count = 0
  for (const [id, own] of worth) {
    let at = count
    while (at > 0 && (own > (worths[at - 1] as number) || (own === worths[at - 1] && id < (ids[at - 1] as string))))
      at--
    // Those behind it move on by one; the last of a full list falls out.
    for (let i = Math.min(count, SHORTLIST_MAX - 1); i > at; i--) {
      ids[i] = ids[i - 1] as string
      worths[i] = worths[i - 1] as number
    }
    if (at === SHORTLIST_MAX) continue
    ids[at] = id
    worths[at] = own
    count = Math.min(count + 1, SHORTLIST_MAX)
  }
  return ids
}
