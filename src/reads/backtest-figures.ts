// From counted groups of events to the figures of a backtest: rates, their intervals, the verdict matrix, the daily series.

import type { StoredEvent, Verdict } from '../domain/event.ts'
import { DAY_MS } from '../lib/durations.ts'

export type GivenLabel = NonNullable<StoredEvent['label']>
/** Events that are alike in all of this. */
export interface CountedGroup {
  /** UTC, `2026-11-20`. */
  readonly day: string
  readonly verdict: Verdict | null
  readonly label: GivenLabel | null
  readonly matched: boolean
  readonly events: number
}

export type FprBasis = 'labels' | 'proxy' | 'none'
export interface FprEstimate {
  readonly estimatedFpr: number
  readonly fprBasis: FprBasis
  /** Wilson, 95 %; null without a basis. */
  readonly fprInterval: readonly [number, number] | null
}

/** Fewer labels than this say too little, and a proxy is taken. */
export const LABELS_MIN = 50

export interface FigureShare {
  readonly part: number
  readonly whole: number
}

/** 0 of nothing. */
export const rateOf = ({ part, whole }: FigureShare): number => (whole === 0 ? 0 : part / whole)
const Z_95 = 1.959963984540054

/** The 95 % interval of a share, 0 to 1. It stays honest for small counts and for shares of 0 and 1. */
export function wilson({ part, whole }: FigureShare): readonly [number, number] {
  if (whole === 0) return [0, 1]
  const p = part / whole
  const z2 = Z_95 * Z_95
  const middle = p + z2 / (2 * whole)
  const half = Z_95 * Math.sqrt((p * (1 - p) + z2 / (4 * whole)) / whole)
  const bound = (x: number) => Math.min(1, Math.max(0, x / (1 + z2 / whole)))
  // At the ends the formula gives exactly 0 and 1, its rounding does not.
  return [part === 0 ? 0 : bound(middle - half), part === whole ? 1 : bound(middle + half)]
}

const sum = (groups: readonly CountedGroup[], where: (group: CountedGroup) => boolean = () => true): number =>
  groups.reduce((total, group) => (where(group) ? total + group.events : total), 0)

/** How many events have a label, and how many of them the rule matches. */
export function labelled(groups: readonly CountedGroup[], label: GivenLabel): FigureShare {
  return {
    part: sum(groups, (group) => group.label === label && group.matched),
    whole: sum(groups, (group) => group.label === label),
  }
}

/** The labels that a rule of this verdict should leave alone: an allow rule those of fraud. */
export const wronged = (verdict: Verdict | null): GivenLabel => (verdict === 'allow' ? 'fraud' : 'legitimate')

/** `proxy`: legitimate events by their looks, of which `part` match; null where there is no such thing. */
export function estimateFpr(labels: FigureShare, proxy: FigureShare | null): FprEstimate {
  const [share, fprBasis]: [FigureShare, FprBasis] =
    labels.whole >= LABELS_MIN
      ? [labels, 'labels']
      : proxy !== null && proxy.whole > 0
        ? [proxy, 'proxy']
        : [{ part: 0, whole: 0 }, 'none']
  return { estimatedFpr: rateOf(share), fprBasis, fprInterval: fprBasis === 'none' ? null : wilson(share) }
}

/**
 * How right the rule is about labelled events: of those it matches the share it is right about, and of those it should match
 * the share it does. null: no label says so.
 */
export function quality(groups: readonly CountedGroup[], verdict: Verdict | null) {
  const wrong = labelled(groups, wronged(verdict))
  const right = labelled(groups, wronged(verdict) === 'fraud' ? 'legitimate' : 'fraud')
  const matched = right.part + wrong.part
  return {
    precision: matched === 0 ? null : right.part / matched,
    recall: right.whole === 0 ? null : right.part / right.whole,
  }
}

/** `allow→block`: how many matched events had the first verdict and would have the second; without a verdict, nothing. */
export function verdictMatrix(groups: readonly CountedGroup[], verdict: Verdict | null): Record<string, number> {
  const matrix: Record<string, number> = {}
  if (verdict === null) return matrix
  for (const was of ['allow', 'challenge', 'block', null] as const) {
    const events = sum(groups, (group) => group.matched && group.verdict === was)
    if (events > 0) matrix[`${was ?? 'none'}→${verdict}`] = events
  }
  return matrix
}

/** Every day from that of `fromMs` to that of `toMs`, both included, in order. */
export function byDay(groups: readonly CountedGroup[], fromMs: number, toMs: number) {
  const days = []
  for (let at = fromMs - (fromMs % DAY_MS); at <= toMs; at += DAY_MS) {
    const day = new Date(at).toISOString().slice(0, 10)
    const ofDay = groups.filter((group) => group.day === day)
    days.push({ day, total: sum(ofDay), matched: sum(ofDay, (group) => group.matched) })
  }
  return days
}

export const totals = (groups: readonly CountedGroup[]): FigureShare => ({
  part: sum(groups, (group) => group.matched),
  whole: sum(groups),
})
