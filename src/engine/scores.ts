// The four scores of a visit and the reasons behind them. score = 1 − Π(1 − weight of each reason): every reason is
// visible, and one more never lowers a score.

import {
  quantise4,
  quantiseSuspect,
  type ScoreName,
  type ScoreReason,
  type Scores,
  type Signals,
  type Velocity,
} from '../domain/event.ts'
import type { ScoreWeights } from '../domain/workspace.ts'
import { LOW_CONFIDENCE, SCORE_WEIGHTS, SUSPECT_CAP, VELOCITY_MIN } from './weights.ts'

export interface ScoreInput {
  /** With mocked signals already in place. */
  readonly signals: Signals
  /** Of the recognition. */
  readonly confidence: number
  /** Whether the event names an account: without one there is nothing to take over. */
  readonly hasAccount: boolean
  /** First visit of this account on this visitor; null when not known. */
  readonly newDeviceForAccount: boolean | null
  /** Distinct accounts of the visitor, this event included. */
  readonly linkedAccounts: number
  /** Recognition found a likely but not certain visitor (evidence possible_visitor). */
  readonly possibleVisitor: boolean
  /** Address, visitor or e-mail stands on a block list. */
  readonly listed: boolean
  /** This event included; null: not counted. */
  readonly velocity: Velocity | null
  /** The visitor or the account was too far away too shortly before. */
  readonly impossibleTravel: boolean
}

interface Sum {
  readonly reasons: ScoreReason[]
  doubt: number
}

/** What weighs nothing is no reason. */
function add(sum: Sum, score: ScoreName, reason: string, weight: number): void {
  if (weight <= 0) return
  sum.doubt *= 1 - weight
  sum.reasons.push({ score, reason, weight: quantise4(weight) })
}

type Weights = Readonly<Record<string, number>>
const RAISED = ['tampered', 'tor', 'emulator', 'clonedApp', 'proxy', 'vpn', 'rootedDevice', 'incognito'] as const

type Raised = (typeof RAISED)[number]
const NONE_RAISED: readonly Raised[] = []

/** Those of RAISED that are detected: hardly ever any. */
function raisedOf(signals: Signals): readonly Raised[] {
  let raised: Raised[] | null = null
  for (const name of RAISED) {
    if (signals[name].state !== 'detected') continue
    raised ??= []
    raised.push(name)
  }
  return raised ?? NONE_RAISED
}

/** Reasons that are detected signals, each as heavy as it is certain. */
function addSignals(sum: Sum, score: ScoreName, { signals, raised }: Scored, weights: Weights): void {
  for (const name of raised) {
    const weight = weights[name]
    if (weight !== undefined) add(sum, score, name, weight * signals[name].confidence)
  }
}

type Table<Score extends ScoreName> = Readonly<Record<keyof (typeof SCORE_WEIGHTS)[Score], number>>
type Tables = { readonly [Score in ScoreName]: Table<Score> }

/** Of a reason with this many events of a visitor, accounts of a visitor, visitors of an account. */
interface Often {
  readonly bot: number
  readonly accounts: number
  readonly visitors: number
}
const SELDOM: Often = { bot: 0, accounts: 0, visitors: 0 }

function oftenOf(velocity: Velocity | null, { ato, bot }: Tables): Often {
  if (velocity === null) return SELDOM
  const events = (velocity['visitor.events.5m'] ?? 0) >= VELOCITY_MIN.visitorEvents5m
  const accounts = (velocity['visitor.linkedIds.24h'] ?? 0) >= VELOCITY_MIN.visitorAccounts24h
  const visitors = (velocity['linkedId.visitors.24h'] ?? 0) >= VELOCITY_MIN.accountVisitors24h
  if (!events && !accounts && !visitors) return SELDOM
  return {
    bot: events ? bot.velocity_visitor_5m : 0,
    accounts: accounts ? ato.velocity_accounts_24h : 0,
    visitors: visitors ? ato.velocity_visitors_24h : 0,
  }
}

/** What the four scores look at together. */
interface Scored {
  readonly input: ScoreInput
  readonly signals: Signals
  readonly raised: readonly Raised[]
  readonly often: Often
  readonly reasons: ScoreReason[]
}

function botScore({ signals, often, reasons }: Scored, tables: Tables): number {
  const weights: Weights & Tables['bot'] = tables.bot
  const sum: Sum = { reasons, doubt: 1 }
  let detector = false
  for (const method of signals.bot.methods) {
    if (method.startsWith('botd:')) {
      if (!detector) add(sum, 'bot', method, weights.detector)
      detector = true
    } else if (method === 'mock') add(sum, 'bot', method, weights.detector)
    else add(sum, 'bot', method, weights[method] ?? 0)
  }
  add(sum, 'bot', 'velocity_visitor_5m', often.bot)
  return 1 - sum.doubt
}

function atoScore(scored: Scored, tables: Tables): number {
  const { input, often, reasons } = scored
  if (!input.hasAccount) return 0
  const { ato } = tables
  const sum: Sum = { reasons, doubt: 1 }
  if (input.newDeviceForAccount === true) add(sum, 'ato', 'new_device', ato.new_device)
  addSignals(sum, 'ato', scored, ato)
  if (input.confidence < LOW_CONFIDENCE) add(sum, 'ato', 'low_confidence', ato.low_confidence)
  if (input.impossibleTravel) add(sum, 'ato', 'impossible_travel', ato.impossible_travel)
  add(sum, 'ato', 'velocity_accounts_24h', often.accounts)
  add(sum, 'ato', 'velocity_visitors_24h', often.visitors)
  return 1 - sum.doubt
}

function abuseScore(scored: Scored, { abuse }: Tables): number {
  const { input, reasons } = scored
  const sum: Sum = { reasons, doubt: 1 }
  const accounts = input.linkedAccounts
  if (accounts >= 5) add(sum, 'abuse', 'linked_accounts_5', abuse.linked_accounts_5)
  else if (accounts >= 3) add(sum, 'abuse', 'linked_accounts_3', abuse.linked_accounts_3)
  else if (accounts === 2) add(sum, 'abuse', 'linked_accounts_2', abuse.linked_accounts_2)
  addSignals(sum, 'abuse', scored, abuse)
  if (input.possibleVisitor) add(sum, 'abuse', 'possible_visitor', abuse.possible_visitor)
  if (input.listed) add(sum, 'abuse', 'listed', abuse.listed)
  return 1 - sum.doubt
}

function suspectScore(scored: Scored, { suspect }: Tables): number {
  const { input, often, reasons } = scored
  const sum: Sum = { reasons, doubt: 1 }
  const { state, confidence, methods } = input.signals.bot
  const bot = state === 'detected'
  if (bot) add(sum, 'suspect', 'bot', suspect.bot * confidence)
  // Whoever is clear with a check against it is clear as far as that check leaves it.
  else if (methods.length > 0) add(sum, 'suspect', 'bot_evidence', suspect.bot_evidence * (1 - confidence))
  addSignals(sum, 'suspect', scored, suspect)
  if (input.confidence < LOW_CONFIDENCE) add(sum, 'suspect', 'low_confidence', suspect.low_confidence)
  add(sum, 'suspect', 'velocity', Math.max(often.bot, often.accounts, often.visitors))
  if (input.listed) add(sum, 'suspect', 'listed', suspect.listed)
  const raw = 1 - sum.doubt
  return 100 * (bot || input.listed ? raw : Math.min(raw, SUSPECT_CAP))
}

const own = new WeakMap<ScoreWeights, Tables>()

function tablesOf(weights: ScoreWeights | undefined): Tables {
  if (weights === undefined) return SCORE_WEIGHTS
  const known = own.get(weights)
  if (known !== undefined) return known
  const tables: Record<string, Record<string, number>> = {}
  for (const [score, standard] of Object.entries(SCORE_WEIGHTS)) {
    const entries = Object.entries(standard)
    tables[score] = Object.fromEntries(entries.map(([reason, w]) => [reason, weights[`${score}.${reason}`] ?? w]))
  }
  own.set(weights, tables as unknown as Tables)
  return tables as unknown as Tables
}

/** Scores of one visit, quantised as rules and storage see them, with their reasons. `weights`: of the workspace. */
export function scoreEvent(
  input: ScoreInput,
  weights?: ScoreWeights,
): { scores: Scores; reasons: readonly ScoreReason[] } {
  const reasons: ScoreReason[] = []
  const tables = tablesOf(weights)
  const { signals, velocity } = input
  const scored = { input, signals, raised: raisedOf(signals), often: oftenOf(velocity, tables), reasons }
  const bot = quantise4(botScore(scored, tables))
  const ato = quantise4(atoScore(scored, tables))
  const abuse = quantise4(abuseScore(scored, tables))
  const suspect = quantiseSuspect(suspectScore(scored, tables))
  return { scores: { abuse, ato, bot, suspect }, reasons }
}
