// How many different things were seen with a key in the last day, by all partitions that counted it. Gathered once and kept while
// events are added: an address with hundreds of visitors is asked for with each of its events.

import { DAY_MS } from '../../lib/durations.ts'
import { addEvent, type Counters, collectSeen, type Forgotten } from './counters.ts'

/** What of one set is seen in every day that ends within `[from, until)`: nothing more, and nothing less. */
interface Gathered {
  readonly hashes: Set<number>
  from: number
  until: number
}

/** By the number of the set; null: not asked for yet, or something was taken out. */
export type SeenCounts = (Gathered | null)[]

const stretchesOf = ({ latest, earlier }: Counters) => [latest, earlier]

function gather(all: readonly Counters[], set: number, at: number): Gathered {
  const gathered: Gathered = { hashes: new Set(), from: Number.NEGATIVE_INFINITY, until: Number.POSITIVE_INFINITY }
  for (const counters of all) {
    for (const stretch of stretchesOf(counters)) {
      for (const [hash, { first, last }] of stretch?.sets[set] ?? []) {
        if (last > at - DAY_MS) include(gathered, hash, first, last)
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

/** Different things of a set in the day that ends with `at`, `also` among them. Gathers what is not gathered yet. */
export function countSeen(seen: SeenCounts, all: readonly Counters[], set: number, at: number, also: number): number {
  let gathered = seen[set]
  if (gathered == null || at >= gathered.until) {
    gathered = gather(all, set, at)
    seen[set] = gathered
  }
  if (at >= gathered.from) return gathered.hashes.size + (gathered.hashes.has(also) ? 0 : 1)
  const found = new Set([also])
  for (const counters of all) collectSeen(counters, set, at, found)
  return found.size
}

/** Adds an event to counters of the key, as `addEvent` does, and to what is gathered of it. */
export function addSeen(
  seen: SeenCounts,
  all: readonly Counters[],
  counters: Counters,
  at: number,
  things: readonly number[],
): void {
  const { latest, earlier } = counters
  const forgotten: Forgotten[] = []
  const stretch = addEvent(counters, at, things, forgotten)
  if (counters.latest !== latest || counters.earlier !== earlier) seen.length = 0
  for (const { set, hash } of forgotten) {
    if (all.some((one) => stretchesOf(one).some((other) => other?.sets[set]?.has(hash)))) seen[set] = null
    else seen[set]?.hashes.delete(hash)
  }
  for (let set = 0; set < things.length; set++) {
    const gathered = seen[set]
    const hash = things[set] as number
    const sightings = stretch.sets[set]?.get(hash)
    if (gathered == null || sightings === undefined) continue
    if (sightings.last + DAY_MS > gathered.from) include(gathered, hash, sightings.first, sightings.last)
  }
}
