// Which errors an endpoint can give, and when each of them comes: the words of the error tables.

import type { ErrorCode } from '../../domain/errors.ts'
import type { DescribedRow } from './outside.ts'

/** When each code comes. Those without a place in any endpoint are answers of the server as a whole. */
export const WHEN: Readonly<Record<ErrorCode, string>> = {
  validation_error: 'A parameter or member is missing, unknown or wrong; `field` names it.',
  invalid_json: 'The body does not parse, nests too deep, or is no valid UTF-8.',
  idempotency_key_mismatch: 'The Idempotency-Key was used with another request before.',
  invalid_api_key: 'The key is missing, malformed, unknown, expired or revoked.',
  invalid_session: 'Console only: nobody is signed in, or the session is over.',
  sign_in_failed: 'Console only: e-mail, password, code or link is wrong.',
  code_required: 'Console only: the password is right, and a code of the authenticator is missing.',
  insufficient_permissions: 'The key lacks the scope; the message names it.',
  origin_not_allowed: "The page's origin is not on the key's allow-list.",
  plan_required: 'The plan of the workspace has no scores.',
  not_found: 'An id names nothing here. Objects of other workspaces and environments are as unknown as any.',
  route_not_found: 'There is no such endpoint.',
  method_not_allowed: 'The endpoint has other methods; Allow names them.',
  conflict: 'The name is taken, or the object has changed since it was read.',
  idempotency_conflict: 'The nonce was used with another body within two minutes.',
  idempotency_in_progress: 'A request with this Idempotency-Key is still running.',
  resource_limit_reached: 'There are as many objects of this kind as there may be.',
  payload_too_large: 'The body is larger than this endpoint takes.',
  unsupported_media_type: 'The body is of another type than this endpoint takes, or has a Content-Encoding.',
  headers_too_large: 'There are more header fields than are read, or they are longer.',
  rate_limited: 'Too many requests; Retry-After says when to try again.',
  internal_error: 'A failure of ours. Retry with exponential backoff.',
  unavailable: 'A part of the service is down or busy; Retry-After says when to try again.',
}

const ALWAYS: readonly ErrorCode[] = [
  'validation_error',
  'payload_too_large',
  'headers_too_large',
  'internal_error',
  'unavailable',
]
const WITH_KEY: readonly ErrorCode[] = ['invalid_api_key', 'rate_limited']
const WITH_BODY: readonly ErrorCode[] = ['invalid_json', 'unsupported_media_type']
const CREATES_ONCE: readonly ErrorCode[] = ['idempotency_key_mismatch', 'idempotency_in_progress']

export function refusalsOf(row: DescribedRow): ReadonlySet<ErrorCode> {
  const { access, path, body, once, doc } = row
  if (access === 'none')
    return new Set([...(path.includes(':') ? (['not_found'] as const) : []), ...(doc?.refusals ?? [])])
  return new Set<ErrorCode>([
    ...ALWAYS,
    ...WITH_KEY,
    ...(access === 'any-key' ? [] : (['insufficient_permissions'] as const)),
    ...(body === undefined ? [] : WITH_BODY),
    ...(path.includes(':') ? (['not_found'] as const) : []),
    ...(once === undefined ? [] : CREATES_ONCE),
    ...(doc?.refusals ?? []),
  ])
}
