// What a process serves whose secrets cannot be opened: health, with the reason why, and the same refusal to everybody else.

import { ApiError } from '../domain/errors.ts'
import type { Http } from '../http/server.ts'
import type { Logger } from '../lib/logger.ts'
import type { Metrics } from '../lib/metrics.ts'
import type { SecretsLost } from '../records/secrets.ts'
import { serveHealth } from './health.ts'
import { presentError } from './present.ts'

const RETRY_AFTER_SECONDS = 30

export interface ClosedNeeds {
  readonly logger: Logger
  readonly metrics: Metrics
  readonly roles: ReadonlySet<string>
  readonly version: string
}

/** In the tick in which the server was opened. */
export function serveClosed(
  http: Pick<Http, 'route' | 'notFound'>,
  { message, count }: SecretsLost,
  { logger, metrics, roles, version }: ClosedNeeds,
): void {
  logger.error({ unreadable: count }, message)
  metrics.unreadableSecrets.set(count)
  http.notFound(() => presentError(new ApiError('unavailable', { retryAfter: RETRY_AFTER_SECONDS })))
  serveHealth(http, {
    checks: () => ({ secrets: message }),
    info: () => ({ roles: [...roles], version }),
    metrics: () => metrics.text([]),
    metricsContentType: metrics.contentType,
  })
}
