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

/** Reasons that are detected signals, each as heavy as it is certain. */
function addSignals(sum: Sum, score: ScoreName, signals: Signals, weights: Weights): void {
  for (const name of RAISED) {
    const weight = weights[name]
    const signal = signals[name]
    if (weight !== undefined && signal.state === 'detected') add(sum, score, name, weight * signal.confidence)
  }
}

type Table<Score extends ScoreName> = Readonly<Record<keyof (typeof SCORE_WEIGHTS)[Score], number>>
type Tables = { readonly [Score in ScoreName]: Table<Score> }

/** A reason with this many events of a visitor, accounts of a visitor, visitors of an account. */
function velocityReasons(velocity: Velocity | null, { ato, bot }: Tables) {
  const over = (name: keyof Velocity, min: number) => (velocity?.[name] ?? 0) >= min
  return {
    bot: over('visitor.events.5m', VELOCITY_MIN.visitorEvents5m) ? bot.velocity_visitor_5m : 0,
    accounts: over('visitor.linkedIds.24h', VELOCITY_MIN.visitorAccounts24h) ? ato.velocity_accounts_24h : 0,
    visitors: over('linkedId.visitors.24h', VELOCITY_MIN.accountVisitors24h) ? ato.velocity_visitors_24h : 0,
  }
}

function botScore(reasons: ScoreReason[], { signals, velocity }: ScoreInput, tables: Tables): number {
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
  const often = velocityReasons(velocity, tables).bot
  add(sum, 'bot', 'velocity_visitor_5m', often)
  return 1 - sum.doubt
}

function atoScore(reasons: ScoreReason[], input: ScoreInput, tables: Tables): number {
  if (!input.hasAccount) return 0
  const { ato } = tables
  const sum: Sum = { reasons, doubt: 1 }
  if (input.newDeviceForAccount === true) add(sum, 'ato', 'new_device', ato.new_device)
  addSignals(sum, 'ato', input.signals, ato)
  if (input.confidence < LOW_CONFIDENCE) add(sum, 'ato', 'low_confidence', ato.low_confidence)
  if (input.impossibleTravel) add(sum, 'ato', 'impossible_travel', ato.impossible_travel)
  const { accounts, visitors } = velocityReasons(input.velocity, tables)
  add(sum, 'ato', 'velocity_accounts_24h', accounts)
  add(sum, 'ato', 'velocity_visitors_24h', visitors)
  return 1 - sum.doubt
}

function abuseScore(reasons: ScoreReason[], input: ScoreInput, { abuse }: Tables): number {
  const sum: Sum = { reasons, doubt: 1 }
  const accounts = input.linkedAccounts
  if (accounts >= 5) add(sum, 'abuse', 'linked_accounts_5', abuse.linked_accounts_5)
  else if (accounts >= 3) add(sum, 'abuse', 'linked_accounts_3', abuse.linked_accounts_3)
  else if (accounts === 2) add(sum, 'abuse', 'linked_accounts_2', abuse.linked_accounts_2)
  addSignals(sum, 'abuse', input.signals, abuse)
  if (input.possibleVisitor) add(sum, 'abuse', 'possible_visitor', abuse.possible_visitor)
  if (input.listed) add(sum, 'abuse', 'listed', abuse.listed)
  return 1 - sum.doubt
}

function suspectScore(reasons: ScoreReason[], input: ScoreInput, tables: Tables): number {
  const { suspect } = tables
  const sum: Sum = { reasons, doubt: 1 }
  const bot = input.signals.bot.state === 'detected'
  if (bot) add(sum, 'suspect', 'bot', suspect.bot * input.signals.bot.confidence)
  addSignals(sum, 'suspect', input.signals, suspect)
  if (input.confidence < LOW_CONFIDENCE) add(sum, 'suspect', 'low_confidence', suspect.low_confidence)
  const { bot: often, accounts, visitors } = velocityReasons(input.velocity, tables)
  add(sum, 'suspect', 'velocity', Math.max(often, accounts, visitors))
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
  const bot = quantise4(botScore(reasons, input, tables))
  const ato = quantise4(atoScore(reasons, input, tables))
  const abuse = quantise4(abuseScore(reasons, input, tables))
  const suspect = quantiseSuspect(suspectScore(reasons, input, tables))
  return { scores: { abuse, ato, bot, suspect }, reasons }
}
