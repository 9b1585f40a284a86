// The meaning of a condition, written down as plainly as possible: an interpreter that walks the tree for every event.
// Closures and generated code must agree with it on everything.

import type { Facts } from '../../src/domain/event.ts'
import type { Group, Leaf } from '../../src/domain/rule.ts'
import { field } from '../../src/events/fields.ts'

export interface World {
  readonly scores: boolean
  readonly member: (list: string, value: string) => boolean | null
}

export function matches(item: Group | Leaf, facts: Facts, world: World): boolean {
  if (!('rules' in item)) return leafHolds(item, facts, world)
  return item.operator === 'AND'
    ? item.rules.every((inner) => matches(inner, facts, world))
    : item.rules.some((inner) => matches(inner, facts, world))
}

function leafHolds({ field: path, operator, value }: Leaf, facts: Facts, world: World): boolean {
  const of = field(path)
  const hidden = path.startsWith('scores.') && !world.scores
  const actual = of === null || hidden ? null : of.read(facts)

  if (operator === 'exists') return (actual !== null) === value
  if (actual === null) return false

  if (operator === 'in' || operator === 'not_in') {
    let inside: boolean
    if (typeof value === 'string') {
      const held = world.member(value.toLowerCase(), typeof actual === 'string' ? actual : '')
      if (held === null) return false
      inside = held
    } else {
      inside = (value as unknown[]).some((one) => one === actual)
    }
    return operator === 'in' ? inside : !inside
  }

  const wanted = of?.type === 'datetime' ? Date.parse(value as string) : value
  switch (operator) {
    case 'equals':
      return actual === wanted
    case 'not_equals':
      return actual !== wanted
    case 'contains':
      if (Array.isArray(actual)) return actual.some((one) => one === wanted)
      return typeof actual === 'string' && typeof wanted === 'string' && actual.indexOf(wanted) >= 0
    default: {
      if (typeof actual !== 'number' || typeof wanted !== 'number') return false
      if (operator === 'gt') return actual > wanted
      if (operator === 'gte') return actual >= wanted
      if (operator === 'lt') return actual < wanted
      return actual <= wanted
    }
  }
}
