// A rule while it is written: conditions as the editor holds them, and the way to the API and back.

import type { ChallengeType, Verdict } from '../../../domain/event.ts'
import type { ConditionGroup, ConditionOperator, Leaf, Literal, RuleAction, SideEffect } from '../../../domain/rule.ts'
import type { ListedList, RuleField } from '../../lib/types.ts'
import { fieldOf, nearestField, operatorWord } from './words.ts'

export const GROUP_DEPTH_MAX = 4

/** Values are texts while they are typed; what they mean follows from the field. */
export interface DraftLeaf {
  readonly key: number
  readonly field: string
  readonly operator: ConditionOperator
  readonly text: string
  /** As the rule has it: what was not typed over is saved as it was. */
  readonly given?: Leaf
}
export interface DraftGroup {
  readonly key: number
  readonly operator: 'AND' | 'OR'
  readonly rules: readonly (DraftLeaf | DraftGroup)[]
}
export interface Draft {
  readonly name: string
  readonly conditions: DraftGroup
  readonly verdict: Verdict
  /** null: what the API chooses by itself. */
  readonly challengeType: ChallengeType | null
  readonly sideEffects: readonly SideEffect[]
  readonly priority: string
}

let lastKey = 0
const nextKey = (): number => {
  lastKey += 1
  return lastKey
}
export const isGroup = (item: DraftLeaf | DraftGroup): item is DraftGroup => 'rules' in item
export const newLeaf = (): DraftLeaf => ({ key: nextKey(), field: '', operator: 'equals', text: '' })
export const newGroup = (): DraftGroup => ({ key: nextKey(), operator: 'AND', rules: [newLeaf()] })

const textOf = (value: Leaf['value']): string =>
  Array.isArray(value) ? value.map(String).join('\n') : String(value as Literal)

export function draftGroup({ operator, rules }: ConditionGroup): DraftGroup {
  return {
    key: nextKey(),
    operator,
    rules: rules.map((one) =>
      'rules' in one
        ? draftGroup(one)
        : { key: nextKey(), field: one.field, operator: one.operator, text: textOf(one.value), given: one },
    ),
  }
}

export interface RuleText {
  readonly name: string
  readonly conditions: ConditionGroup
  readonly action: RuleAction
  readonly sideEffects?: readonly SideEffect[]
  readonly priority?: number
}

export const draftOf = ({ name, conditions, action, sideEffects, priority }: RuleText): Draft => ({
  name,
  conditions: draftGroup(conditions),
  verdict: action.verdict,
  challengeType: action.challengeType ?? null,
  sideEffects: sideEffects ?? action.sideEffects ?? [],
  priority: priority === undefined ? '' : String(priority),
})

export const EMPTY_DRAFT = (): Draft => ({
  name: '',
  conditions: newGroup(),
  verdict: 'challenge',
  challengeType: 'captcha',
  sideEffects: [],
  priority: '',
})

const isMany = (operator: ConditionOperator): boolean => operator === 'in' || operator === 'not_in'
/** What a condition asks of a list. */
export type KnownList = Pick<ListedList, 'name' | 'type'>
/** Lists whose entries are values of the field. */
export const listsFor = <L extends KnownList>(field: RuleField | null, lists: readonly L[]): readonly L[] =>
  lists.filter(({ type }) => field?.list === type || field?.list === 'any')

/** What a typed text means for a field. A single name of a list asks that list. */
function readValue(leaf: DraftLeaf, field: RuleField | null, lists: readonly KnownList[]): Leaf['value'] {
  const { given } = leaf
  const isAsGiven = given?.field === leaf.field && given.operator === leaf.operator && textOf(given.value) === leaf.text
  if (isAsGiven) return given.value
  const text = leaf.text.trim()
  if (leaf.operator === 'exists') return text !== 'false'
  if (isMany(leaf.operator)) {
    if (listsFor(field, lists).some(({ name }) => name === text)) return text
    return text
      .split(/\r?\n/)
      .map((one) => one.trim())
      .filter((one) => one !== '')
      .map((one) => literalOf(one, field))
  }
  return literalOf(text, field)
}

function literalOf(text: string, field: RuleField | null): Literal {
  const type = field?.type ?? 'string'
  if (type === 'number') return text === '' ? Number.NaN : Number(text)
  if (type === 'boolean') return text !== 'false'
  if (type === 'any' && (text === 'true' || text === 'false')) return text === 'true'
  if (type === 'any' && text !== '' && String(Number(text)) === text) return Number(text)
  return text
}

export const conditionsOf = (
  group: DraftGroup,
  fields: readonly RuleField[],
  lists: readonly KnownList[],
): ConditionGroup => ({
  operator: group.operator,
  rules: group.rules.map((one) =>
    isGroup(one)
      ? conditionsOf(one, fields, lists)
      : { field: one.field, operator: one.operator, value: readValue(one, fieldOf(fields, one.field), lists) },
  ),
})

export const actionOf = ({ verdict, challengeType }: Draft): RuleAction => ({
  verdict,
  ...(verdict === 'challenge' && challengeType !== null ? { challengeType } : {}),
})

/** Why the server would refuse a condition; null: it would not. */
export function problemOf(leaf: DraftLeaf, fields: readonly RuleField[], lists: readonly KnownList[]): string | null {
  if (leaf.field.trim() === '') return 'Choose a field.'
  const field = fieldOf(fields, leaf.field)
  if (field === null) {
    const nearest = nearestField(fields, leaf.field)
    return nearest === null ? 'There is no such field.' : `There is no such field. Do you mean ${nearest}?`
  }
  if (!field.operators.includes(leaf.operator)) return `${field.label} takes no “${operatorWord(leaf.operator)}”.`
  const value = readValue(leaf, field, lists)
  if (Array.isArray(value)) {
    if (value.length === 0) return 'Name at least one value, or a list.'
    return value.some((one) => Number.isNaN(one)) ? 'Each value must be a number.' : null
  }
  if (Number.isNaN(value)) return 'The value must be a number.'
  if (value === '' && field.type !== 'any') return 'Give a value.'
  return null
}

/** Whether every condition is whole. */
export const isWhole = (group: DraftGroup, fields: readonly RuleField[], lists: readonly KnownList[]): boolean =>
  group.rules.length > 0 &&
  group.rules.every((one) => (isGroup(one) ? isWhole(one, fields, lists) : problemOf(one, fields, lists) === null))
