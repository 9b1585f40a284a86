// Rules as the contract has them (Rule; decisions §4): conditions, actions, states.

import type { ChallengeType, Verdict } from './event.ts'

export type RuleStatus = 'live' | 'monitor' | 'paused' | 'draft'
export const RULE_STATUSES: readonly RuleStatus[] = ['live', 'monitor', 'paused', 'draft']

export type Operator = 'equals' | 'not_equals' | 'gt' | 'gte' | 'lt' | 'lte' | 'in' | 'not_in' | 'contains' | 'exists'
export const OPERATORS: readonly Operator[] = [
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
  readonly operator: Operator
  readonly value: Literal | readonly Literal[]
}
export interface Group {
  readonly operator: 'AND' | 'OR'
  readonly rules: readonly (Leaf | Group)[]
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
/** Grows by the other side effects of decisions §4. */
export type SideEffect = LogEffect

export interface RuleAction {
  readonly verdict: Verdict
  readonly challengeType?: ChallengeType
  readonly sideEffects?: readonly SideEffect[]
}

export interface Rule {
  readonly id: string
  readonly name: string
  readonly conditions: Group
  readonly action: RuleAction
  /** Lower is evaluated first; ties by createdAt, then id. */
  readonly priority: number
  readonly status: RuleStatus
  /** Milliseconds since the epoch. */
  readonly createdAt: number
  readonly updatedAt: number
}
