// When devices come: how likely it is that one comes just now, for the first time or again, and that it comes without its
// token, by the true distributions of gaps, first visits, private windows and lost storage.

import { type Device, isMobile, type World } from './devices.ts'
import { SAFARI_CAP_MS, SESSION_MS } from './life.ts'
import type { Rates } from './parameters.ts'

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
const DAY_MS = 24 * HOUR_MS

/** Abramowitz and Stegun 7.1.26, to 1.5e-7. */
function normalBelow(x: number): number {
  const z = Math.abs(x) / Math.SQRT2
  const t = 1 / (1 + 0.3275911 * z)
  const series = ((((1.061405429 * t - 1.453152027) * t + 1.421413741) * t - 0.284496736) * t + 0.254829592) * t
  const above = (series * Math.exp(-z * z)) / 2
  return x >= 0 ? 1 - above : above
}

export interface Arrivals {
  /** Visits per millisecond of a device last seen then and first then, given that it has not come in between. */
  again(firstMs: number, lastMs: number, atMs: number): number
  /** First visits per millisecond of a device that was not seen before. */
  first(atMs: number): number
  /** Share of devices that have come for the first time. */
  seen(atMs: number): number
}

export function arrivalsOf({ rates, startMs, endMs }: World): Arrivals {
  const burst = rates['visits.burst']
  const burstMs = rates['visits.burstHours'] * HOUR_MS
  const sigma = rates['visits.gapSigma']
  const centre = Math.log(rates['visits.gapDays'] * DAY_MS)
  const spanMs = endMs - startMs
  const early = rates['devices.present']
  const soonMs = Math.min(spanMs * 0.5, DAY_MS * rates['visits.gapDays'] * 2)
  const retire = rates['devices.retire']

  const seen = (atMs: number): number => {
    const share = (withinMs: number) => Math.min(1, Math.max(0, (atMs - startMs) / withinMs))
    return early * share(soonMs) + (1 - early) * share(spanMs)
  }
  return {
    seen,
    first: (atMs) => (atMs - startMs < soonMs ? early / soonMs : 0) + (1 - early) / spanMs,
    again(firstMs, lastMs, atMs) {
      // Nobody comes back within a minute; times are whole milliseconds.
      const gapMs = atMs - lastMs - MINUTE_MS + 1
      if (gapMs <= 0) return 0
      const z = (Math.log(gapMs) - centre) / sigma
      const soon = Math.exp(-gapMs / burstMs)
      const later = Math.exp((-z * z) / 2) / (gapMs * sigma * Math.sqrt(2 * Math.PI))
      const density = (burst * soon) / burstMs + (1 - burst) * later
      const below = burst * (1 - soon) + (1 - burst) * normalBelow(z)
      // Of the gaps below, the mean times their share.
      const means =
        burst * (burstMs - (gapMs + burstMs) * soon) +
        (1 - burst) * Math.exp(centre + (sigma * sigma) / 2) * normalBelow(z - sigma)
      const goes = retire / Math.max(1, endMs - firstMs)
      const there = (whenMs: number) => 1 - retire + goes * (endMs - whenMs)
      const notYet = there(lastMs) * (1 - below) + goes * means
      return (density * there(atMs)) / Math.max(notYet, 1e-12)
    },
  }
}

/** What a device may be like to its storage, as a weight for each: 8 habits, each with a token kept and without. */
export type Keeping = Float64Array

const HABITS = [0, 1, 2, 3, 4, 5, 6, 7]
const CLEARS = 1
const CAPPED = 2
const HEAVY = 4

const privateChance = (habit: number, rates: Rates): number => rates[habit & HEAVY ? 'private.heavy' : 'private.usual']

/** Of a device not seen yet. */
export function newKeeping({ platform, browser, fleet }: Device, rates: Rates): Keeping {
  const webkit = platform === 'ios' || browser === 'safari'
  const keeping = new Float64Array(16)
  for (const habit of HABITS) {
    const share = (bit: number, chance: number) => (habit & bit ? chance : 1 - chance)
    keeping[habit] =
      share(CLEARS, rates['storage.clearOnExit']) *
      share(CAPPED, webkit && fleet === null ? rates['storage.safariCapped'] : 0) *
      share(HEAVY, fleet === null ? rates['private.heavyUsers'] : 0)
  }
  return keeping
}

/** How a device came, which is also what is learned of it. */
export interface Coming {
  readonly elapsedMs: number
  readonly isPrivate: boolean
  readonly tokenless: boolean
  readonly spoofs: boolean
}

/** Weights after a visit like that; their sum is its chance. */
function after(keeping: Keeping, coming: Coming, rates: Rates): Keeping {
  const { elapsedMs, isPrivate, tokenless, spoofs } = coming
  const next = new Float64Array(16)
  for (const habit of HABITS) {
    const held = keeping[habit + 8] as number
    const empty = keeping[habit] as number
    if (held + empty === 0) continue
    const often = privateChance(habit, rates)
    const isLost =
      spoofs ||
      ((habit & CLEARS) !== 0 && elapsedMs >= SESSION_MS) ||
      ((habit & CAPPED) !== 0 && elapsedMs > SAFARI_CAP_MS)
    const kept = isLost ? 0 : held * (1 - rates['storage.cleared'])
    const gone = held - kept + empty
    if (isPrivate) {
      next[habit] = often * gone
      next[habit + 8] = often * kept
    } else next[habit + 8] = (1 - often) * (tokenless ? gone : kept)
  }
  return next
}

const sumOf = (weights: Float64Array): number => {
  let sum = 0
  for (const weight of weights) sum += weight
  return sum
}

/** Chance that a device comes without its token, in a private window or not. */
export const comingChance = (keeping: Keeping, coming: Coming, rates: Rates): number =>
  sumOf(after(keeping, coming, rates))

/** What is known after it came like that. */
export function keptAfter(keeping: Keeping, coming: Coming, rates: Rates): Keeping {
  const next = after(keeping, coming, rates)
  const sum = sumOf(next)
  return sum === 0 ? keeping : next.map((weight) => weight / sum)
}

/** How many of a household or a fleet are still to come: on average, and on average per member there is. */
export interface Unseen {
  readonly members: number
  readonly perMember: number
}

/** `weights` by size; `met` have come, each with the chance `seen`. */
export function unseenOf(weights: readonly number[], met: number, seen: number): Unseen {
  let total = 0
  let members = 0
  let perMember = 0
  // Chance of that many of a size, less what is the same for all sizes.
  let chosen = 1
  for (let size = Math.max(met, 1); size < weights.length; size++) {
    const weight = (weights[size] as number) * chosen
    total += weight
    members += weight * (size - met)
    perMember += (weight * (size - met)) / size
    chosen *= ((size + 1) / (size + 1 - met)) * (1 - seen)
  }
  return total === 0 ? { members: 0, perMember: 0 } : { members: members / total, perMember: perMember / total }
}

/** Weights of the sizes households have. */
export const householdSizes = (rates: Rates): number[] => {
  const sizeMax = Math.max(1, Math.round(rates['household.sizeMax']))
  return Array.from({ length: sizeMax + 1 }, (_, size) => (size === 0 ? 0 : 1 / sizeMax))
}

/** Weights of the sizes fleets have: even by their logarithm. */
export const fleetSizes = (rates: Rates): number[] => {
  const least = Math.max(2, Math.round(rates['fleet.sizeMin']))
  const most = least * Math.max(1, rates['fleet.sizeMax'] / rates['fleet.sizeMin'])
  return Array.from({ length: Math.round(most) + 1 }, (_, size) => (size < least ? 0 : 1 / size))
}

/** Chance that what happens so many times a year happened since. */
export const happenedIn = (perYear: number, elapsedMs: number): number =>
  1 - Math.exp((-perYear * elapsedMs) / (365 * DAY_MS))

/** Chance that a device has the lag of updates between two times, in milliseconds. */
export function lagBetween(fromMs: number, toMs: number, fleet: boolean, rates: Rates): number {
  const above = (ms: number): number => {
    const after = ms / DAY_MS
    if (fleet) return Math.exp(-Math.max(0, after - rates['fleet.updateLagDays']))
    const slow = rates['release.laggards']
    const beyond = (meanDays: number) => Math.exp(-Math.max(0, after) / meanDays)
    return (1 - slow) * beyond(rates['release.lagDays']) + slow * beyond(rates['release.laggardDays'])
  }
  return Math.max(0, above(fromMs) - above(toMs))
}

/** Chance to be a phone or a person who travels. */
export const travelChance = ({ platform, fleet }: Device): number => (fleet !== null ? 0 : isMobile(platform) ? 1 : 0.5)
