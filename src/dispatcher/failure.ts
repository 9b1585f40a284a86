// What went wrong with an attempt, in the words of the contract, from the classes and codes of what was thrown.

import { BlockedAddress, UnknownHost } from './guard.ts'

export const FAILURE_CODES = [
  'http_status',
  'timeout',
  'dns',
  'connect_refused',
  'connect_reset',
  'tls_untrusted',
  'tls_name_mismatch',
  'tls_handshake',
  'blocked_address',
  'closed_before_response',
] as const
export type FailureCode = (typeof FAILURE_CODES)[number]

/** The connection was cut after it stood and before it was encrypted. */
export class HandshakeCut extends Error {
  override readonly name = 'HandshakeCut'
}
/** The total time of an attempt is over. */
export class AttemptTimeout extends Error {
  override readonly name = 'AttemptTimeout'
}

const TIMEOUTS: ReadonlySet<string> = new Set([
  'ETIMEDOUT',
  'UND_ERR_CONNECT_TIMEOUT',
  'UND_ERR_HEADERS_TIMEOUT',
  'UND_ERR_BODY_TIMEOUT',
])
const REFUSALS: ReadonlySet<string> = new Set([
  'ECONNREFUSED',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'EADDRNOTAVAIL',
  'EACCES',
])
const RESETS: ReadonlySet<string> = new Set(['ECONNRESET', 'EPIPE', 'ECONNABORTED'])
const UNTRUSTED =
  /^(?:UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_|CERT_|CRL_|INVALID_CA|INVALID_PURPOSE|PATH_LENGTH|HOSTNAME_MISMATCH|ERROR_IN_)/

export function attemptFailureOf(error: unknown): FailureCode {
  if (error instanceof AggregateError) return attemptFailureOf(error.errors[0])
  if (error instanceof BlockedAddress) return 'blocked_address'
  if (error instanceof UnknownHost) return 'dns'
  if (error instanceof HandshakeCut) return 'tls_handshake'
  if (error instanceof AttemptTimeout) return 'timeout'
  const code = String((error as { readonly code?: unknown } | null)?.code ?? '')
  if (TIMEOUTS.has(code)) return 'timeout'
  if (REFUSALS.has(code)) return 'connect_refused'
  if (RESETS.has(code)) return 'connect_reset'
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID') return 'tls_name_mismatch'
  if (UNTRUSTED.test(code)) return 'tls_untrusted'
  if (code.startsWith('ERR_SSL_') || code.startsWith('ERR_TLS_') || code === 'EPROTO') return 'tls_handshake'
  return 'closed_before_response'
}

/** Whether a failure says that the receiver is down or drowning, and not that it dislikes what it got. */
export const isOutage = (code: FailureCode, statusCode: number | null): boolean =>
  code !== 'http_status' || statusCode === null || statusCode >= 500 || statusCode === 429 || statusCode === 408
