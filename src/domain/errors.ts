// Every failure a client can see: one table of codes with status and message (src/docs/contract.md, Errors).

export const ERRORS = {
  validation_error: [400, 'The request is not valid.'],
  invalid_json: [400, 'The body is not valid JSON.'],
  idempotency_key_mismatch: [400, 'This Idempotency-Key was used with a different request.'],
  invalid_api_key: [401, 'The API key is missing, malformed, unknown or revoked.'],
  invalid_session: [401, 'Sign in.'],
  sign_in_failed: [401, 'This is not right. Check what you typed, or ask for a new link.'],
  code_required: [401, 'The code of your authenticator is needed as well.'],
  insufficient_permissions: [403, 'This key may not call this endpoint.'],
  origin_not_allowed: [403, 'This origin is not on the allow-list of the key.'],
  plan_required: [403, 'This feature needs a higher plan.'],
  not_found: [404, 'No such object.'],
  route_not_found: [404, 'No such endpoint.'],
  method_not_allowed: [405, 'This endpoint does not accept this method.'],
  conflict: [409, 'The object is not in the state this request expects.'],
  idempotency_conflict: [409, 'This nonce was used with a different body.'],
  idempotency_in_progress: [409, 'A request with this Idempotency-Key is still running.'],
  resource_limit_reached: [409, 'The maximum number of objects of this kind is reached.'],
  payload_too_large: [413, 'The body is larger than this endpoint accepts.'],
  unsupported_media_type: [415, 'The body must be application/json.'],
  headers_too_large: [431, 'The header fields of this request are too many or too long.'],
  rate_limited: [429, 'Too many requests.'],
  internal_error: [500, 'Something failed on our side. Retry with exponential backoff.'],
  unavailable: [503, 'The service cannot accept this request now. Retry later.'],
} as const satisfies Record<string, readonly [number, string]>

export type ErrorCode = keyof typeof ERRORS

export interface ErrorDetail {
  /** Replaces the table's message; must not echo more than a short, printable part of the input. */
  readonly message?: string
  /** Dotted path with indexes of the offending parameter. */
  readonly field?: string
  /** Whole seconds, at least 1. */
  readonly retryAfter?: number
}

/** A failure with a place in the table. Anything else that is thrown becomes internal_error. */
export class ApiError extends Error {
  override readonly name = 'ApiError'
  readonly code: ErrorCode
  readonly status: number
  readonly detail: ErrorDetail
  constructor(code: ErrorCode, detail: ErrorDetail = {}) {
    super(detail.message ?? ERRORS[code][1])
    this.code = code
    this.status = ERRORS[code][0]
    this.detail = detail
  }
}

export const invalid = (field: string, message: string): ApiError =>
  new ApiError('validation_error', { field, message })

/** Where the documentation says when a code comes. */
export const docsOf = (code: ErrorCode): string => `/docs/errors#error-${code.replaceAll('_', '-')}`

/** The contract's error body. */
export function errorBody(error: ApiError): string {
  const { field, retryAfter } = error.detail
  return JSON.stringify({
    error: {
      code: error.code,
      message: error.message,
      docs: docsOf(error.code),
      ...(field === undefined ? {} : { field }),
      ...(retryAfter === undefined ? {} : { retryAfter }),
    },
  })
}
