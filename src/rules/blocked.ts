// Who stands on a block list: a list that a live rule blocks by. Lists have no kind of their own, what they are used for says it.

import type { ConditionGroup, Rule } from '../domain/rule.ts'
import { leavesOf, listOf } from './leaves.ts'
import type { ListMember } from './predicate.ts'

export interface Blockable {
  readonly visitorId: string
  /** Full and canonical. */
  readonly ip: string
  readonly email: string | null
}

const MEMBERS: ReadonlyMap<string, keyof Blockable> = new Map([
  ['visitorId', 'visitorId'],
  ['ip', 'ip'],
  ['ip.address', 'ip'],
  ['email', 'email'],
])

function* blockingLists(conditions: ConditionGroup): Generator<readonly [member: keyof Blockable, list: string]> {
  for (const leaf of leavesOf(conditions)) {
    const member = MEMBERS.get(leaf.field)
    const list = listOf(leaf)
    if (member !== undefined && list !== null && leaf.operator === 'in') yield [member, list]
  }
}

/** Asks the lists that live rules of verdict block name with `in`. */
export function compileBlocked(rules: readonly Rule[], member: ListMember): (who: Blockable) => boolean {
  const lists = new Map<string, readonly [keyof Blockable, string]>()
  for (const { status, action, conditions } of rules) {
    if (status !== 'live' || action.verdict !== 'block') continue
    for (const pair of blockingLists(conditions)) lists.set(pair.join(' '), pair)
  }
  const asked = [...lists.values()]
  return (who) =>
    asked.some(([name, list]) => {
      const value = who[name]
      return value !== null && member(list, value) === true
    })
}
