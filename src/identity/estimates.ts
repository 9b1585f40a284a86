// What the counts that traffic taught say: chances and shares, each starting from what is assumed until there are counts.

import { NETWORK_PRIOR, PROVIDER_PRIOR, TWINS_ASSUMED } from './agreement.ts'
import { BIN_BOUNDS, BINS, type MatchStatistics, VALUES } from './match-statistics.ts'
import type { VersionsLearned } from './versions.ts'

/** What the priors weigh, in visits. */
const PRIOR_VISITS = 40

/** However much traffic says, odds stay within this factor of what is assumed: some of it may have been sent to mislead. */
const ODDS_FACTOR_MAX = 8

const within = (value: number, assumed: number): number =>
  Math.min(assumed * ODDS_FACTOR_MAX, Math.max(assumed / ODDS_FACTOR_MAX, value))

/** A chance whose odds are not too far from those of the assumed one. */
function trusted(chance: number, assumed: number): number {
  const odds = within(chance / (1 - chance), assumed / (1 - assumed))
  return odds / (1 + odds)
}

/** Chance that a value is equal at the next visit of the same device; between 0 and 1, both excluded. */
export function keeping(statistics: MatchStatistics, prior: number, position: number, age: number): number {
  const at = (age * VALUES + position) * 2
  const equal = (statistics.pairs[at] as number) + PRIOR_VISITS * prior
  return trusted(equal / ((statistics.pairs[at + 1] as number) + PRIOR_VISITS), prior)
}

/** Chance that the next visit of the same device comes from an address it was seen at, such a network, or another. */
export function staying(statistics: MatchStatistics, match: 0 | 1 | 2, age: number): number {
  const at = age * 3
  const { networks } = statistics
  const seen = (networks[at] as number) + (networks[at + 1] as number) + (networks[at + 2] as number)
  const assumed = NETWORK_PRIOR[match]
  return trusted(((networks[at + match] as number) + PRIOR_VISITS * assumed) / (seen + PRIOR_VISITS), assumed)
}

/** Chance that a device that comes from another network is at a provider it was seen at. */
export function sameProvider({ providers }: MatchStatistics, age: number): number {
  const same = (providers[age * 2] as number) + PRIOR_VISITS * PROVIDER_PRIOR
  return trusted(same / ((providers[age * 2 + 1] as number) + PRIOR_VISITS), PROVIDER_PRIOR)
}

/** Share of devices with a look-alike at the same address. */
export const twinShare = ({ twins }: MatchStatistics): number =>
  trusted(((twins[0] as number) + PRIOR_VISITS * TWINS_ASSUMED) / ((twins[1] as number) + PRIOR_VISITS), TWINS_ASSUMED)

/** What is known of versions, for a visitor last seen at that age. */
export const versionsAt = ({ versions, updates }: MatchStatistics, age: number): VersionsLearned => ({
  versions,
  could: updates[age * 2] as number,
  moved: updates[age * 2 + 1] as number,
})

/** Devices still unseen that look like one whose look only it has. */
export const lookalikesUnseen = ({ singles, doubles }: MatchStatistics, prior: number): number =>
  within((doubles + PRIOR_VISITS * prior) / (singles + PRIOR_VISITS), prior)

function inBins(counts: readonly number[], from: number, to: number): number {
  let sum = 0
  for (let bin = from; bin < to; bin++) sum += counts[bin] as number
  return sum
}

/** Visits that were told new. */
export const toldNew = ({ news }: MatchStatistics): number => inBins(news, 0, BINS)

const RECALL_ASSUMED = 0.8
/** Bins of chances that speak for a known device, whether one was taken or not. */
const KNOWN_BINS = BIN_BOUNDS.filter((bound) => bound <= 0.5).length

/**
 * How many of `links` and `news`, visits without a token that were linked and told new, were those of known devices: as many as
 * hidden tokens show to be recognisable, and as many times more as they show to be missed. Not by links alone: where few are
 * accepted, nobody would seem to return, and fewer would be accepted from then on.
 */
export function returningOf(statistics: MatchStatistics, links: number, fresh: number): number {
  const { news, blind, blindNews } = statistics
  const told = toldNew(statistics)
  const known = told === 0 ? 0 : (fresh * inBins(news, 0, KNOWN_BINS)) / told
  const recall = trusted((blind - inBins(blindNews, KNOWN_BINS, BINS) + 4) / (blind + 5), RECALL_ASSUMED)
  return (links + known) / recall
}
