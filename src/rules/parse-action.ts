// Actions as a client sent them → a checked RuleAction, including the side effects that may stand inside the action or
// beside it.

import { invalid } from '../domain/errors.ts'
import { CHALLENGE_TYPES, type ChallengeType, VERDICTS, type Verdict } from '../domain/event.ts'
import type { LogEffect, RuleAction, SideEffect } from '../domain/rule.ts'
import type { Plan } from '../domain/workspace.ts'
import { allowedField, boundedText, members } from './parse.ts'
import { templatePaths } from './template.ts'

export const SIDE_EFFECTS_MAX = 10
export const LOG_MESSAGE_CHARS_MAX = 1_024
const SIDE_EFFECT_TYPES: readonly SideEffect['type'][] = ['log']
const LOG_LEVELS: readonly NonNullable<LogEffect['level']>[] = ['info', 'warn', 'error']

export interface ActionInput {
  readonly plan: Plan
  /** `action` of the body; undefined when the member is absent. */
  readonly action?: unknown
  /** `sideEffects` beside it; undefined when the member is absent. */
  readonly sideEffects?: unknown
  /** The action the rule has now; absent on create. */
  readonly current?: RuleAction
}

/**
 * The action a write results in. An action without side effects keeps the current ones, an empty array clears them, and
 * the two places for them must not differ. Throws ApiError validation_error or plan_required.
 */
export function parseAction({ plan, action, sideEffects, current }: ActionInput): RuleAction {
  const beside = sideEffects === undefined ? null : parseSideEffects(sideEffects, 'sideEffects', plan)
  if (action === undefined) {
    if (current === undefined) throw invalid('action', 'This field is required.')
    return beside === null ? current : { ...current, sideEffects: beside }
  }
  const got = members(action, 'action', ['verdict', 'challengeType', 'sideEffects'])
  const verdict = got.get('verdict')
  if (!VERDICTS.includes(verdict as Verdict)) throw invalid('action.verdict', `Must be one of: ${VERDICTS.join(', ')}.`)
  const challengeType = got.get('challengeType')
  if (challengeType !== undefined) {
    if (verdict !== 'challenge') throw invalid('action.challengeType', 'Only a challenge has a challenge type.')
    if (!CHALLENGE_TYPES.includes(challengeType as ChallengeType)) {
      throw invalid('action.challengeType', `Must be one of: ${CHALLENGE_TYPES.join(', ')}.`)
    }
  }
  const inside = got.has('sideEffects') ? parseSideEffects(got.get('sideEffects'), 'action.sideEffects', plan) : null
  // Parsed effects have one order of members, so equal effects have equal text.
  if (inside !== null && beside !== null && JSON.stringify(inside) !== JSON.stringify(beside)) {
    throw invalid('sideEffects', 'Differs from action.sideEffects; send one of them.')
  }
  const effects = inside ?? beside ?? current?.sideEffects
  return {
    verdict: verdict as Verdict,
    ...(challengeType === undefined ? {} : { challengeType: challengeType as ChallengeType }),
    ...(effects === undefined ? {} : { sideEffects: effects }),
  }
}

function parseSideEffects(input: unknown, at: string, plan: Plan): SideEffect[] {
  if (!Array.isArray(input)) throw invalid(at, 'Must be an array.')
  if (input.length > SIDE_EFFECTS_MAX) throw invalid(at, `Must have at most ${SIDE_EFFECTS_MAX} items.`)
  return input.map((effect, i) => parseLog(effect, `${at}[${i}]`, plan))
}

function parseLog(input: unknown, at: string, plan: Plan): LogEffect {
  if (typeof input !== 'object' || input === null || Array.isArray(input)) throw invalid(at, 'Must be an object.')
  // The type decides which other members are known, so it is looked at first.
  const type: unknown = Object.hasOwn(input, 'type') ? (input as { type: unknown }).type : undefined
  if (type !== 'log') throw invalid(`${at}.type`, `Must be one of: ${SIDE_EFFECT_TYPES.join(', ')}.`)
  const got = members(input, at, ['type', 'level', 'message'])
  const level = got.has('level') ? got.get('level') : 'info'
  if (!LOG_LEVELS.includes(level as NonNullable<LogEffect['level']>)) {
    throw invalid(`${at}.level`, `Must be one of: ${LOG_LEVELS.join(', ')}.`)
  }
  if (!got.has('message')) return { type: 'log', level: level as NonNullable<LogEffect['level']> }
  const message = boundedText(got.get('message'), `${at}.message`, LOG_MESSAGE_CHARS_MAX)
  for (const path of templatePaths(message)) allowedField(path, plan, `${at}.message`)
  return { type: 'log', level: level as NonNullable<LogEffect['level']>, message }
}
