// Values from schemas: those that a schema allows, and those that it does not, each with the member that is at fault.

import fc, { type Arbitrary } from 'fast-check'
import { nameOf, type Schema } from '../../src/api/reference/openapi.ts'

export type Schemas = Readonly<Record<string, Schema>>
/** Schemas that say less than the server knows, by name: values that really are allowed. */
export type Known = Readonly<Record<string, Arbitrary<unknown>>>

const TEXT_CHARS = 40
const ITEMS = 4
const NUMBER_MAX = 1e9

const text = (minLength: number, maxLength: number): Arbitrary<string> => {
  const max = Math.max(minLength, Math.min(maxLength, TEXT_CHARS))
  // Schemas count code points, which is what a unit of this kind is.
  return fc.string({ minLength, maxLength: max, unit: fc.oneof(fc.constantFrom(...'abcXYZ09 _-.:/'), PRINTABLE) })
}
/** No halves of surrogate pairs: JSON cannot carry them faithfully. */
const PRINTABLE = fc.integer({ min: 0x20, max: 0x1_f6_ff }).map((code) => {
  const isHalf = code >= 0xd8_00 && code <= 0xdf_ff
  return String.fromCodePoint(isHalf ? 0xe9 : code)
})

export function valid(schema: Schema, schemas: Schemas, known: Known, depth = 0): Arbitrary<unknown> {
  const name = nameOf(schema)
  if (name !== null) {
    const own = known[name]
    const named = schemas[name]
    if (own === undefined && named === undefined) throw new Error(`no schema ${name}`)
    return own ?? valid(named as Schema, schemas, known, depth + 1)
  }
  if (schema.const !== undefined) return fc.constant(schema.const)
  if (schema.enum !== undefined) return fc.constantFrom(...schema.enum)
  if (schema.anyOf !== undefined) return fc.oneof(...schema.anyOf.map((one) => valid(one, schemas, known, depth + 1)))
  const types = typeof schema.type === 'string' ? [schema.type] : schema.type
  if (types === undefined) return depth > 3 ? fc.constant(null) : fc.jsonValue({ maxDepth: 2 })
  return fc.oneof(...types.map((type) => ofType(type, schema, schemas, known, depth)))
}

function ofType(type: string, schema: Schema, schemas: Schemas, known: Known, depth: number): Arbitrary<unknown> {
  const { minimum = -NUMBER_MAX, maximum = NUMBER_MAX, minItems = 0, maxItems = ITEMS } = schema
  switch (type) {
    case 'null':
      return fc.constant(null)
    case 'boolean':
      return fc.boolean()
    case 'integer':
      return fc.integer({ min: Math.max(minimum, -(2 ** 31)), max: Math.min(maximum, 2 ** 31 - 1) })
    case 'number':
      return fc.double({ min: minimum, max: maximum, noNaN: true })
    case 'string':
      if (schema.format === 'date-time') return MOMENTS
      if (schema.format === 'uri')
        return fc.constantFrom('https://shop.example/hooks', 'https://a.shop.example:8443/?b=c')
      if (schema.pattern !== undefined)
        return fc.stringMatching(new RegExp(schema.pattern)).filter((one) => one.length < 500)
      return text(schema.minLength ?? 0, schema.maxLength ?? TEXT_CHARS)
    case 'array': {
      const items = valid(schema.items ?? {}, schemas, known, depth + 1)
      const length = { minLength: minItems, maxLength: Math.max(minItems, Math.min(maxItems, ITEMS)) }
      return schema.uniqueItems ? fc.uniqueArray(items, length) : fc.array(items, length)
    }
    default:
      return object(schema, schemas, known, depth)
  }
}

const MOMENTS = fc
  .date({ min: new Date('2026-01-01'), max: new Date('2027-01-01'), noInvalidDate: true })
  .map((at) => at.toISOString())

function object(schema: Schema, schemas: Schemas, known: Known, depth: number): Arbitrary<unknown> {
  const { properties = {}, patternProperties = {}, required = [], additionalProperties } = schema
  const [pattern] = Object.entries(patternProperties)
  if (pattern !== undefined && Object.keys(properties).length === 0) {
    const [names, items] = pattern
    return fc.dictionary(fc.stringMatching(new RegExp(names)), valid(items, schemas, known, depth + 1), { maxKeys: 3 })
  }
  const members = Object.fromEntries(
    Object.entries(properties).map(([name, member]) => [name, valid(member, schemas, known, depth + 1)]),
  )
  const named = fc.record(members, { requiredKeys: [...required] })
  if (typeof additionalProperties !== 'object') return named
  const others = fc.dictionary(text(1, 12), valid(additionalProperties, schemas, known, depth + 1), { maxKeys: 3 })
  return fc.tuple(others, named).map(([free, own]) => ({ ...free, ...own }))
}

/** A value the schema does not allow, made of one that it does. */
export interface Faulty {
  readonly value: unknown
  /** The top-level member at fault. */
  readonly head: string
}

/** Bodies that the schema refuses: the value with one fault in it. */
export function faulty(schema: Schema, schemas: Schemas, known: Known): Arbitrary<Faulty> {
  const base = valid(schema, schemas, known) as Arbitrary<Record<string, unknown>>
  const { properties = {}, required = [] } = schema
  const kinds: Arbitrary<(value: Record<string, unknown>) => Faulty>[] = [
    fc.constant((value) => ({ value: { ...value, unknownMember: 1 }, head: 'unknownMember' })),
    fc.constantFrom<unknown>([], 'text', 7, null, true).map((value) => () => ({ value, head: 'body' })),
  ]
  if (required.length > 0) {
    kinds.push(
      fc.constantFrom(...required).map((name) => (value) => {
        const { [name]: _, ...rest } = value
        return { value: rest, head: name }
      }),
    )
  }
  for (const [name, member] of Object.entries(properties)) {
    const wrong = wrongValues(member, schemas)
    if (wrong.length === 0) continue
    kinds.push(fc.constantFrom(...wrong).map((bad) => (value) => ({ value: { ...value, [name]: bad }, head: name })))
  }
  return fc.tuple(base, fc.oneof(...kinds)).map(([value, spoil]) => spoil(value))
}

/** A few values that a member may not have; none for a member that may be anything. */
export function wrongValues(schema: Schema, schemas: Schemas): unknown[] {
  const name = nameOf(schema)
  if (name !== null) return wrongValues(schemas[name] ?? {}, schemas)
  if (schema.anyOf !== undefined) {
    const types = new Set(schema.anyOf.map((one) => typeOf(one, schemas)))
    return [...types].includes(undefined)
      ? []
      : SAMPLES.filter(([type]) => !allows(types, type)).map(([, value]) => value)
  }
  const types = new Set(typeof schema.type === 'string' ? [schema.type] : (schema.type ?? []))
  if (types.size === 0 && schema.enum === undefined && schema.const === undefined) return []
  const wrong = SAMPLES.filter(([type]) => !allows(types, type)).map(([, value]) => value)
  if (schema.enum !== undefined) wrong.push('no such value')
  if (schema.minimum !== undefined) wrong.push(schema.minimum - 1)
  if (schema.maximum !== undefined) wrong.push(schema.maximum + 1)
  if (types.has('integer')) wrong.push(1.5)
  if (schema.maxLength !== undefined) wrong.push('x'.repeat(schema.maxLength + 1))
  if ((schema.minLength ?? 0) > 0) wrong.push('')
  if (schema.pattern !== undefined) wrong.push('\u0000 no match')
  if (schema.maxItems !== undefined) wrong.push(Array.from({ length: schema.maxItems + 1 }, () => 'x'))
  if ((schema.minItems ?? 0) > 0) wrong.push([])
  if (types.has('object') && schema.additionalProperties === false) wrong.push({ unknownMember: 1 })
  const [needed] = schema.required ?? []
  if (needed !== undefined) wrong.push({})
  return wrong
}

const typeOf = (schema: Schema, schemas: Schemas): string | undefined => {
  const name = nameOf(schema)
  const type = name === null ? schema.type : schemas[name]?.type
  return typeof type === 'string' ? type : undefined
}

const SAMPLES: readonly (readonly [type: string, value: unknown])[] = [
  ['string', 'some text'],
  ['integer', 7],
  ['boolean', true],
  ['array', [[]]],
  ['object', { unknownMember: 1 }],
  ['null', null],
]
const allows = (types: ReadonlySet<string | undefined>, type: string): boolean =>
  types.has(type) || (type === 'integer' && types.has('number'))
