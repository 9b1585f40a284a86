// How sure an answer "new" is: what traffic with hidden tokens tells of devices that come back and are not found.

import { returningOf, toldNew } from './estimates.ts'
import { BIN_BOUNDS, BINS, binOf, type MatchStatistics } from './match-statistics.ts'

/** What the chance found for a visit weighs against what was learned of such chances, in visits. */
const CHANCE_VISITS = 2

/**
 * How likely an answer "new" is right, given the chance the candidates leave for it. Devices that come back and are not found
 * look new as well: as many of them as of the visits whose token was hidden, of all that come back without one.
 */
export function newConfidence(learned: MatchStatistics, chance: number): number {
  const { links, blind, blindNews, news } = learned
  const all = toldNew(learned)
  const returning = Math.min(links + all, returningOf(learned, links, all))
  // Pooled from the bin upwards or downwards until confidence grows with the chance (isotonic).
  const right: number[] = []
  const weight: number[] = []
  const size: number[] = []
  for (let bin = 0; bin < BINS; bin++) {
    const told = news[bin] as number
    const missed = blind === 0 ? 0 : (returning * (blindNews[bin] as number)) / blind
    const middle = bin === 0 ? 0.15 : ((BIN_BOUNDS[bin - 1] as number) + (BIN_BOUNDS[bin] ?? 1)) / 2
    const n = told + CHANCE_VISITS
    // Where hardly any looks new, those thought to be missed can be more than all there were; then the chance itself tells.
    const least = bin === 0 ? told * middle : 0
    right.push((Math.max(least, told - missed) + CHANCE_VISITS * middle) / n)
    weight.push(n)
    size.push(1)
    while (right.length > 1 && (right[right.length - 2] as number) > (right[right.length - 1] as number)) {
      const [b, bw, bs] = [right.pop() as number, weight.pop() as number, size.pop() as number]
      const [a, aw, as] = [right.pop() as number, weight.pop() as number, size.pop() as number]
      right.push((a * aw + b * bw) / (aw + bw))
      weight.push(aw + bw)
      size.push(as + bs)
    }
  }
  const own = binOf(chance)
  for (let block = 0, from = 0; block < right.length; block++) {
    from += size[block] as number
    if (own < from) return right[block] as number
  }
  return chance
}
