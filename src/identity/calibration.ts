// How sure an answer is, from visits whose token the matcher was not shown: how often the likeliest visitor was the right one, and how
// likely somebody else would have seemed had that one never been here. Counted by how likely the answer seemed, near or far.

/** Bounds of bins for how likely the best visitor seemed. */
const BOUNDS = [0.02, 0.1, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98] as const
const BINS = BOUNDS.length + 1
const MIDDLES = [0.005, 0.05, 0.2, 0.4, 0.6, 0.75, 0.85, 0.925, 0.965, 0.99] as const
/**
 * What the surest looks are worth until hidden tokens tell (assumed): a second profile of one browser on one machine looks like a
 * first one whose storage was cleared.
 */
const UNPROVEN_MAX = 0.95
const UNPROVEN_FROM = 0.9
/** Of each bin: [the right one, another, another with the right one left out]. */
const STRIDE = 3
const NEAR_AT = BINS * STRIDE
/** Above this many hidden tokens, old ones count half. */
const AUDITS_MAX = 4_000
/** Nobody is told less likely than this: a chance may be 0. */
const LOGIT_MIN = -20
/** What holds the line to the chance as it seemed (a Gaussian prior: one over its variances), of its height and its slope. */
const HEIGHT_HELD = 4
const SLOPE_HELD = 16
const HEIGHT_MAX = 6
/** It grows, so that who seems likelier is told surer. */
const SLOPE_MIN = 0.2
const SLOPE_MAX = 2
const STEPS = 8
/** A step of Newton's may lead too far where hardly any was wrong. */
const STEP_MAX = 1

export const newAudits = (): number[] => new Array<number>(2 * NEAR_AT).fill(0)

/** How likely an answer seemed before it was calibrated, and whether its visitor was known from that address or network. */
export interface Seeming {
  readonly chance: number
  readonly nearby: boolean
}

/** What a hidden token showed: how likely the best visitor seemed and whether it was right, and the same with it left out. */
export interface Audit {
  readonly best: Seeming
  readonly isRight: boolean
  readonly stranger: Seeming
}

function binOf(chance: number): number {
  let bin = 0
  while (bin < BOUNDS.length && chance >= (BOUNDS[bin] as number)) bin++
  return bin
}

const placeOf = ({ chance, nearby }: Seeming): number => (nearby ? NEAR_AT : 0) + binOf(chance) * STRIDE

/** Where an audit counts, as lessons carry it. */
export const auditPlaces = ({ best, isRight, stranger }: Audit): readonly [number, number] => [
  placeOf(best) + (isRight ? 0 : 1),
  placeOf(stranger) + 2,
]

/** CHANGES what is given. */
export function learnAudit(audits: number[], places: readonly number[]): void {
  for (const place of places) if (place < audits.length) audits[place] = (audits[place] as number) + 1
  if (countIn(audits, 0) + countIn(audits, 1) <= AUDITS_MAX) return
  for (let i = 0; i < audits.length; i++) audits[i] = (audits[i] as number) >> 1
}

/** Above UNPROVEN_FROM a part of the distance, so that the surer stays the surer. */
const unproven = (chance: number): number =>
  chance <= UNPROVEN_FROM
    ? chance
    : UNPROVEN_FROM + ((chance - UNPROVEN_FROM) * (UNPROVEN_MAX - UNPROVEN_FROM)) / (1 - UNPROVEN_FROM)

function countIn(audits: readonly number[], kind: number): number {
  let sum = 0
  for (let i = kind; i < audits.length; i += STRIDE) sum += audits[i] as number
  return sum
}

const bounded = (value: number, least: number, most: number): number => Math.max(least, Math.min(most, value))

/** Of the chance as it is told without any audit. */
function logitOf(chance: number): number {
  const told = unproven(chance)
  return Math.max(LOGIT_MIN, Math.log(told / (1 - told)))
}
const MIDDLE_LOGITS = MIDDLES.map(logitOf)

/** How likely a visitor is the right one by how likely it seems, of one visit. */
export type Calibration = (seeming: Seeming) => number

/** The logit of a calibrated chance by that of the chance as it seemed. */
interface Line {
  readonly height: number
  readonly slope: number
}

/** The likeliest line (Platt 1999), by Newton's method: of each bin so many right ones, `right`, of so many, `all`. */
function lineOf(right: readonly number[], all: readonly number[]): Line {
  let height = 0
  let slope = 1
  for (let step = 0; step < STEPS; step++) {
    let byHeight = -HEIGHT_HELD * height
    let bySlope = -SLOPE_HELD * (slope - 1)
    let bend = HEIGHT_HELD
    let bendBoth = 0
    let bendSlope = SLOPE_HELD
    for (let bin = 0; bin < BINS; bin++) {
      const n = all[bin] as number
      if (n === 0) continue
      const x = MIDDLE_LOGITS[bin] as number
      const share = 1 / (1 + Math.exp(-height - slope * x))
      const more = (right[bin] as number) - n * share
      const spread = n * share * (1 - share)
      byHeight += more
      bySlope += more * x
      bend += spread
      bendBoth += spread * x
      bendSlope += spread * x * x
    }
    const area = bend * bendSlope - bendBoth * bendBoth
    const up = (bendSlope * byHeight - bendBoth * bySlope) / area
    const steeper = (bend * bySlope - bendBoth * byHeight) / area
    height = bounded(height + bounded(up, -STEP_MAX, STEP_MAX), -HEIGHT_MAX, HEIGHT_MAX)
    slope = bounded(slope + bounded(steeper, -STEP_MAX, STEP_MAX), SLOPE_MIN, SLOPE_MAX)
  }
  return { height, slope }
}

/**
 * `odds`: of visits without a token those of known devices against first ones. A line between logits, near and far each when first
 * asked for: bins by themselves would take hundreds of hidden tokens each, and one that holds few would move what is accepted.
 */
export function calibrationOf(audits: readonly number[], odds: number): Calibration {
  const hidden = countIn(audits, 0) + countIn(audits, 1)
  if (hidden === 0) return ({ chance }) => unproven(chance)
  const returning = (2 * odds) / (1 + odds)
  const first = ((2 - returning) * hidden) / Math.max(1, countIn(audits, 2))
  const lineFrom = (from: number): Line => {
    const right: number[] = []
    const all: number[] = []
    for (let at = from; at < from + NEAR_AT; at += STRIDE) {
      const found = returning * (audits[at] as number)
      right.push(found)
      all.push(found + returning * (audits[at + 1] as number) + first * (audits[at + 2] as number))
    }
    return lineOf(right, all)
  }
  let near: Line | null = null
  let far: Line | null = null
  return ({ chance, nearby }) => {
    if (nearby) near ??= lineFrom(NEAR_AT)
    else far ??= lineFrom(0)
    const { height, slope } = (nearby ? near : far) as Line
    return 1 / (1 + Math.exp(-height - slope * logitOf(chance)))
  }
}
