// How sure an answer "new" is: what traffic with hidden tokens tells of devices that come back and are not found.

import { returningOf, toldNew } from './estimates.ts'
import { growing } from './isotonic.ts'
import { BIN_BOUNDS, BINS, binOf, type MatchStatistics } from './match-statistics.ts'

/** What the chance found for a visit weighs against what was learned of such chances, in visits. */
const CHANCE_VISITS = 2

/**
 * How likely an answer "new" is right, given the chance the candidates leave for it. Devices that come back and are not found
 * look new as well: as many of them as of the visits whose token was hidden, of all that come back without one.
 */
export function newConfidence(statistics: MatchStatistics, chance: number): number {
  const { links, blind, blindNews, news } = statistics
  const all = toldNew(statistics)
  const returning = Math.min(links + all, returningOf(statistics, links, all))
  const right: number[] = []
  const weight: number[] = []
  for (let bin = 0; bin < BINS; bin++) {
    const told = news[bin] as number
    const missed = blind === 0 ? 0 : (returning * (blindNews[bin] as number)) / blind
    const middle = bin === 0 ? 0.15 : ((BIN_BOUNDS[bin - 1] as number) + (BIN_BOUNDS[bin] ?? 1)) / 2
    const n = told + CHANCE_VISITS
    // Where hardly any looks new, those thought to be missed can be more than all there were; then the chance itself tells.
    const least = bin === 0 ? told * middle : 0
    right.push((Math.max(least, told - missed) + CHANCE_VISITS * middle) / n)
    weight.push(n)
  }
  return growing(right, weight)[binOf(chance)] as number
}
