// Rules and the fields of their conditions as the contract shows them.

import type { ConditionGroup, RuleAction } from '../../domain/rule.ts'
import { FIELDS, OPERATORS_BY_TYPE } from '../../events/fields.ts'
import { isoTime } from '../../events/present.ts'
import type { RuleStats } from '../../reads/rule-stats.ts'
import type { StoredRule } from '../../records/rules.ts'
import { maskSideEffect } from '../../rules/parse-effects.ts'

/** An action without the addresses that are secrets. */
const presentAction = (action: RuleAction): RuleAction =>
  action.sideEffects === undefined ? action : { ...action, sideEffects: action.sideEffects.map(maskSideEffect) }

const countLeaves = (group: ConditionGroup): number =>
  group.rules.reduce((sum, item) => sum + ('rules' in item ? countLeaves(item) : 1), 0)

export const presentListedRule = (rule: StoredRule) => ({
  id: rule.id,
  name: rule.name,
  status: rule.status,
  priority: rule.priority,
  conditions: { operator: rule.conditions.operator, count: countLeaves(rule.conditions) },
  action: rule.action.verdict,
  createdAt: isoTime(rule.createdAt),
})

/** A rule as it was written, without what it has done since. */
export const presentDefinition = (rule: StoredRule) => ({
  id: rule.id,
  name: rule.name,
  status: rule.status,
  priority: rule.priority,
  conditions: rule.conditions,
  action: presentAction(rule.action),
  sideEffects: presentAction(rule.action).sideEffects ?? [],
  createdAt: isoTime(rule.createdAt),
  updatedAt: isoTime(rule.updatedAt),
})

export const presentRule = (rule: StoredRule, stats: RuleStats) => ({
  ...presentDefinition(rule),
  stats: { ...stats, lastMatchAt: stats.lastMatchAt === null ? null : isoTime(stats.lastMatchAt) },
})

const CLAIM =
  'With a public key whoever has the page can send any value, somebody else’s too. Where a rule acts on it, ask for request.keyKind equals secret as well, and give addToList verifiedOnly: true.'
const NOTES: Readonly<Record<string, string>> = {
  linkedId: CLAIM,
  email: CLAIM,
  'request.keyKind':
    'public: sent by a page or an app, whose linkedId, email and tag are claims. secret: sent by your server.',
}

export const PRESENTED_FIELDS = [
  ...FIELDS.map(({ path, type, label, category, operators, list }) => ({
    path,
    type,
    label,
    category,
    // Flags and arrays always have a value; everything else can be missing.
    nullable: type !== 'boolean' && type !== 'strings',
    operators,
    list,
    ...(NOTES[path] === undefined ? {} : { note: NOTES[path] }),
  })),
  {
    path: 'tag.<key>',
    type: 'any',
    label: 'Tag',
    category: 'tag',
    nullable: true,
    operators: OPERATORS_BY_TYPE.any,
    list: 'any',
    note: CLAIM,
  },
]
