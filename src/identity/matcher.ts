// Recognition: which known visitor stands behind a visit, and how sure that is. A genuine token decides; without one the
// candidates found by key compete with each other and with "never seen before", and only a clear winner is taken.

import type { IdentityMethod, PossibleVisitor } from '../domain/event.ts'
import { quantise4 } from '../domain/event.ts'
import type { TokenClaims } from '../domain/identify.ts'
import { CLONED_BEFORE, TWIN_UNSEEN } from './agreement.ts'
import type { Attributes } from './attributes.ts'
import { calibrationOf, type Seeming } from './calibration.ts'
import { type Compared, compare, prepareVisit } from './compare.ts'
import { deviceChance, type Weighed } from './copies.ts'
import { twinShare } from './estimates.ts'
import { isRefuted, tokenChance } from './generations.ts'
import { isSparse } from './keys.ts'
import { type MatchStatistics, newMatchStatistics } from './match-statistics.ts'
import { newConfidence } from './new-confidence.ts'
import { CORES, MEMORY, type Profile } from './profile.ts'
import { gapMsOf } from './returns.ts'
import type { VisitorState } from './visitor.ts'

export interface RecogniseInput {
  readonly attributes: Attributes
  /** Canonical. */
  readonly ip: string
  /** Whose the address is; null or left out where nobody says. */
  readonly asn?: number | null
  readonly atMs: number
  readonly token: TokenClaims | null
  /** The visitor the token names; null when there is no token or no such visitor (any more). */
  readonly tokenVisitor: VisitorState | null
  /** A token came that we never signed for this workspace and environment. */
  readonly tokenForged?: boolean
  /** Visitors found under the exact key, and those found under the blocking keys; they may overlap. */
  readonly exact: readonly VisitorState[]
  readonly linked: readonly VisitorState[]
  readonly incognito: boolean
  /** How many visitors were ever seen under each match key, by its letter. */
  readonly totals?: Readonly<Record<string, number>>
  /** What traffic taught about this system and browser; priors alone without. */
  readonly statistics?: MatchStatistics
  /** Over how many partitions devices of one system and browser are spread; 1 by default. */
  readonly partitions?: number
}

export type Evidence =
  | 'token_forged'
  | 'token_unknown_visitor'
  | 'token_refuted'
  | 'token_contradiction'
  | 'token_older_storage'
  | 'possible_visitor'
  | 'sparse'

export interface MatchResult {
  /** Null: a new visitor, or, by its token, one of whom nothing else is remembered. */
  readonly visitor: VisitorState | null
  readonly method: IdentityMethod
  /** 0 to 1, four decimals: that this answer (also "new") is right. */
  readonly confidence: number
  readonly anonymitySet: number
  readonly candidates: number
  /** The visitor was found without its token and gets one of a new generation. */
  readonly reissueGeneration: boolean
  /** The generation the answer's token carries. */
  readonly generation: number
  readonly evidence: readonly Evidence[]
  /** What the candidates left for "new", before calibration; 0 for a token. */
  readonly newChance: number
  /** Whom a new visitor may be all the same, from POSSIBLE_TOLD_MIN on. */
  readonly possible: PossibleVisitor | null
  /** How likely its best visitor seemed before calibration, whether that was taken or not. */
  readonly seeming: Seeming
  /** Best first, at most eight. */
  readonly scores: readonly { readonly visitorId: string; readonly posterior: number }[]
}

const CANDIDATES_MAX = 32
/** One wrong link costs as much as eight that are missed (assumed): then a link pays from 8 in 9. */
const ACCEPT_MIN = 8 / 9
/** Posteriors from here to ACCEPT_MIN are worth telling, not acting on. */
const POSSIBLE_MIN = 0.5
/** For whoever would rather be told too often. */
const POSSIBLE_TOLD_MIN = 0.1
const SCORES_MAX = 8
/** Records less likely than this add nothing to another's. */
const COPY_MIN = 0.01
const NOBODY: Seeming = { chance: 0, nearby: false }
/** A known device may have changed so much that no key finds it, and no look is as sure as a token. */
const LOOKS_CONFIDENCE_MAX = 0.99
const TOKEN_CONFIDENCE = 0.995
const CONTRADICTED_CONFIDENCE = 0.5
const SPARSE_CONFIDENCE = 0.3
/** A device whose token was given to it for another's: it is not that one, so it is one we had no visitor for. */
const REFUTED_CONFIDENCE = 0.9
/** Candidates this much below the best still count as look-alikes (natural log). */
const LOOKALIKE_WITHIN = 2.3

// Phones asked for desktop pages call themselves Linux, iPads call themselves Macs: no contradiction.
const DISGUISES = new Set(['Android>Linux', 'Linux>Android', 'iOS>macOS', 'macOS>iOS'])

function contradicts(known: Profile | null, seen: Profile): boolean {
  if (known === null) return false
  const odd = known.os === 'other' || seen.os === 'other'
  if (!odd && known.os !== seen.os && !DISGUISES.has(`${known.os}>${seen.os}`)) return true
  const differs = (i: number) => known.values[i] != null && seen.values[i] != null && known.values[i] !== seen.values[i]
  const otherMaker = known.gpuClass !== null && seen.gpuClass !== null && known.gpuClass !== seen.gpuClass
  return otherMaker && differs(CORES) && differs(MEMORY)
}

const NOTHING_LEARNED = newMatchStatistics()

/** Visitors that were ever seen under each key, each as what it is likely to be of a device. */
function devicesIn({ exact, linked, totals = {} }: RecogniseInput): Readonly<Record<string, number>> {
  let e = 0
  for (const one of exact) e += one.newness
  let all = e
  for (const one of linked) all += one.newness
  const share = exact.length + linked.length === 0 ? 1 : all / (exact.length + linked.length)
  const devices: Record<string, number> = {}
  for (const letter in totals) {
    const total = totals[letter] as number
    const own = letter === 'e' && exact.length > 0 ? e / exact.length : share
    devices[letter] = Math.max(Math.min(1, total), total * own)
  }
  return devices
}

/** All candidates that could be the device, the likeliest first. */
function scoresOf(
  input: RecogniseInput,
  statistics: MatchStatistics,
): { scored: Compared[]; candidates: number; odds: number } {
  const { attributes, atMs, ip, asn = null, exact, linked, partitions = 1, incognito: isPrivate } = input
  const seen = prepareVisit({ attributes, atMs, ip, asn, isPrivate, statistics, totals: devicesIn(input), partitions })
  const ids = new Set<string>()
  const scored: Compared[] = []
  const add = (visitors: readonly VisitorState[], isExact: boolean) => {
    for (const visitor of visitors) {
      if (ids.size === CANDIDATES_MAX) return
      if (ids.has(visitor.id)) continue
      ids.add(visitor.id)
      const one = compare(visitor, isExact, seen)
      if (one !== null) scored.push(one)
    }
  }
  add(exact, true)
  add(linked, false)
  scored.sort((a, b) => b.log - a.log)
  return { scored, candidates: ids.size, odds: seen.returns.odds }
}

/** That the device which was given a token is the one that brings it. */
function chanceOf({ tokenVisitor, atMs, statistics = NOTHING_LEARNED }: RecogniseInput, token: TokenClaims): number {
  // Nobody remembers giving it out: it may have come of a link, which was at least this sure.
  if (token.generation > (tokenVisitor?.generation ?? 1)) return ACCEPT_MIN
  // Most tokens were given out with certainty: how often devices come back says nothing of them.
  if (tokenVisitor === null || tokenVisitor.generationChance === 1) return 1
  return tokenChance(tokenVisitor, token, atMs, gapMsOf(statistics))
}

function byToken(input: RecogniseInput, token: TokenClaims, evidence: Evidence[]): MatchResult {
  const visitor = input.tokenVisitor
  const contradiction = visitor !== null && contradicts(visitor.profile, input.attributes.profile)
  if (visitor === null) evidence.push('token_unknown_visitor')
  if (contradiction) evidence.push('token_contradiction')
  if (visitor !== null && token.generation < visitor.generation) evidence.push('token_older_storage')
  const chance = Math.min(chanceOf(input, token), TOKEN_CONFIDENCE)
  const confidence = contradiction ? CONTRADICTED_CONFIDENCE : quantise4(chance)
  return {
    visitor,
    method: 'token',
    confidence,
    anonymitySet: 1,
    candidates: 1,
    reissueGeneration: false,
    generation: token.generation,
    evidence,
    newChance: 0,
    possible: null,
    seeming: NOBODY,
    scores: [{ visitorId: token.visitorId, posterior: confidence }],
  }
}

function asNew(confidence: number, evidence: Evidence[], more: Partial<MatchResult> = {}): MatchResult {
  return {
    visitor: null,
    method: 'new',
    confidence: quantise4(Math.min(confidence, LOOKS_CONFIDENCE_MAX)),
    anonymitySet: 1,
    candidates: 0,
    reissueGeneration: false,
    generation: 1,
    evidence,
    newChance: 1,
    possible: null,
    seeming: NOBODY,
    scores: [],
    ...more,
  }
}

/** Weight of the visitors that ever had this exact look and were too many to be listed: each as those listed from elsewhere. */
function unlisted({ exact, totals }: RecogniseInput, scored: readonly Compared[]): number {
  const more = (totals?.e ?? 0) - exact.length
  const far = scored.filter((one) => one.exact && !one.nearby)
  if (more <= 0 || far.length === 0) return 0
  return (more * far.reduce((sum, one) => sum + Math.exp(one.log), 0)) / far.length
}

/** Decides who is visiting. Pure: neither the input nor any candidate is changed. */
export function recognise(input: RecogniseInput): MatchResult {
  const { attributes, token, tokenVisitor } = input
  const evidence: Evidence[] = []
  if (input.tokenForged === true) evidence.push('token_forged')
  if (token !== null) {
    if (tokenVisitor === null || !isRefuted(tokenVisitor, token.generation)) return byToken(input, token, evidence)
    // Its storage was never cleared, so looks would only lead it to another device of the same kind once more.
    evidence.push('token_refuted')
    return asNew(REFUTED_CONFIDENCE, evidence)
  }
  if (isSparse(attributes.profile)) {
    evidence.push('sparse')
    return asNew(SPARSE_CONFIDENCE, evidence)
  }

  const statistics = input.statistics ?? NOTHING_LEARNED
  const { scored, candidates, odds } = scoresOf(input, statistics)
  const best = scored[0]
  if (best === undefined) return asNew(newConfidence(statistics, 1), evidence, { candidates })

  // Relative to max(best, new) so that no exponent overflows.
  const top = Math.max(best.log, 0)
  const cloned = best.visitor.refutedFrom > 0 ? CLONED_BEFORE : 1
  const cloneShare = TWIN_UNSEEN * twinShare(statistics) * cloned
  const asUnseen = Math.exp(-top) + (best.nearby ? cloneShare * Math.exp(best.log - best.personal - top) : 0)
  let total = asUnseen
  for (const one of scored) total += Math.exp(one.log - top)
  total += unlisted(input, scored) * Math.exp(-top)
  const posteriorOf = (one: Compared) => Math.exp(one.log - top) / total
  const scores = scored.slice(0, SCORES_MAX).map((one) => ({
    visitorId: one.visitor.id,
    posterior: quantise4(posteriorOf(one)),
  }))
  const alike = scored.filter((one) => one.log > best.log - LOOKALIKE_WITHIN && one.log > 0).length
  const weighed: (Weighed & { readonly compared: Compared })[] = []
  for (const compared of scored) {
    const chance = posteriorOf(compared)
    if (chance >= COPY_MIN || compared === best) weighed.push({ visitor: compared.visitor, chance, compared })
  }
  const seeming: Seeming = { chance: deviceChance(weighed[0] as Weighed, weighed), nearby: best.nearby }
  const calibrated = calibrationOf(statistics.audits, odds)
  const posterior = calibrated(seeming)
  if (posterior < ACCEPT_MIN) {
    if (posterior >= POSSIBLE_MIN) evidence.push('possible_visitor')
    const plausible = posterior >= 0.01 ? alike : 0
    const newChance = asUnseen / total
    const confidence = newConfidence(statistics, newChance)
    const told = posterior >= POSSIBLE_TOLD_MIN
    const possible = told ? { visitorId: best.visitor.id, confidence: quantise4(posterior) } : null
    const anonymitySet = 1 + plausible
    return asNew(confidence, evidence, { candidates, scores, newChance, possible, seeming, anonymitySet })
  }
  // The first id of a device comes back where that is as sure: of its records the oldest.
  let named = best
  let confidence = posterior
  for (const one of weighed) {
    if (one.visitor.firstSeenAt >= named.visitor.firstSeenAt) continue
    const chance = deviceChance(one, weighed)
    const sure = calibrated({ chance, nearby: one.compared.nearby })
    if (sure < ACCEPT_MIN) continue
    named = one.compared
    confidence = sure
  }
  return {
    visitor: named.visitor,
    method: named.exact ? 'exact' : 'linked',
    confidence: quantise4(Math.min(confidence, LOOKS_CONFIDENCE_MAX)),
    anonymitySet: Math.max(1, alike),
    candidates,
    reissueGeneration: !input.incognito,
    // A private window forgets its token anyway: its visits start no generation.
    generation: named.visitor.generation + (input.incognito ? 0 : 1),
    evidence,
    newChance: asUnseen / total,
    possible: null,
    seeming,
    scores,
  }
}
