// Rules tried on one event outside of any decision: the same closures, asked condition by condition, with what each of them saw.

import { maskIp } from '../domain/ip.ts'
import type { ConditionGroup, Leaf, Literal } from '../domain/rule.ts'
import { type FieldValue, field } from '../events/fields.ts'
import { isoTime, maskEmail } from '../events/present.ts'
import { compileGroup } from './compile.ts'
import { leavesOf, listOf } from './leaves.ts'
import type { FieldVector, Layout, ListMember } from './predicate.ts'

export interface TraceItem {
  /** As error paths have it: `conditions.rules[0].rules[1]`. */
  readonly path: string
  readonly field: string
  readonly operator: Leaf['operator']
  readonly value: Literal | readonly Literal[]
  /** What the event has, masked like everywhere; null: missing. */
  readonly actual: unknown
  readonly result: boolean
}

export interface Trial {
  holds(group: ConditionGroup): boolean
  /** Every condition of the group, whatever the others came to. */
  trace(group: ConditionGroup, at?: string): Generator<TraceItem>
}

/** Text of a list condition and the value it would be asked for. */
export interface ListQuestion {
  readonly list: string
  readonly value: string
}

/** `read` gives the value of a field; null: missing. */
export function openTrial(read: (path: string) => FieldValue, member: ListMember): Trial {
  const slots = new Map<string, number>()
  const values: FieldVector = []
  const layout: Layout = {
    slot(path) {
      const known = slots.get(path)
      if (known !== undefined) return known
      slots.set(path, values.length)
      return values.push(read(path)) - 1
    },
    fill: () => undefined,
  }
  const holds = (group: ConditionGroup): boolean => compileGroup(group, { layout, member })(values)

  function* trace(group: ConditionGroup, at = 'conditions'): Generator<TraceItem> {
    for (const [i, item] of group.rules.entries()) {
      const path = `${at}.rules[${i}]`
      if ('rules' in item) yield* trace(item, path)
      else {
        const result = holds({ operator: 'AND', rules: [item] })
        const { field: name, operator, value } = item
        yield { path, field: name, operator, value, actual: shown(name, read(name)), result }
      }
    }
  }
  return { holds, trace }
}

/** Every look-up in a list that the conditions may make. */
export function* askedLists(group: ConditionGroup, read: (path: string) => FieldValue): Generator<ListQuestion> {
  for (const leaf of leavesOf(group)) {
    const list = listOf(leaf)
    if (list === null) continue
    const value = read(leaf.field)
    yield { list, value: typeof value === 'string' ? value : '' }
  }
}

function shown(path: string, value: FieldValue): unknown {
  const found = field(path)
  if (value === null || found === null) return null
  if (found.mask === 'ip') return maskIp(String(value))
  if (found.mask === 'email') return maskEmail(String(value))
  return found.type === 'datetime' ? isoTime(value as number) : value
}
