// Actions as a client sent them → a checked RuleAction, including the side effects that may stand inside the action or
// beside it.

import { invalid } from '../domain/errors.ts'
import { CHALLENGE_TYPES, type ChallengeType, VERDICTS, type Verdict } from '../domain/event.ts'
import type { RuleAction } from '../domain/rule.ts'
import { members, type ParseContext } from './parse.ts'
import { parseSideEffects } from './parse-effects.ts'

export interface ActionInput extends Pick<ParseContext, 'plan' | 'webhooks'> {
  /** Default: there is no list. */
  readonly lists?: ParseContext['lists']
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
export function parseAction({
  plan,
  webhooks,
  lists = () => null,
  action,
  sideEffects,
  current,
}: ActionInput): RuleAction {
  const context = { plan, lists, ...(webhooks === undefined ? {} : { webhooks }) }
  const beside = sideEffects === undefined ? null : parseSideEffects(sideEffects, 'sideEffects', context)
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
  const inside = got.has('sideEffects') ? parseSideEffects(got.get('sideEffects'), 'action.sideEffects', context) : null
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
