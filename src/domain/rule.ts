// Rules as the contract has them (src/docs/contract.md, Rules): conditions, actions, states.

import type { ChallengeType, Verdict } from './event.ts'

export type RuleStatus = 'live' | 'monitor' | 'paused' | 'draft'
export const RULE_STATUSES: readonly RuleStatus[] = ['live', 'monitor', 'paused', 'draft']

export type ConditionOperator =
  | 'equals'
  | 'not_equals'
  | 'gt'
  | 'gte'
  | 'lt'
  | 'lte'
  | 'in'
  | 'not_in'
  | 'contains'
  | 'exists'
export const OPERATORS: readonly ConditionOperator[] = [
  'equals',
  'not_equals',
  'gt',
  'gte',
  'lt',
  'lte',
  'in',
  'not_in',
  'contains',
  'exists',
]

export type Literal = string | number | boolean
export interface Leaf {
  readonly field: string
  readonly operator: ConditionOperator
  readonly value: Literal | readonly Literal[]
}
export interface ConditionGroup {
  readonly operator: 'AND' | 'OR'
  readonly rules: readonly (Leaf | ConditionGroup)[]
}
export const CONDITION_DEPTH_MAX = 4
export const CONDITION_LEAVES_MAX = 50
export const IN_LITERALS_MAX = 1_000
export const VALUE_CHARS_MAX = 1_024
export const RULE_NAME_CHARS_MAX = 200

export interface LogEffect {
  readonly type: 'log'
  readonly level?: 'info' | 'warn' | 'error'
  readonly message?: string
}
/** `value` is the path of the field whose value goes on the list, or off it. */
export interface AddToListEffect {
  readonly type: 'addToList'
  readonly list: string
  readonly value: string
  /** Seconds; null: for ever; absent: as the list says. */
  readonly ttl?: number | null
  readonly reason?: string
  /** What only a page claims is left out: account, email and tag of events with a public key. Default false. */
  readonly verifiedOnly?: boolean
}
export interface RemoveFromListEffect {
  readonly type: 'removeFromList'
  readonly list: string
  readonly value: string
}
export interface WebhookEffect {
  readonly type: 'webhook'
  readonly webhookId: string
}
export interface SlackEffect {
  readonly type: 'slack'
  /** Whoever knows it can post: it is never shown again. */
  readonly url: string
  readonly message?: string
}
export type SideEffect = LogEffect | AddToListEffect | RemoveFromListEffect | WebhookEffect | SlackEffect

export interface RuleAction {
  readonly verdict: Verdict
  readonly challengeType?: ChallengeType
  readonly sideEffects?: readonly SideEffect[]
}

export interface Rule {
  readonly id: string
  readonly name: string
  readonly conditions: ConditionGroup
  readonly action: RuleAction
  /** Lower is evaluated first; ties by createdAt, then id. */
  readonly priority: number
  readonly status: RuleStatus
  /** Milliseconds since the epoch. */
  readonly createdAt: number
  readonly updatedAt: number
}
