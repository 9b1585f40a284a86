// A JSON body from bytes: bounded depth, strict UTF-8. What it means is for a schema to say.

import { ApiError } from '../domain/errors.ts'
import { JSON_DEPTH_MAX } from '../domain/identify.ts'
import { nestsDeeper } from './json-depth.ts'
import { decodeUtf8 } from './utf8.ts'

const MAYBE_SURROGATE = /\\u[dD][89a-fA-F]/
const LONE_SURROGATE = /\p{Surrogate}/u

/**
 * The value. Half of a surrogate pair survives JSON but no encoding, so it would come back as something else: it is
 * refused, or kept for a caller who replaces it. Throws ApiError invalid_json.
 */
export function parseJson(bytes: Uint8Array, loneSurrogates: 'refuse' | 'keep'): unknown {
  const text = decodeUtf8(bytes)
  if (text === null) throw new ApiError('invalid_json', { message: 'The body is not valid UTF-8.' })
  const value = parseOrThrow(text)
  if (nestsDeeper(value, JSON_DEPTH_MAX)) {
    throw new ApiError('invalid_json', { message: `The body nests deeper than ${JSON_DEPTH_MAX} levels.` })
  }
  // Only now: with a reviver the parser does need stack for every level.
  if (loneSurrogates === 'refuse' && MAYBE_SURROGATE.test(text)) parseOrThrow(text, refuseLoneSurrogates)
  return value
}

function parseOrThrow(text: string, reviver?: (name: string, value: unknown) => unknown): unknown {
  try {
    return JSON.parse(text, reviver)
  } catch {
    throw new ApiError('invalid_json')
  }
}

function refuseLoneSurrogates(name: string, value: unknown): unknown {
  if (LONE_SURROGATE.test(name) || (typeof value === 'string' && LONE_SURROGATE.test(value))) {
    throw new SyntaxError('lone surrogate')
  }
  return value
}
