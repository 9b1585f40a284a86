// The operator's entrance: one token of the deployment, compared in constant time, for the endpoints under /admin.

import { createHash, timingSafeEqual } from 'node:crypto'
import { ApiError } from '../../domain/errors.ts'
import type { Clock } from '../../lib/clock.ts'
import { type Auth, bearer, openFailures } from '../../records/auth.ts'
import { SYSTEM } from '../../records/scopes.ts'
import type { KeyOwner } from '../idempotency.ts'

const OPERATOR_TOKEN_CHARS_MIN = 32

export interface Operator {
  /**
   * Returns for the operator. Throws invalid_api_key (rate_limited for an address that fails too often), or
   * insufficient_permissions for a genuine API key.
   */
  authorise(authorization: string, address: string): void
  /** Of the operator's Idempotency-Keys. */
  readonly keyOwner: KeyOwner
}

export interface OperatorNeeds {
  readonly token: string
  readonly auth: Auth
  readonly clock: Clock
}

export function openOperator({ token, auth, clock }: OperatorNeeds): Operator {
  if (token.length < OPERATOR_TOKEN_CHARS_MIN) {
    throw new RangeError(`an operator token has at least ${OPERATOR_TOKEN_CHARS_MIN} characters`)
  }
  const expected = sha256(token)
  const failures = openFailures(clock)
  return {
    authorise(authorization, address) {
      const sent = bearer(authorization)
      // Equal lengths whatever was sent, so that the time tells nothing about the token.
      if (sent !== null && timingSafeEqual(sha256(sent), expected)) return
      if (sent !== null && isApiKey(auth, sent, address)) {
        throw new ApiError('insufficient_permissions', { message: 'This endpoint needs the operator token.' })
      }
      throw failures.count(address, new ApiError('invalid_api_key'))
    },
    keyOwner: { scope: SYSTEM, name: 'operator', secret: token },
  }
}

const sha256 = (text: string): Buffer => createHash('sha256').update(text).digest()

function isApiKey(auth: Auth, text: string, address: string): boolean {
  try {
    auth.authenticate(text, address)
    return true
  } catch (error) {
    if (error instanceof ApiError && error.code !== 'unavailable') return false
    throw error
  }
}
