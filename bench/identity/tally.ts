// Counts how right a method is against the truth. An id belongs to the device whose visit it was first given to; a visit
// under an id that belongs to another device is a false merge.

import type { Answer } from './answer.ts'
import type { Truth } from './population.ts'

export interface Split {
  readonly n: number
  readonly correct: number
  readonly wrong: number
  readonly split: number
}
export interface Precision {
  readonly n: number
  readonly right: number
  readonly share: number
  /** Lower end of the 95 % Wilson interval. */
  readonly lower: number
}
export interface FrontierPoint {
  readonly confidenceMin: number
  readonly linked: number
  readonly wrong: number
  readonly newMerged: number
  readonly precision: number
}
export interface Calibration {
  /** Mean distance of what was said from what was right, weighed by bin; NaN without answers. */
  readonly error: number
  readonly bins: readonly { readonly n: number; readonly said: number; readonly right: number }[]
}
export interface Result {
  readonly visits: number
  readonly returning: number
  readonly firsts: number
  readonly falseMerges: number
  readonly hard: Split
  readonly newMerged: number
  readonly linkPrecision: Precision
  readonly privateLinked: number
  readonly stable: number
  readonly pairPrecision: number
  readonly pairRecall: number
  readonly segments: Readonly<Record<string, Split>>
  /** As `hard`, by family. */
  readonly families: Readonly<Record<string, Split>>
  /** Links without a token, and all answers that found somebody, told with a confidence above 0.9. */
  readonly sureLinks: Readonly<Record<string, Precision>>
  readonly sureFound: Readonly<Record<string, Precision>>
  /** Of answers without a token, in ten bins of confidence: a link is right, or "new" is. */
  readonly calibration: Readonly<Record<'all' | 'links' | 'new', Calibration>>
  readonly frontier: readonly FrontierPoint[]
}

export interface Tally {
  add(truth: Truth, answer: Answer): void
  /** Whose the id is, of a visit that is not counted. */
  claim(truth: Truth, answer: Pick<Answer, 'id'>): void
  result(): Result
}

const SURE_ABOVE = 0.9
const BINS = 10
const THRESHOLDS = [0, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99]
const Z = 1.96

/** A share with the lower end of its 95 % Wilson interval. */
export function wilson(right: number, n: number): Precision {
  if (n === 0) return { n, right, share: 0, lower: 0 }
  const p = right / n
  const centre = p + (Z * Z) / (2 * n)
  const spread = Z * Math.sqrt((p * (1 - p)) / n + (Z * Z) / (4 * n * n))
  return { n, right, share: p, lower: Math.max(0, (centre - spread) / (1 + (Z * Z) / n)) }
}

export function familyOf({ platform, browser }: Truth): string {
  const name = `${browser[0]?.toUpperCase()}${browser.slice(1)}`
  if (platform === 'ios') return `${name} (iOS)`
  return platform === 'android' ? `${name} (Android)` : name
}

function segmentsOf(truth: Truth): string[] {
  if (truth.fleet) return ['fleets']
  if (truth.platform === 'android') return ['Android']
  if (truth.platform === 'ios') return ['iOS']
  return truth.browser === 'firefox' ? ['desktop', 'Firefox'] : ['desktop']
}

const SEGMENTS = ['desktop', 'Firefox', 'Android', 'iOS', 'fleets']
const pairs = (n: number): number => (n * (n - 1)) / 2

interface Counts {
  n: number
  correct: number
  wrong: number
  split: number
}
interface Hits {
  n: number
  right: number
}
const noCounts = (): Counts => ({ n: 0, correct: 0, wrong: 0, split: 0 })

function countIn<K, V>(map: Map<K, V>, key: K, none: () => V): V {
  const found = map.get(key) ?? none()
  map.set(key, found)
  return found
}

function createCalibration() {
  const bins = Array.from({ length: BINS }, () => ({ n: 0, said: 0, right: 0 }))
  return {
    add(confidence: number, right: boolean) {
      const bin = bins[Math.min(BINS - 1, Math.floor(confidence * BINS))]
      if (bin === undefined) return
      bin.n++
      bin.said += confidence
      if (right) bin.right++
    },
    result(): Calibration {
      const total = bins.reduce((sum, bin) => sum + bin.n, 0)
      const distance = bins.reduce((sum, bin) => sum + Math.abs(bin.said - bin.right), 0)
      return {
        error: total === 0 ? Number.NaN : distance / total,
        bins: bins.map((bin) => ({ n: bin.n, said: bin.said / bin.n, right: bin.right / bin.n })),
      }
    },
  }
}

export function createTally(): Tally {
  const owners = new Map<string, number>()
  const firstOwned = new Map<number, string>()
  const perPair = new Map<string, number>()
  const perId = new Map<string, number>()
  const perDevice = new Map<number, number>()
  const segments = new Map(SEGMENTS.map((name) => [name, noCounts()]))
  const families = new Map<string, Counts>()
  const sureLinks = new Map<string, Hits>()
  const sureFound = new Map<string, Hits>()
  const calibrations = { all: createCalibration(), links: createCalibration(), new: createCalibration() }
  const links: { confidence: number; right: boolean; returning: boolean }[] = []
  const hard = noCounts()
  const n = { visits: 0, returning: 0, firsts: 0, falseMerges: 0, newMerged: 0, stable: 0 }
  const privates: Hits = { n: 0, right: 0 }

  const hit = (map: Map<string, Hits>, key: string, right: boolean) => {
    const hits = countIn(map, key, () => ({ n: 0, right: 0 }))
    hits.n++
    if (right) hits.right++
  }

  function addHard(truth: Truth, outcome: 'correct' | 'wrong' | 'split'): void {
    const ofFamily = countIn(families, familyOf(truth), noCounts)
    for (const counts of [hard, ofFamily, ...segmentsOf(truth).map((name) => segments.get(name) ?? noCounts())]) {
      counts.n++
      counts[outcome]++
    }
    if (!truth.isPrivate) return
    privates.n++
    if (outcome === 'correct') privates.right++
  }

  function addConfidence(truth: Truth, confidence: number, known: boolean, right: boolean): void {
    const family = familyOf(truth)
    if (known && confidence > SURE_ABOVE) hit(sureFound, family, right)
    if (!truth.tokenless) return
    if (known && confidence > SURE_ABOVE) hit(sureLinks, family, right)
    const answerRight = known ? right : !truth.returning
    calibrations.all.add(confidence, answerRight)
    calibrations[known ? 'links' : 'new'].add(confidence, answerRight)
  }

  function frontierAt(confidenceMin: number): FrontierPoint {
    const kept = links.filter(({ confidence }) => confidence >= confidenceMin)
    const right = kept.filter((one) => one.right).length
    const wrong = kept.filter((one) => !one.right && one.returning).length
    const merged = kept.filter((one) => !one.right && !one.returning).length
    return {
      confidenceMin,
      linked: right / hard.n,
      wrong: wrong / hard.n,
      newMerged: merged / n.firsts,
      precision: right / kept.length,
    }
  }

  return {
    claim(truth, { id }) {
      if (!owners.has(id)) owners.set(id, truth.device)
    },
    add(truth, { id, confidence }) {
      const owner = owners.get(id)
      const known = owner !== undefined
      if (!known) owners.set(id, truth.device)
      if (!known && !firstOwned.has(truth.device)) firstOwned.set(truth.device, id)
      const right = !known || owner === truth.device
      n.visits++
      if (!right) n.falseMerges++
      if (truth.returning) n.returning++
      else n.firsts++
      if (!truth.returning && known) n.newMerged++
      if (truth.returning && firstOwned.get(truth.device) === id) n.stable++
      if (truth.tokenless && truth.returning) addHard(truth, !known ? 'split' : right ? 'correct' : 'wrong')
      if (truth.tokenless && known) links.push({ confidence: confidence ?? 1, right, returning: truth.returning })
      if (confidence !== null) addConfidence(truth, confidence, known, right)
      const pair = `${truth.device}/${id}`
      perPair.set(pair, (perPair.get(pair) ?? 0) + 1)
      perId.set(id, (perId.get(id) ?? 0) + 1)
      perDevice.set(truth.device, (perDevice.get(truth.device) ?? 0) + 1)
    },
    result() {
      const sum = (counts: Iterable<number>) => [...counts].reduce((total, count) => total + pairs(count), 0)
      const together = sum(perPair.values())
      const precisions = (map: ReadonlyMap<string, Hits>) =>
        Object.fromEntries(
          [...map].sort((a, b) => b[1].n - a[1].n).map(([family, hits]) => [family, wilson(hits.right, hits.n)]),
        )
      return {
        visits: n.visits,
        returning: n.returning,
        firsts: n.firsts,
        falseMerges: n.falseMerges / n.visits,
        hard,
        newMerged: n.newMerged / n.firsts,
        linkPrecision: wilson(links.filter((one) => one.right).length, links.length),
        privateLinked: privates.right / privates.n,
        stable: n.stable / n.returning,
        pairPrecision: together / sum(perId.values()),
        pairRecall: together / sum(perDevice.values()),
        segments: Object.fromEntries(segments),
        families: Object.fromEntries([...families].sort((a, b) => b[1].n - a[1].n)),
        sureLinks: precisions(sureLinks),
        sureFound: precisions(sureFound),
        calibration: {
          all: calibrations.all.result(),
          links: calibrations.links.result(),
          new: calibrations.new.result(),
        },
        frontier: THRESHOLDS.map(frontierAt),
      }
    },
  }
}
