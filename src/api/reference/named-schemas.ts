// Schemas as the document has them: those marked as shared stand once, under their name, and are referred to.

import { refTo, type Schema } from './openapi.ts'

type Plain = Readonly<Record<string, unknown>>

/** Keywords whose values are schemas by name, lists of schemas, or one schema; all others are copied. */
const BY_NAME = ['properties']
const LISTS = ['anyOf']
const ONES = ['items', 'additionalProperties']

export interface NamedSchemas {
  /** The schema, or a reference to it. Throws when two different schemas have one name. */
  place(schema: object): Schema
  /** Every schema placed by name, in the order of the names. */
  all(): Readonly<Record<string, Schema>>
}

export function openNamedSchemas(): NamedSchemas {
  const placed = new Map<string, Schema>()

  function place(schema: object): Schema {
    const { 'x-shared': name, ...rest } = schema as Plain
    if (typeof name !== 'string') return inside(rest)
    const plain = inside(rest)
    const known = placed.get(name)
    if (known === undefined) placed.set(name, plain)
    else if (JSON.stringify(known) !== JSON.stringify(plain)) throw new Error(`two schemas are called ${name}`)
    return refTo(name)
  }

  function inside(schema: Plain): Schema {
    const shown: Record<string, unknown> = {}
    for (const [keyword, value] of Object.entries(schema)) {
      if (typeof value !== 'object' || value === null) shown[keyword] = value
      else if (BY_NAME.includes(keyword)) {
        shown[keyword] = Object.fromEntries(Object.entries(value).map(([name, one]) => [name, place(one as object)]))
      } else if (LISTS.includes(keyword)) shown[keyword] = (value as readonly object[]).map(place)
      else shown[keyword] = ONES.includes(keyword) ? place(value) : value
    }
    return shown
  }

  return { place, all: () => Object.fromEntries([...placed].sort(([a], [b]) => (a < b ? -1 : 1))) }
}
