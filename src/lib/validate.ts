// Schemas into validators: typebox schema in, function out that throws the contract's validation_error naming the field.

import { Ajv2020, type ErrorObject, type ValidateFunction } from 'ajv/dist/2020.js'
import { invalid } from '../domain/errors.ts'
import type { TSchema } from '../domain/schema.ts'

// The schemas are our own, and tests hold them to JSON Schema: to compile its meta-schemas would be a tenth of a start. Code
// that ajv has optimized is no faster, and takes a third longer to make.
const ajv = new Ajv2020({
  allErrors: false,
  strict: false,
  allowUnionTypes: true,
  validateSchema: false,
  code: { optimize: false },
})

/** `/rules/0/field` → `rules[0].field` */
function dotted(pointer: string): string {
  let path = ''
  for (const part of pointer.split('/').slice(1)) {
    const name = part.replaceAll('~1', '/').replaceAll('~0', '~').slice(0, 64)
    path += /^\d+$/.test(name) ? `[${name}]` : path === '' ? name : `.${name}`
  }
  return path
}

function describe(error: ErrorObject): { field: string; message: string } {
  const at = dotted(error.instancePath)
  const inside = (name: unknown) => (at === '' ? String(name).slice(0, 64) : `${at}.${String(name).slice(0, 64)}`)
  switch (error.keyword) {
    case 'additionalProperties':
    case 'unevaluatedProperties':
      return { field: inside(error.params.additionalProperty), message: 'Unknown field.' }
    case 'required':
      return { field: inside(error.params.missingProperty), message: 'This field is required.' }
    case 'enum':
      return {
        field: at,
        message: `Must be one of: ${(error.params.allowedValues as unknown[]).map(String).join(', ')}.`,
      }
    default:
      return { field: at === '' ? 'body' : at, message: `This field ${error.message ?? 'is not valid'}.` }
  }
}

/**
 * The returned function narrows its argument or throws ApiError validation_error. By default it compiles when it is first
 * called: all the schemas of the API together take a third of a start, and few are asked soon.
 */
export function validator<T>(
  schema: TSchema,
  compiled: 'at once' | 'when asked' = 'when asked',
): (data: unknown) => asserts data is T {
  let check: ValidateFunction | null = compiled === 'at once' ? ajv.compile(schema) : null
  return (data) => {
    check ??= ajv.compile(schema)
    if (check(data)) return
    const { field, message } = describe(check.errors?.[0] as ErrorObject)
    throw invalid(field, message)
  }
}
