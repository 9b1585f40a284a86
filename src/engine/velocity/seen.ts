// How many different things were seen with a key in the last day, by all partitions that counted it. Few are counted anew each time.
// Many are gathered once and kept while events are added: an address with hundreds of visitors is asked for with each of its events.

import { DAY_MS } from '../../lib/durations.ts'
import { addEvent, type Counters, collectSeen, type Forgotten, type Stretch } from './counters.ts'
import { type Distinct, FIRST, isSeen, LAST, placeOfHash, WIDTH } from './distinct.ts'

/** What of one set is seen in every day that ends within `[from, until)`: nothing more, and nothing less. */
interface Gathered {
  readonly hashes: Set<number>
  from: number
  until: number
}

/** What is kept for a key. */
export interface SeenWith {
  /** By the number of the set, null where it is not gathered or something was taken out; null: nothing is, as for most keys. */
  seen: (Gathered | null)[] | null
}

/** As many things, in all lists together, as are counted without being gathered. */
const FEW = 16

const stretchesOf = ({ latest, earlier }: Counters) => [latest, earlier]

function gather(all: readonly Counters[], set: number, at: number): Gathered {
  const gathered: Gathered = { hashes: new Set(), from: Number.NEGATIVE_INFINITY, until: Number.POSITIVE_INFINITY }
  for (const counters of all) {
    for (const stretch of stretchesOf(counters)) {
      const distinct = stretch?.sets[set]
      for (let place = 0; distinct !== undefined && place < distinct.length; place += WIDTH) {
        const last = distinct[place + LAST] as number
        if (last > at - DAY_MS) include(gathered, distinct[place] as number, distinct[place + FIRST] as number, last)
        else gathered.from = Math.max(gathered.from, last + DAY_MS)
      }
    }
  }
  return gathered
}

function include(gathered: Gathered, hash: number, first: number, last: number): void {
  gathered.hashes.add(hash)
  // What was seen still earlier matters only to days that end before.
  gathered.from = Math.max(gathered.from, first)
  gathered.until = Math.min(gathered.until, last + DAY_MS)
}

/** Each of `all` has two lists of a set. */
function listAt(all: readonly Counters[], index: number, set: number): Distinct | undefined {
  const counters = all[index >> 1]
  return (index % 2 === 0 ? counters?.latest : counters?.earlier)?.sets[set]
}

function areFew(all: readonly Counters[], set: number): boolean {
  let numbers = 0
  for (let index = 0; index < 2 * all.length; index++) numbers += listAt(all, index, set)?.length ?? 0
  return numbers <= FEW * WIDTH
}

function countFew(all: readonly Counters[], set: number, at: number, also: number): number {
  let count = 1
  for (let index = 0; index < 2 * all.length; index++) {
    const distinct = listAt(all, index, set)
    if (distinct === undefined) continue
    for (let place = 0; place < distinct.length; place += WIDTH) {
      const hash = distinct[place] as number
      if (hash !== also && isSeen(distinct, place, at) && !isCounted(all, index, set, at, hash)) count++
    }
  }
  return count
}

/** Whether a list in front of this one has it. */
function isCounted(all: readonly Counters[], before: number, set: number, at: number, hash: number): boolean {
  for (let index = 0; index < before; index++) {
    const distinct = listAt(all, index, set)
    const place = distinct === undefined ? -1 : placeOfHash(distinct, hash)
    if (distinct !== undefined && place >= 0 && isSeen(distinct, place, at)) return true
  }
  return false
}

/** Different things of a set in the day that ends with `at`, `also` among them. Gathers them where they are many. */
export function countSeen(of: SeenWith, all: readonly Counters[], set: number, at: number, also: number): number {
  let gathered = of.seen?.[set]
  if (gathered == null || at >= gathered.until) {
    if (areFew(all, set)) return countFew(all, set, at, also)
    gathered = gather(all, set, at)
    of.seen ??= []
    of.seen[set] = gathered
  }
  if (at >= gathered.from) return gathered.hashes.size + (gathered.hashes.has(also) ? 0 : 1)
  const found = new Set([also])
  for (const counters of all) collectSeen(counters, set, at, found)
  return found.size
}

/** Adds an event to counters of the key, as `addEvent` does, and to what is gathered of it. */
export function addSeen(
  of: SeenWith,
  all: readonly Counters[],
  counters: Counters,
  at: number,
  things: readonly number[],
): void {
  const { latest, earlier } = counters
  const { seen } = of
  if (seen === null) {
    addEvent(counters, at, things)
    return
  }
  const forgotten: Forgotten[] = []
  const stretch = addEvent(counters, at, things, forgotten)
  if (counters.latest !== latest || counters.earlier !== earlier) {
    of.seen = null
    return
  }
  for (const { set, hash } of forgotten) {
    const isIn = (one: Stretch | null) => placeOfHash(one?.sets[set] ?? [], hash) >= 0
    if (all.some((one) => stretchesOf(one).some(isIn))) seen[set] = null
    else seen[set]?.hashes.delete(hash)
  }
  for (let set = 0; set < things.length; set++) {
    const gathered = seen[set]
    const hash = things[set] as number
    const distinct = stretch.sets[set]
    if (gathered == null || distinct === undefined) continue
    const place = placeOfHash(distinct, hash)
    const last = place < 0 ? Number.NEGATIVE_INFINITY : (distinct[place + LAST] as number)
    if (last + DAY_MS > gathered.from) include(gathered, hash, distinct[place + FIRST] as number, last)
  }
}
