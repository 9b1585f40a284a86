// Recognition: which known visitor stands behind a visit, and how sure that is. A genuine token decides; without one the
// candidates found by key compete with each other and with "never seen before", and only a clear winner is taken.

import type { IdentityMethod } from '../domain/event.ts'
import { quantise4 } from '../domain/event.ts'
import type { TokenClaims } from '../domain/identify.ts'
import { hash53 } from '../domain/ids.ts'
import { subnetOf } from '../domain/ip.ts'
import {
  AGE_SCALE_MS,
  CANVAS_RESCALED,
  CLONE_SHARE,
  NETWORK,
  PRIOR,
  type Ratios,
  ratiosFor,
  VERSION,
} from './agreement.ts'
import type { Attributes } from './attributes.ts'
import { knownValues, VALUES_MIN } from './keys.ts'
import { CANVAS, CORES, LANGUAGES, MEMORY, MODEL, type Profile, RATIO, SCREEN, samePanel } from './profile.ts'
import { ALTERNATING, isRefuted, type VisitorState } from './visitor.ts'

export interface RecogniseInput {
  readonly attributes: Attributes
  /** Canonical. */
  readonly ip: string
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
}

export type Evidence =
  | 'token_forged'
  | 'token_unknown_visitor'
  | 'token_refuted'
  | 'token_contradiction'
  | 'token_older_storage'
  | 'possible_visitor'
  | 'sparse'

export interface Recognition {
  /** Null: a new visitor. */
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
  /** Best first, at most eight. */
  readonly scores: readonly { readonly visitorId: string; readonly posterior: number }[]
}

export const CANDIDATES_MAX = 32
export const ACCEPT_MIN = 0.7
/** Posteriors from here to ACCEPT_MIN are worth telling, not acting on. */
export const POSSIBLE_MIN = 0.5
const SCORES_MAX = 8
/** A known device may have changed so much that no key finds it. */
const NEW_CONFIDENCE_MAX = 0.99
const TOKEN_CONFIDENCE = 0.995
const CONTRADICTED_CONFIDENCE = 0.5
/** Without a shared network even a rare profile may belong to a second device. */
const ELSEWHERE_CONFIDENCE_MAX = 0.9
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

function versionRatio(known: number | null, seen: number | null, elapsedMs: number): number {
  if (known === null || seen === null) return 0
  const ahead = elapsedMs >= 0 ? seen - known : known - seen
  if (ahead === 0) return VERSION.equal
  if (ahead < 0) return VERSION.backward
  return ahead <= Math.abs(elapsedMs) / VERSION.releaseMs + VERSION.slackMajors ? VERSION.forward : VERSION.tooFar
}

interface Network {
  readonly ip: number
  readonly subnet: number
}

interface Scored {
  readonly visitor: VisitorState
  readonly exact: boolean
  readonly nearby: boolean
  readonly differing: number
  /** Log of the weight against "new": prior and all evidence. */
  readonly log: number
}

function networkRatio(visitor: VisitorState, here: Network, atMs: number): { log: number; nearby: boolean } {
  let log: number = NETWORK.other
  let nearby = false
  for (const seen of visitor.networks) {
    const full = seen.ip === here.ip ? NETWORK.sameIp : seen.subnet === here.subnet ? NETWORK.sameSubnet : 0
    if (full === 0) continue
    nearby = true
    log = Math.max(log, full * 2 ** (-Math.abs(atMs - seen.lastAt) / NETWORK.halfLifeMs))
  }
  return { log, nearby }
}

const alternateOf = new Map(ALTERNATING.map((position, a) => [position as number, a]))

function isAlternate(visitor: VisitorState, position: number, value: number): boolean {
  const a = alternateOf.get(position)
  return a !== undefined && visitor.alternates[a]?.includes(value) === true
}

function rescaled(known: Profile, seen: Profile): boolean {
  const [a, b] = [known.values[SCREEN], seen.values[SCREEN]]
  const [ratioA, ratioB] = [known.values[RATIO], seen.values[RATIO]]
  if (a == null || b == null || ratioA == null || ratioB == null || ratioA === ratioB) return false
  return samePanel(a, ratioA, b, ratioB)
}

function score(
  visitor: VisitorState,
  exact: boolean,
  input: RecogniseInput,
  ratios: Ratios,
  here: Network,
): Scored | null {
  const known = visitor.profile
  const seen = input.attributes.profile
  if (known === null || known.os !== seen.os || known.family !== seen.family) return null
  const sameAtOtherScale = rescaled(known, seen)
  let log = PRIOR
  let differing = 0
  for (let i = 0; i < seen.values.length; i++) {
    const a = known.values[i]
    const b = seen.values[i]
    if (a == null || b == null) continue
    if (a === b || isAlternate(visitor, i, b)) log += ratios.agree[i] as number
    else if (sameAtOtherScale && i === SCREEN) log += ratios.agree[i] as number
    else if (sameAtOtherScale && i === CANVAS) log += CANVAS_RESCALED
    else {
      log += ratios.differ[i] as number
      if (i === SCREEN || i === LANGUAGES || i === MODEL) differing++
    }
  }
  const elapsed = input.atMs - visitor.lastSeenAt
  const network = networkRatio(visitor, here, input.atMs)
  log += versionRatio(known.major, seen.major, elapsed) + network.log - Math.abs(elapsed) / AGE_SCALE_MS
  return { visitor, exact, nearby: network.nearby, differing, log }
}

function candidatesOf(input: RecogniseInput): { visitor: VisitorState; exact: boolean }[] {
  const found: { visitor: VisitorState; exact: boolean }[] = []
  const add = (visitors: readonly VisitorState[], exact: boolean) => {
    for (const visitor of visitors) {
      if (found.length === CANDIDATES_MAX) return
      if (found.some((other) => other.visitor.id === visitor.id)) continue
      found.push({ visitor, exact })
    }
  }
  add(input.exact, true)
  add(input.linked, false)
  return found
}

function byToken(input: RecogniseInput, visitor: VisitorState, token: TokenClaims, evidence: Evidence[]): Recognition {
  const contradiction = contradicts(visitor.profile, input.attributes.profile)
  if (contradiction) evidence.push('token_contradiction')
  if (token.generation < visitor.generation) evidence.push('token_older_storage')
  const confidence = contradiction ? CONTRADICTED_CONFIDENCE : TOKEN_CONFIDENCE
  return {
    visitor,
    method: 'token',
    confidence,
    anonymitySet: 1,
    candidates: 1,
    reissueGeneration: false,
    generation: token.generation,
    evidence,
    scores: [{ visitorId: visitor.id, posterior: confidence }],
  }
}

function asNew(confidence: number, evidence: Evidence[], more: Partial<Recognition> = {}): Recognition {
  return {
    visitor: null,
    method: 'new',
    confidence: quantise4(Math.min(confidence, NEW_CONFIDENCE_MAX)),
    anonymitySet: 1,
    candidates: 0,
    reissueGeneration: false,
    generation: 1,
    evidence,
    scores: [],
    ...more,
  }
}

/** Whether the winner may be taken: clear enough, and on iOS on a network it was seen on with nothing against it. */
function acceptable(best: Scored, posterior: number, os: string): boolean {
  if (posterior < ACCEPT_MIN) return false
  return os !== 'iOS' || (best.nearby && best.differing === 0)
}

/** Decides who is visiting. Pure: neither the input nor any candidate is changed. */
export function recognise(input: RecogniseInput): Recognition {
  const { attributes, token, tokenVisitor } = input
  const evidence: Evidence[] = []
  if (input.tokenForged === true) evidence.push('token_forged')
  if (token !== null && tokenVisitor === null) evidence.push('token_unknown_visitor')
  if (token !== null && tokenVisitor !== null) {
    if (!isRefuted(tokenVisitor, token.generation)) return byToken(input, tokenVisitor, token, evidence)
    // Its storage was never cleared, so looks would only lead it to another device of the same kind once more.
    evidence.push('token_refuted')
    return asNew(REFUTED_CONFIDENCE, evidence)
  }
  if (knownValues(attributes.profile) < VALUES_MIN) {
    evidence.push('sparse')
    return asNew(SPARSE_CONFIDENCE, evidence)
  }

  const found = candidatesOf(input)
  const here: Network = { ip: hash53(input.ip), subnet: hash53(subnetOf(input.ip)) }
  const ratios = ratiosFor(attributes)
  const scored: Scored[] = []
  for (const { visitor, exact } of found) {
    const one = score(visitor, exact, input, ratios, here)
    if (one !== null) scored.push(one)
  }
  const candidates = found.length
  const best = scored.sort((a, b) => b.log - a.log)[0]
  if (best === undefined) return asNew(1, evidence, { candidates })

  // Relative to max(best, new) so that no exponent overflows.
  const top = Math.max(best.log, 0)
  const asUnseen = Math.exp(-top) + (best.nearby ? CLONE_SHARE * Math.exp(best.log - top) : 0)
  let total = asUnseen
  for (const one of scored) total += Math.exp(one.log - top)
  const posteriorOf = (one: Scored) => Math.exp(one.log - top) / total
  const scores = scored.slice(0, SCORES_MAX).map((one) => ({
    visitorId: one.visitor.id,
    posterior: quantise4(posteriorOf(one)),
  }))
  const alike = scored.filter((one) => one.log > best.log - LOOKALIKE_WITHIN && one.log > PRIOR).length
  const posterior = posteriorOf(best)

  if (!acceptable(best, posterior, attributes.os)) {
    if (posterior >= POSSIBLE_MIN) evidence.push('possible_visitor')
    const plausible = posterior >= 0.01 ? alike : 0
    return asNew(asUnseen / total, evidence, { candidates, scores, anonymitySet: 1 + plausible })
  }
  const confidence = best.nearby ? posterior : Math.min(posterior, ELSEWHERE_CONFIDENCE_MAX)
  return {
    visitor: best.visitor,
    method: best.exact ? 'exact' : 'linked',
    confidence: quantise4(confidence),
    anonymitySet: Math.max(1, alike),
    candidates,
    reissueGeneration: !input.incognito,
    // A private window forgets its token anyway: its visits start no generation.
    generation: best.visitor.generation + (input.incognito ? 0 : 1),
    evidence,
    scores,
  }
}
