// The four scores of a visit and the reasons behind them. score = 1 − Π(1 − weight of each reason): every reason is
// visible, and one more never lowers a score.

import {
  quantise4,
  quantiseSuspect,
  type ScoreName,
  type ScoreReason,
  type Scores,
  type Signals,
} from '../domain/event.ts'
import { ABUSE, ATO, BOT, LOW_CONFIDENCE, SUSPECT, SUSPECT_CAP } from './weights.ts'

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
}

interface Sum {
  readonly reasons: ScoreReason[]
  doubt: number
}

function add(sum: Sum, score: ScoreName, reason: string, weight: number): void {
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

const BOT_WEIGHTS: Weights = BOT

function botScore(reasons: ScoreReason[], signals: Signals): number {
  const sum: Sum = { reasons, doubt: 1 }
  let detector = false
  for (const method of signals.bot.methods) {
    if (method.startsWith('botd:')) {
      if (!detector) add(sum, 'bot', method, BOT.detector)
      detector = true
    } else if (method === 'mock') add(sum, 'bot', method, BOT.detector)
    else add(sum, 'bot', method, BOT_WEIGHTS[method] ?? 0)
  }
  return 1 - sum.doubt
}

function atoScore(reasons: ScoreReason[], input: ScoreInput): number {
  if (!input.hasAccount) return 0
  const sum: Sum = { reasons, doubt: 1 }
  if (input.newDeviceForAccount === true) add(sum, 'ato', 'new_device', ATO.new_device)
  addSignals(sum, 'ato', input.signals, ATO)
  if (input.confidence < LOW_CONFIDENCE) add(sum, 'ato', 'low_confidence', ATO.low_confidence)
  return 1 - sum.doubt
}

function abuseScore(reasons: ScoreReason[], input: ScoreInput): number {
  const sum: Sum = { reasons, doubt: 1 }
  const accounts = input.linkedAccounts
  if (accounts >= 5) add(sum, 'abuse', 'linked_accounts_5', ABUSE.linked_accounts_5)
  else if (accounts >= 3) add(sum, 'abuse', 'linked_accounts_3', ABUSE.linked_accounts_3)
  else if (accounts === 2) add(sum, 'abuse', 'linked_accounts_2', ABUSE.linked_accounts_2)
  addSignals(sum, 'abuse', input.signals, ABUSE)
  if (input.possibleVisitor) add(sum, 'abuse', 'possible_visitor', ABUSE.possible_visitor)
  if (input.listed) add(sum, 'abuse', 'listed', ABUSE.listed)
  return 1 - sum.doubt
}

function suspectScore(reasons: ScoreReason[], input: ScoreInput): number {
  const sum: Sum = { reasons, doubt: 1 }
  const bot = input.signals.bot.state === 'detected'
  if (bot) add(sum, 'suspect', 'bot', SUSPECT.bot * input.signals.bot.confidence)
  addSignals(sum, 'suspect', input.signals, SUSPECT)
  if (input.confidence < LOW_CONFIDENCE) add(sum, 'suspect', 'low_confidence', SUSPECT.low_confidence)
  if (input.listed) add(sum, 'suspect', 'listed', SUSPECT.listed)
  const raw = 1 - sum.doubt
  return 100 * (bot || input.listed ? raw : Math.min(raw, SUSPECT_CAP))
}

/** Scores of one visit, quantised as rules and storage see them, with their reasons. */
export function scoreEvent(input: ScoreInput): { scores: Scores; reasons: readonly ScoreReason[] } {
  const reasons: ScoreReason[] = []
  const bot = quantise4(botScore(reasons, input.signals))
  const ato = quantise4(atoScore(reasons, input))
  const abuse = quantise4(abuseScore(reasons, input))
  const suspect = quantiseSuspect(suspectScore(reasons, input))
  return { scores: { abuse, ato, bot, suspect }, reasons }
}
