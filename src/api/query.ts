// Query parameters from text: each name known, given once, and written exactly as its type demands.

import { invalid } from '../domain/errors.ts'
import type { TSchema } from '../domain/schema.ts'
import { parseDatetime } from '../lib/datetime.ts'
import { validator } from '../lib/validate.ts'

// No sign but minus, no leading zeros, no exponent: one way to write each number, and no surprise in how it is read.
const INTEGER = /^(?:0|-?[1-9]\d{0,14})$/
const NUMBER = /^-?(?:0|[1-9]\d{0,14})(?:\.\d{1,15})?$/
const NAME_CHARS_SHOWN = 64

/** Milliseconds. Throws ApiError validation_error naming the parameter. */
export function readMoment(text: string, field: string): number {
  const at = parseDatetime(text)
  if (at === null) throw invalid(field, 'This is no RFC 3339 time.')
  return at
}

/** Compiles once, at start. The returned function throws ApiError validation_error naming the parameter. */
export function queryParser(schema: TSchema | undefined): (query: string) => Readonly<Record<string, unknown>> {
  const types = new Map(Object.entries(propertiesOf(schema)).map(([name, { type }]) => [name, type]))
  const open = openNamesOf(schema)
  const check: (data: unknown) => void = schema === undefined ? () => {} : validator(schema)
  return (query) => {
    const values: Record<string, unknown> = {}
    for (const [name, text] of pairs(query)) {
      if (!types.has(name) && !open.some((pattern) => pattern.test(name)))
        throw invalid(name.slice(0, NAME_CHARS_SHOWN), 'Unknown query parameter.')
      if (Object.hasOwn(values, name)) throw invalid(name, 'This parameter is given more than once.')
      values[name] = read(types.get(name), name, text)
    }
    check(values)
    return values
  }
}

function propertiesOf(schema: TSchema | undefined): Readonly<Record<string, { readonly type?: unknown }>> {
  return (schema as { readonly properties?: Record<string, { readonly type?: unknown }> } | undefined)?.properties ?? {}
}

/** Names of texts that the schema knows by a pattern. */
const openNamesOf = (schema: TSchema | undefined): readonly RegExp[] =>
  Object.keys((schema as { readonly patternProperties?: object } | undefined)?.patternProperties ?? {}).map(
    (pattern) => new RegExp(pattern, 'u'),
  )

function* pairs(query: string): Generator<readonly [string, string]> {
  for (const part of query.split('&')) {
    if (part === '') continue
    const at = part.indexOf('=')
    const name = decode(at < 0 ? part : part.slice(0, at), 'query')
    yield [name, at < 0 ? '' : decode(part.slice(at + 1), name.slice(0, NAME_CHARS_SHOWN))]
  }
}

function decode(text: string, field: string): string {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '))
  } catch {
    throw invalid(field, 'Must be percent-encoded UTF-8.')
  }
}

function read(type: unknown, name: string, text: string): unknown {
  switch (type) {
    case 'integer':
      if (!INTEGER.test(text)) throw invalid(name, 'Must be an integer.')
      return Number(text)
    case 'number':
      if (!NUMBER.test(text)) throw invalid(name, 'Must be a number.')
      return Number(text)
    case 'boolean':
      if (text !== 'true' && text !== 'false') throw invalid(name, 'Must be true or false.')
      return text === 'true'
    default:
      return text
  }
}
