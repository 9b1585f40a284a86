// Schemas into validators: typebox schema in, function out that throws the contract's validation_error naming the field.

import { Ajv2020, type ErrorObject } from 'ajv/dist/2020.js'
import type { TSchema } from 'typebox'
import { invalid } from '../domain/errors.ts'

const ajv = new Ajv2020({ allErrors: false, strict: false, allowUnionTypes: true })

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
      return { field: at, message: `Must be one of: ${(error.params.allowedValues as unknown[]).join(', ')}.` }
    default:
      return { field: at === '' ? 'body' : at, message: `This field ${error.message ?? 'is not valid'}.` }
  }
}

/** Compiles once, at start. The returned function narrows its argument or throws ApiError validation_error. */
export function validator<T>(schema: TSchema): (data: unknown) => asserts data is T {
  const check = ajv.compile(schema)
  return (data) => {
    if (check(data)) return
    const { field, message } = describe(check.errors?.[0] as ErrorObject)
    throw invalid(field, message)
  }
}
