// One identification judged, pure: who it is, what its signals and scores are, what the rules say. Everything it needs to
// know is in its arguments.

import type { Identity, PossibleVisitor, Signals, StoredEvent } from '../domain/event.ts'
import { quantise4 } from '../domain/event.ts'
import { URL_CHARS_STORED_MAX } from '../domain/identify.ts'
import { deviceOf } from '../identity/attributes.ts'
import { explain } from '../identity/explain.ts'
import { type Healing, healingOf } from '../identity/healing.ts'
import { joinVisitors, recordedWith } from '../identity/joined.ts'
import { countAccounts, knowsAccount } from '../identity/linked-accounts.ts'
import type { MatchStatistics, Observation } from '../identity/match-statistics.ts'
import { type MatchResult, type RecogniseInput, recognise } from '../identity/matcher.ts'
import { keepsNativeId, otherHardware, recogniseNative } from '../identity/native.ts'
import { observationBit, observationOf, worthHiding } from '../identity/observation.ts'
import type { Parsers } from '../identity/parsers.ts'
import { newVisitor, recordVerdict, recordVisit, type VisitorState } from '../identity/visitor.ts'
import type { DecidedEffect, LogLine } from '../records/effects.ts'
import type { HeldVisitor } from '../records/visitors.ts'
import type { CompiledRuleset } from '../rules/snapshot.ts'
import { ipFacts } from './ip-facts.ts'
import type { Relatives } from './merged-records.ts'
import { type ScoreInput, scoreEvent } from './scores.ts'
import { matchInShadow } from './shadow-match.ts'
import { detectIncognito } from './signals/incognito.ts'
import { applyMock, mockSignals } from './signals/mock.ts'
import { detectSignals } from './signals/signals.ts'
import type { Counted } from './velocity/counted.ts'
import type { Counters } from './velocity/counters.ts'
import { type EventBefore, type EventTally, finishTally, type PlacedEvent } from './velocity/tally.ts'
import { isImpossible, placeOf } from './velocity/travel.ts'
import type { Visit } from './visit.ts'
import { WEIGHTS_VERSION } from './weights.ts'

/** What is known of visitors this one may be. */
export interface Candidates {
  readonly tokenVisitor: VisitorState | null
  readonly exact: readonly VisitorState[]
  readonly linked: readonly VisitorState[]
  /** Found by the id an app sent, newest first. */
  readonly native: readonly VisitorState[]
  /** How many visitors were ever seen under each match key, by its letter. */
  readonly totals: Readonly<Record<string, number>>
  readonly statistics: MatchStatistics
  /** The visit is also looked at without its token. */
  readonly blind: boolean
  /** It is also compared with others that its visitor may have been before. */
  readonly healing: boolean
}

export interface EventDecision {
  readonly event: StoredEvent
  readonly visitor: VisitorState
  /** What was kept of it before this visit; null: nothing. */
  readonly held: HeldVisitor | null
  /** The visitor's, with this event in them. */
  readonly counters: Counters
  /** What it adds to those of its address and account. */
  readonly counted: Counted
  readonly logs: readonly LogLine[]
  readonly effects: readonly DecidedEffect[]
  readonly effectsSkipped: number
  /** Two records that the visit shows to be one device. */
  readonly healing: Healing | null
  /** What the visit teaches, if anything. */
  readonly lesson: Observation | null
  /** What its visitor is found by from now on. */
  readonly keys: readonly string[]
}

type Writable<T> = { -readonly [Field in keyof T]: T[Field] }

type Draft = Writable<StoredEvent>

const NOBODY: readonly VisitorState[] = []
const NO_TAG = Object.freeze({})
const NO_MATCHES: readonly [] = []
/** Lists of addresses that are heavy as signals already. */
const OWN_SIGNAL: ReadonlySet<string> = new Set(['tor', 'bad_asn'])
const isHonest = ({ bot, tampered }: Signals): boolean => bot.state !== 'detected' && tampered.state !== 'detected'

/** Where a partition is, how it names newcomers, and what it knows of others. */
export interface DecideEventNeeds {
  readonly partition: number
  readonly partitions: number
  readonly parsers: Parsers
  /** A new visitor id whose home is this partition. */
  readonly drawId: () => string
  /** What is kept of a visitor; null: nothing yet. Its survivor is itself where others were merged into it. */
  readonly heldOf: (c: Visit, visitorId: string) => HeldVisitor | null
  /** The records that are one visitor with this one. */
  readonly relativesOf: (c: Visit, visitorId: string) => Relatives
  /** The counters as they are with this event. */
  readonly tally: (c: Visit, visitor: PlacedEvent, before: EventBefore) => EventTally
}

/** Nobody is healed whom people merged with somebody, nor split from whom it would be healed with. */
function healingIn(
  c: Visit,
  input: RecogniseInput,
  { visitor, method, confidence }: MatchResult,
  { heldOf }: DecideEventNeeds,
): Healing | null {
  if (visitor === null || method !== 'token' || input.token === null) return null
  const own = heldOf(c, visitor.id)
  const found = healingOf(input, visitor, input.token, confidence, own?.keys ?? [])
  if (found === null) return null
  const [younger, older] = [heldOf(c, found.visitorId), heldOf(c, found.survivor)]
  if (younger === null || older === null || younger.survivor !== null) return null
  return older.parted.some(({ to }) => to === found.visitorId) ? null : found
}

/** Whether the id of an app is also one of other hardware: of the token's visitor, or without a token of whomever it leads to. */
function isIdElsewhere(c: Visit, { native, tokenVisitor }: Candidates, { heldOf }: DecideEventNeeds): boolean {
  const { nativeKey, attributes } = c
  if (nativeKey === null) return false
  if (tokenVisitor === null) return native.some((one) => otherHardware(one, attributes))
  return otherHardware(tokenVisitor, attributes) && heldOf(c, tokenVisitor.id)?.keys.includes(nativeKey) === true
}

/** By the name its events have. */
function possibleIn(c: Visit, { possible }: MatchResult, { heldOf }: DecideEventNeeds): PossibleVisitor | null {
  const survivor = possible === null ? null : (heldOf(c, possible.visitorId)?.survivor ?? null)
  return possible === null || survivor === null ? possible : { visitorId: survivor, confidence: possible.confidence }
}

export function decideEvent(
  c: Visit,
  candidates: Candidates,
  ruleset: CompiledRuleset,
  needs: DecideEventNeeds,
): EventDecision {
  const { meta, body, attributes, atMs, ip } = c
  const mock = body.mock
  const email = body.email === undefined ? null : body.email.trim().toLowerCase()
  const linkedId = body.linkedId ?? null

  const incognito = detectIncognito(attributes).state === 'detected'
  const { token, tokenForged } = meta
  const { blind, native, tokenVisitor, exact, linked, totals, statistics } = candidates
  // Named one by one, here and below: copying the rest of an object costs as much as evaluating the rules.
  const input: RecogniseInput = {
    attributes,
    ip,
    asn: c.address.network?.asn ?? null,
    atMs,
    token,
    tokenVisitor,
    tokenForged,
    exact,
    linked,
    totals,
    statistics,
    incognito,
    partitions: needs.partitions,
  }
  const byId = token === null ? recogniseNative(native, attributes, meta.keyKind) : null
  const recognition = byId ?? recognise(input)
  const hide = blind && recognition.method === 'token' && tokenVisitor !== null && worthHiding(tokenVisitor, atMs)
  const blindly = hide ? matchInShadow(c, input, needs) : null
  const taught = byId === null ? observationOf(input, recognition, blindly) : null
  const healing = candidates.healing ? healingIn(c, input, recognition, needs) : null
  const compared =
    recognition.visitor !== null ? NOBODY : tokenVisitor === null ? native.concat(exact, linked) : [tokenVisitor]
  const explanation = explain(recognition, compared, attributes, ip, token)
  // A genuine token names a visitor even when our memory of it is gone.
  const revivedBy = recognition.method === 'token' && recognition.visitor === null ? token : null
  const before =
    recognition.visitor ??
    (revivedBy !== null ? newVisitor(revivedBy.visitorId, revivedBy.issuedAt) : newVisitor(needs.drawId(), atMs))
  const others = needs.relativesOf(c, before.id)
  const isOne = others.visitors.length === 0
  const whole = isOne ? before : joinVisitors([before, ...others.visitors])
  const newForAccount = linkedId !== null && !knowsAccount(whole.accounts, linkedId)
  const linkedAccounts = countAccounts(whole.accounts) + (newForAccount ? 1 : 0)

  const ipOfEvent = ipFacts(ip, c.address, mock?.country)
  const network = {
    address: c.address,
    country: ipOfEvent.country,
    timezone: ipOfEvent.timezone,
    atMs,
    nowMs: meta.acceptedAt,
  }
  const nativeIdElsewhere = isIdElsewhere(c, candidates, needs)
  const detected = mockSignals(
    detectSignals({ attributes, evidence: recognition.evidence, network, nativeIdElsewhere }),
    mock,
  )
  // What a program or a disguise shows says nothing of devices.
  const lesson = isHonest(detected) ? taught : null
  const held = needs.heldOf(c, before.id)
  const survivor = held?.survivor ?? null
  const visitorHere = { visitorId: before.id, country: ipOfEvent.country }
  const tally = needs.tally(c, visitorHere, { packed: held?.counters ?? null, others: others.counters })
  const place = placeOf(atMs, ipOfEvent, detected, c.address)
  const scoring: ScoreInput = {
    signals: detected,
    confidence: recognition.confidence,
    hasAccount: linkedId !== null,
    newDeviceForAccount: linkedId === null ? null : newForAccount,
    linkedAccounts,
    possibleVisitor: recognition.evidence.includes('possible_visitor'),
    listed:
      (c.address.blocklists.length > 0 && c.address.blocklists.some((name) => !OWN_SIGNAL.has(name))) ||
      ruleset.isBlocklisted({ visitorId: survivor ?? before.id, ip, email }),
    velocity: tally.velocity,
    impossibleTravel: place !== null && tally.places.some((was) => isImpossible(was, place)),
  }
  const scored = scoreEvent(scoring, ruleset.workspace.settings.scoreWeights)
  const { signals, scores } = applyMock(detected, scored.scores, mock)

  const firstSeenAt = Math.min(whole.firstSeenAt, atMs)
  const identity: Writable<Identity> = {
    method: recognition.method,
    anonymitySet: recognition.anonymitySet,
    candidates: recognition.candidates,
    generation: recognition.generation,
    explanation,
  }
  if (survivor !== null && survivor !== before.id) identity.holder = before.id
  if (!isOne) identity.recorded = recordedWith(before, atMs)
  // One object of one shape, filled in two steps: a copy of this many fields costs as much as evaluating the rules.
  const event: Draft = {
    workspace: meta.workspace,
    env: meta.env,
    requestId: meta.requestId,
    visitorId: survivor ?? before.id,
    visitorFound: recognition.method !== 'new',
    confidence: quantise4(recognition.confidence),
    possible: possibleIn(c, recognition, needs),
    timestamp: atMs,
    firstSeenAt,
    lastSeenAt: Math.max(whole.lastSeenAt, atMs),
    device: deviceOf(attributes, body),
    signals,
    scores,
    scoreReasons: scored.reasons,
    ip: ipOfEvent,
    keyKind: meta.keyKind,
    weightsVersion: WEIGHTS_VERSION,
    linkedId,
    email,
    tag: (body.tag ?? NO_TAG) as Record<string, unknown>,
    url: body.url?.slice(0, URL_CHARS_STORED_MAX).toWellFormed() || null,
    identity,
    visitor: {
      totalVisits: whole.totalVisits + 1,
      linkedAccounts,
      ageSeconds: Math.max(0, Math.floor((atMs - firstSeenAt) / 1000)),
    },
    velocity: tally.velocity,
    verdict: null,
    challengeType: null,
    matchedRule: null,
    matchedRules: NO_MATCHES,
    monitorMatches: NO_MATCHES,
    rulesRevision: ruleset.revision,
    label: null,
    evaluationError: null,
  }
  const outcome = ruleset.evaluate(event, { newDeviceForLinkedId: newForAccount })
  event.verdict = outcome.verdict
  event.challengeType = outcome.challengeType
  event.matchedRule = outcome.matchedRule
  event.matchedRules = outcome.matchedRules
  event.monitorMatches = outcome.monitorMatches
  const visitor = recordVisit(before, {
    atMs,
    ip,
    asn: ipOfEvent.asn,
    attributes,
    device: event.device,
    method: recognition.method,
    token: recognition.method === 'token' ? token : null,
    generation: recognition.generation,
    confidence: event.confidence,
    taught: lesson === null || recognition.visitor === null ? 0 : observationBit(before, atMs),
    linkedId,
  })
  recordVerdict(visitor, outcome.verdict)
  const { effects, effectsSkipped, logs } = outcome
  const counted = finishTally(c.counts, tally, place)
  const { keys, nativeKey } = c
  const keeps = nativeKey === null || keepsNativeId(recognition, byId !== null) || held?.keys.includes(nativeKey)
  const kept = keeps ? keys : keys.filter((key) => key !== nativeKey)
  const { counters } = tally
  return { event, visitor, held, counters, counted, logs, effects, effectsSkipped, healing, lesson, keys: kept }
}
