// Builders of JSON Schema that TypeScript can read types from. They make what typebox makes of the same calls and take its types;
// typebox itself would be 370 files that every process and every thread reads when it starts.

import type typebox from 'typebox'
import type { Static, TSchema } from 'typebox'

export type { Static, TObject, TObjectOptions, TSchema } from 'typebox'

type Builder =
  | 'Array'
  | 'Boolean'
  | 'Enum'
  | 'Integer'
  | 'Literal'
  | 'Null'
  | 'Number'
  | 'Object'
  | 'Optional'
  | 'Partial'
  | 'Record'
  | 'String'
  | 'Union'
  | 'Unknown'
  | 'Unsafe'
type Properties = Readonly<Record<string, TSchema>>

/** What marks a member that may be missing; whoever spreads the schema leaves it behind. */
const OPTIONAL = '~optional'
const optional = (schema: TSchema): TSchema => Object.defineProperty({ ...schema }, OPTIONAL, { value: true })

const ofType =
  (type: string) =>
  (options: TSchema = {}) => ({ type, ...options })

function object(properties: Properties, options: TSchema = {}) {
  const required = Object.keys(properties).filter((name) => !Object.hasOwn(properties[name] as TSchema, OPTIONAL))
  return { type: 'object', ...(required.length > 0 ? { required } : {}), properties, ...options }
}

const partial = ({ properties }: { readonly properties: Properties }, options: TSchema = {}) =>
  object(Object.fromEntries(Object.entries(properties).map(([name, schema]) => [name, optional(schema)])), options)

const builders: Record<Builder, unknown> = {
  Array: (items: TSchema, options: TSchema = {}) => ({ type: 'array', items, ...options }),
  Boolean: ofType('boolean'),
  Enum: (values: readonly unknown[], options: TSchema = {}) => ({ enum: values, ...options }),
  Integer: ofType('integer'),
  Literal: (value: string | number | boolean, options: TSchema = {}) => ({
    type: typeof value,
    const: value,
    ...options,
  }),
  Null: ofType('null'),
  Number: ofType('number'),
  Object: object,
  Optional: optional,
  Partial: partial,
  Record: (_names: TSchema, items: TSchema, options: TSchema = {}) => ({
    type: 'object',
    patternProperties: { '^.*$': items },
    ...options,
  }),
  String: ofType('string'),
  Union: (anyOf: readonly TSchema[], options: TSchema = {}) => ({ anyOf, ...options }),
  Unknown: (options: TSchema = {}) => ({ ...options }),
  Unsafe: (schema: TSchema) => schema,
}

export const Type = builders as Pick<typeof typebox, Builder>

/** An object with no members but those it names. */
export const strict = { additionalProperties: false } as const
/** One error that names the field, where a union of literals would give one per literal. */
export const oneOf = <T extends string>(values: readonly T[]) => Type.Unsafe<T>({ type: 'string', enum: [...values] })
export const nullable = <T extends TSchema>(schema: T) => Type.Union([schema, Type.Null()])

/** What a schema describes, as something nobody changes. */
export type Described<T extends TSchema> = Frozen<Static<T>>
type Frozen<T> = T extends readonly (infer Item)[]
  ? readonly Frozen<Item>[]
  : T extends object
    ? { readonly [Name in keyof T]: Frozen<T[Name]> }
    : T
