// How sure an answer is, from visits whose token the matcher was not shown: how often the likeliest visitor was the right one, and how
// likely somebody else would have seemed had that one never been here. Counted by how likely the answer seemed, near or far.

import { growing } from './isotonic.ts'

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
/** What the matcher's own chance weighs in a bin, in visits. */
const CHANCE_VISITS = 6
const LOGIT_MAX = 6

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

const logit = (chance: number): number => Math.max(-LOGIT_MAX, Math.min(LOGIT_MAX, Math.log(chance / (1 - chance))))

/** How likely a visitor is the right one by how likely it seems, of one visit. */
export type Calibration = (seeming: Seeming) => number

/**
 * `odds`: of visits without a token those of known devices against first ones. Pooled until it grows with the chance (isotonic), near and
 * far each when first asked for, between bins by logits.
 */
export function calibrationOf(audits: readonly number[], odds: number): Calibration {
  const hidden = countIn(audits, 0) + countIn(audits, 1)
  if (hidden === 0) return ({ chance }) => unproven(chance)
  const returning = (2 * odds) / (1 + odds)
  const first = ((2 - returning) * hidden) / Math.max(1, countIn(audits, 2))
  const pool = (from: number): number[] => {
    const right: number[] = []
    const weight: number[] = []
    for (let bin = 0; bin < BINS; bin++) {
      const at = from + bin * STRIDE
      const found = returning * (audits[at] as number)
      const all = found + returning * (audits[at + 1] as number) + first * (audits[at + 2] as number)
      const n = all + CHANCE_VISITS
      right.push((found + CHANCE_VISITS * unproven(MIDDLES[bin] as number)) / n)
      weight.push(n)
    }
    return growing(right, weight)
  }
  let near: number[] | null = null
  let far: number[] | null = null
  return ({ chance, nearby }) => {
    if (nearby) near ??= pool(NEAR_AT)
    else far ??= pool(0)
    return between((nearby ? near : far) as number[], logit(chance))
  }
}

/** Below the middle of the first bin the distance stays as it is there; above that of the last one nothing more is known. */
function between(pooled: readonly number[], x: number): number {
  let bin = 0
  while (bin < BINS - 1 && x > logit(MIDDLES[bin] as number)) bin++
  const [x1, y1] = [logit(MIDDLES[bin] as number), logit(pooled[bin] as number)]
  let y = x > x1 ? y1 : y1 + x - x1
  if (bin > 0 && x <= x1) {
    const [x0, y0] = [logit(MIDDLES[bin - 1] as number), logit(pooled[bin - 1] as number)]
    y = y0 + ((x - x0) * (y1 - y0)) / (x1 - x0)
  }
  return 1 / (1 + Math.exp(-y))
}
