// The single conditions of a tree, and the lists they ask about.

import { foldListName } from '../domain/list.ts'
import type { ConditionGroup, Leaf } from '../domain/rule.ts'

/** In the order in which they are written. */
export function* leavesOf(group: ConditionGroup): Generator<Leaf> {
  for (const item of group.rules) {
    if ('rules' in item) yield* leavesOf(item)
    else yield item
  }
}

/** The name, folded, of the list that a condition looks into; null: it looks into none. */
export function listOf({ operator, value }: Leaf): string | null {
  const isMembership = operator === 'in' || operator === 'not_in'
  return isMembership && typeof value === 'string' ? foldListName(value) : null
}

/** Folded, each once. */
export const listsNamed = (group: ConditionGroup): ReadonlySet<string> =>
  new Set([...leavesOf(group)].flatMap((leaf) => listOf(leaf) ?? []))
