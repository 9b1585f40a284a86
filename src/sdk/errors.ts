// The one error the SDK rejects with.

/**
 * `code` is the service's own (`validation_error`, `invalid_api_key`, …) or one of `timeout`, `network_error`,
 * `payload_too_large`, `invalid_response`, `aborted`, `internal_error`. `status` is 0 when no answer came.
 */
export class FingerpostError extends Error {
  readonly code: string
  readonly status: number
  readonly field: string | undefined

  constructor(code: string, message: string, status = 0, field?: string) {
    super(message)
    this.name = 'FingerpostError'
    this.code = code
    this.status = status
    this.field = field
  }
}
