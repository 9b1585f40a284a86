// How often visitors come back without a token, and after how long: of all visitors of a system and browser as learned from
// traffic, and of one visitor against them. In a private window nobody has a token, so that says nothing about lost storage.

import { HOUR_MS } from '../lib/durations.ts'
import { hoursOf, SPANS, spanOf } from './absences.ts'
import { LOSS_ASSUMED, PRIVATE_ASSUMED } from './agreement.ts'
import { returningOf, toldNew } from './estimates.ts'
import type { MatchStatistics } from './match-statistics.ts'
import type { VisitorState } from './visitor.ts'

/** What odds, shares and rates start from, in visits. */
const ODDS_VISITS = 20
const SHARE_VISITS = 40
const RATE_VISITS = 1.5
const ODDS_MAX = 20
/** Visitors not seen for longer are less and less likely to return at all: e times less in 90 days (assumed). */
const ACTIVE_HOURS = 30 * 24
const GONE_HOURS = 90 * 24
/** What a visitor's own habit is weighed against, in visits: few, since people clear their storage always or hardly ever. */
const HABIT_VISITS = 2

const lostIn = ({ returns }: MatchStatistics, span: number): number => returns[span * 3] as number
const otherIn = ({ returns }: MatchStatistics, span: number): number => returns[span * 3 + 1] as number
const hoursIn = ({ returns }: MatchStatistics, span: number): number => returns[span * 3 + 2] as number

function overSpans(of: (span: number) => number): number {
  let sum = 0
  for (let span = 0; span < SPANS; span++) sum += of(span)
  return sum
}

/** How long devices stay away on average (assumed until traffic tells). */
const GAP_HOURS = 10 * 24
/** What that weighs, in visits. */
const GAP_VISITS = 20

/** Milliseconds from one visit of a device to its next, on average. */
export function gapMsOf(statistics: MatchStatistics): number {
  const visits = overSpans((span) => lostIn(statistics, span) + otherIn(statistics, span)) + GAP_VISITS
  const hours = overSpans((span) => hoursIn(statistics, span)) + GAP_VISITS * GAP_HOURS
  return (hours / visits) * HOUR_MS
}

/** Shares of returning visits: without a token outside private windows, and in private windows. */
function shares(statistics: MatchStatistics): { readonly lost: number; readonly isPrivate: number } {
  const lost = overSpans((span) => lostIn(statistics, span))
  const all = lost + overSpans((span) => otherIn(statistics, span)) + SHARE_VISITS
  return {
    lost: (lost + SHARE_VISITS * LOSS_ASSUMED) / all,
    isPrivate: (statistics.privateLinks + SHARE_VISITS * PRIVATE_ASSUMED) / all,
  }
}

/** Of visits without a token (in private windows, or outside them) those of known devices against those of new ones. */
function returningOdds(statistics: MatchStatistics, isPrivate: boolean): number {
  const { links, privateLinks, privateNews } = statistics
  const told = toldNew(statistics)
  const linked = isPrivate ? privateLinks : links - privateLinks
  const fresh = isPrivate ? privateNews : told - privateNews
  // Newcomers come in private windows as often as others.
  const firstsOfAll = Math.max(0, links + told - returningOf(statistics, links, told))
  const most = isPrivate ? firstsOfAll * shares(statistics).isPrivate : fresh
  const firsts = Math.min(most, Math.max(0, linked + fresh - returningOf(statistics, linked, fresh)))
  const returning = linked + fresh - firsts
  return Math.min(ODDS_MAX, Math.max(1 / ODDS_MAX, (returning + ODDS_VISITS) / (firsts + ODDS_VISITS)))
}

/** What is known of returns before looking at any one visitor: made once per visit. */
export interface Returns {
  readonly isPrivate: boolean
  readonly odds: number
  /** Share of returning visits that are like this one. */
  readonly usual: number
  /** Per span of absence, how much oftener than on average a visitor comes back like that then; 1 without experience. */
  readonly rates: readonly number[]
}

export function returnsOf(statistics: MatchStatistics, isPrivate: boolean): Returns {
  const { lost, isPrivate: inPrivate } = shares(statistics)
  return {
    isPrivate,
    odds: returningOdds(statistics, isPrivate),
    usual: isPrivate ? inPrivate : lost,
    rates: ratesOf(statistics, isPrivate),
  }
}

function ratesOf(statistics: MatchStatistics, isPrivate: boolean): number[] {
  // Who opens a private window does so whatever became of the storage.
  const countIn = (span: number) => lostIn(statistics, span) + (isPrivate ? otherIn(statistics, span) : 0)
  const count = overSpans(countIn)
  const exposure = overSpans((span) => hoursIn(statistics, span))
  const usual = count === 0 || exposure === 0 ? 0 : count / exposure
  const rates: number[] = []
  for (let span = 0; span < SPANS; span++) {
    const rate = (countIn(span) + RATE_VISITS) / (hoursIn(statistics, span) + RATE_VISITS / usual) / usual
    rates.push(usual === 0 ? 1 : rate)
  }
  return rates
}

/** How much likelier it is this visitor that comes back like that now than any one visitor on average. */
export function returningNow({ isPrivate, usual, rates }: Returns, visitor: VisitorState, elapsedMs: number): number {
  const { totalVisits, tokenVisits, privateVisits } = visitor
  const returns = Math.max(0, totalVisits - 1)
  const open = Math.max(0, returns - privateVisits)
  const [n, all] = isPrivate ? [Math.min(privateVisits, returns), returns] : [Math.max(0, open - tokenVisits), open]
  const habit = (n + HABIT_VISITS * usual) / (all + HABIT_VISITS) / usual
  const hours = hoursOf(elapsedMs)
  const gone = Math.exp(-Math.max(0, hours - ACTIVE_HOURS) / GONE_HOURS)
  return habit * gone * (rates[spanOf(hours)] as number)
}
