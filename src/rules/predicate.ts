// What a condition comes down to once everything that is known at compile time is settled: one comparison of one slot of
// the field vector with one constant. Closures and generated code are both made from this form.

import type { Facts } from '../domain/event.ts'
import { foldListName } from '../domain/list.ts'
import type { Leaf, Literal } from '../domain/rule.ts'
import { type Field, type FieldValue, field } from '../events/fields.ts'
import { parseDatetime } from '../lib/datetime.ts'
import { containsText } from './contains.ts'
import { generationAllowed } from './generation.ts'

/** The values of the fields that a ruleset uses, by slot. Refilled for every event. */
export type FieldVector = FieldValue[]

/** Whether the list (name in lower case) holds the value; null when there is no such list. Must not throw. */
export type ListMember = (list: string, value: string) => boolean | null
export const noLists: ListMember = () => null

/** Hands out slots and fills vectors. */
export interface Layout {
  /** The slot of a field; the same path always has the same one. An unknown path has a slot that is always missing. */
  slot(path: string): number
  /** Reads every field that has a slot, once, into the vector. */
  fill(facts: Facts, vector: FieldVector): void
}

type Reader = Field['read']
type Fill = (facts: Facts, vector: FieldVector) => void

/** `scores: false` makes every `scores.*` read as missing (a plan without scores). */
export function createLayout(options: { readonly scores: boolean }): Layout {
  const slots = new Map<string, number>()
  const readers: Reader[] = []
  let fill: Fill | null = null
  return {
    slot(path) {
      const known = slots.get(path)
      if (known !== undefined) return known
      const found = field(path)
      const hidden = found === null || (found.category === 'scores' && !options.scores)
      slots.set(path, readers.length)
      fill = null
      return readers.push(hidden ? () => null : found.read) - 1
    },
    fill(facts, vector) {
      fill ??= makeFill([...readers])
      fill(facts, vector)
    },
  }
}

/**
 * One call per reader, each at a place of its own: there the engine knows the function and builds it in, which a loop over
 * many functions keeps it from. The source holds nothing but indexes.
 */
function makeFill(readers: readonly Reader[]): Fill {
  if (!generationAllowed || readers.length > FILL_READERS_MAX) {
    return (facts, vector) => {
      for (let i = 0; i < readers.length; i++) vector[i] = (readers[i] as Reader)(facts)
    }
  }
  const names = readers.map((_, i) => `const r${i}=r[${i}]`)
  const reads = readers.map((_, i) => `v[${i}]=r${i}(f)`)
  return new Function('r', [...names, 'return (f,v)=>{', ...reads, '}'].join('\n'))(readers) as Fill
}
/** Beyond that a single function would never be optimised. */
const FILL_READERS_MAX = 200

/** `constant` of a listed predicate: null when the value is missing or the list is gone. */
export type ListTest = (value: FieldValue) => boolean | null

export type PredicateComparison = 'gt' | 'gte' | 'lt' | 'lte'
export type Predicate =
  | { readonly kind: 'never' }
  | { readonly kind: 'present'; readonly slot: number }
  | { readonly kind: 'missing'; readonly slot: number }
  | { readonly kind: 'equals' | 'notEquals'; readonly slot: number; readonly constant: Literal }
  | { readonly kind: PredicateComparison; readonly slot: number; readonly constant: number }
  | { readonly kind: 'oneOf' | 'noneOf'; readonly slot: number; readonly constant: ReadonlySet<FieldValue> }
  | { readonly kind: 'contains'; readonly slot: number; readonly constant: Literal }
  | { readonly kind: 'listed' | 'unlisted'; readonly slot: number; readonly constant: ListTest }

const NEVER: Predicate = { kind: 'never' }

function listTest(name: string, member: ListMember): ListTest {
  const list = foldListName(name)
  // Only texts can be entries; the empty one never is, so asking for it tells whether the list exists.
  return (value) => (value === null ? null : member(list, typeof value === 'string' ? value : ''))
}

/** Settles a condition. One that no value can meet, such as a comparison with a text, becomes `never`. */
export function lower(leaf: Leaf, layout: Layout, member: ListMember): Predicate {
  const { operator, value } = leaf
  const slot = layout.slot(leaf.field)
  if (operator === 'exists') {
    if (typeof value !== 'boolean') return NEVER
    return value ? { kind: 'present', slot } : { kind: 'missing', slot }
  }
  if (operator === 'in' || operator === 'not_in') {
    const positive = operator === 'in'
    if (typeof value === 'string') {
      return { kind: positive ? 'listed' : 'unlisted', slot, constant: listTest(value, member) }
    }
    return Array.isArray(value) ? { kind: positive ? 'oneOf' : 'noneOf', slot, constant: new Set(value) } : NEVER
  }
  if (typeof value === 'object') return NEVER
  const isDatetime = typeof value === 'string' && field(leaf.field)?.type === 'datetime'
  const constant = isDatetime ? parseDatetime(value) : value
  if (constant === null) return NEVER
  switch (operator) {
    case 'equals':
      return { kind: 'equals', slot, constant }
    case 'not_equals':
      return { kind: 'notEquals', slot, constant }
    case 'gt':
    case 'gte':
    case 'lt':
    case 'lte':
      return typeof constant === 'number' ? { kind: operator, slot, constant } : NEVER
    case 'contains':
      return { kind: 'contains', slot, constant }
    default:
      return NEVER
  }
}

/** `contains`: a substring of a text, or a member of an array; nothing is converted. */
export function holds(value: FieldValue, part: Literal): boolean {
  if (typeof value === 'string') return typeof part === 'string' && containsText(value, part)
  return Array.isArray(value) && value.includes(part)
}

/** Equal keys mean equal predicates. */
export function predicateKey(leaf: Leaf): string {
  return JSON.stringify([leaf.field, leaf.operator, leaf.value])
}
