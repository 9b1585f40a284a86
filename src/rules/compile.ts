// Conditions as nested closures: the plain form of a compiled rule. It is what the generated form is tested against, and
// what runs where code generation is forbidden.

import type { ConditionGroup, Leaf } from '../domain/rule.ts'
import type { FieldValue } from '../events/fields.ts'
import {
  type FieldVector,
  holds,
  type Layout,
  type ListMember,
  lower,
  noLists,
  type Predicate,
  predicateKey,
} from './predicate.ts'

export type Test = (values: FieldVector) => boolean

export interface CompileOptions {
  readonly layout: Layout
  /** Default: no list exists. */
  readonly member?: ListMember
  /** Predicates compiled before, by key; shared so that equal ones are one closure. */
  readonly shared?: Map<string, Test>
}

/**
 * Whether the conditions hold for a vector that `layout` filled. A missing value meets nothing but `exists: false`.
 * The returned function never throws.
 */
export function compileGroup(group: ConditionGroup, options: CompileOptions): Test {
  const tests = group.rules.map((item) => ('rules' in item ? compileGroup(item, options) : compileLeaf(item, options)))
  const [first, second] = tests
  if (tests.length === 1 && first !== undefined) return first
  if (group.operator === 'AND') {
    if (tests.length === 2 && first !== undefined && second !== undefined) return (v) => first(v) && second(v)
    return (v) => {
      for (const test of tests) if (!test(v)) return false
      return true
    }
  }
  if (tests.length === 2 && first !== undefined && second !== undefined) return (v) => first(v) || second(v)
  return (v) => {
    for (const test of tests) if (test(v)) return true
    return false
  }
}

function compileLeaf(leaf: Leaf, { layout, member = noLists, shared }: CompileOptions): Test {
  const key = shared === undefined ? '' : predicateKey(leaf)
  const known = shared?.get(key)
  if (known !== undefined) return known
  const test = predicateTest(lower(leaf, layout, member))
  shared?.set(key, test)
  return test
}

function predicateTest(predicate: Predicate): Test {
  if (predicate.kind === 'never') return () => false
  const { slot } = predicate
  const at = (values: FieldVector) => values[slot] as FieldValue
  switch (predicate.kind) {
    case 'present':
      return (v) => at(v) !== null
    case 'missing':
      return (v) => at(v) === null
    case 'oneOf': {
      const { constant } = predicate
      return (v) => constant.has(at(v))
    }
    case 'noneOf': {
      const { constant } = predicate
      return (v) => at(v) !== null && !constant.has(at(v))
    }
    case 'listed': {
      const { constant } = predicate
      return (v) => constant(at(v)) === true
    }
    case 'unlisted': {
      const { constant } = predicate
      return (v) => constant(at(v)) === false
    }
    case 'equals': {
      const { constant } = predicate
      return (v) => at(v) === constant
    }
    case 'notEquals': {
      const { constant } = predicate
      return (v) => at(v) !== null && at(v) !== constant
    }
    case 'contains': {
      const { constant } = predicate
      return (v) => holds(at(v), constant)
    }
    default:
      return comparison(predicate.kind, slot, predicate.constant)
  }
}

function comparison(kind: 'gt' | 'gte' | 'lt' | 'lte', slot: number, constant: number): Test {
  const number = (values: FieldVector): number => {
    const value = values[slot]
    // NaN compares false with everything, which is what a missing value or another type must do.
    return typeof value === 'number' ? value : Number.NaN
  }
  switch (kind) {
    case 'gt':
      return (v) => number(v) > constant
    case 'gte':
      return (v) => number(v) >= constant
    case 'lt':
      return (v) => number(v) < constant
    case 'lte':
      return (v) => number(v) <= constant
  }
}
