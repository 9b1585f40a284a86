// What a process serves whose secrets cannot be opened: health, with the reason why, and the same refusal to everybody else.

import { ApiError } from '../domain/errors.ts'
import type { Http } from '../http/server.ts'
import type { Logger } from '../lib/logger.ts'
import type { Metrics } from '../lib/metrics.ts'
import type { SecretsLost } from '../records/secrets.ts'
import { serveBareHealth, serveHealth } from './health.ts'
import { presentError } from './present.ts'

const RETRY_AFTER_SECONDS = 30

export interface ClosedNeeds {
  readonly logger: Logger
  readonly metrics: Metrics
  readonly roles: ReadonlySet<string>
  readonly version: string
}

/** What it returns serves a server, in the tick in which that was opened; `tellsDetails`: not everybody can ask it. */
export function openClosed({ message, count }: SecretsLost, { logger, metrics, roles, version }: ClosedNeeds) {
  logger.error({ unreadable: count }, message)
  metrics.unreadableSecrets.set(count)
  const health = {
    checks: () => ({ secrets: message }),
    info: () => ({ roles: [...roles], version }),
    metrics: () => metrics.text([]),
    metricsContentType: metrics.contentType,
  }
  return (http: Pick<Http, 'route' | 'notFound'>, tellsDetails: boolean): void => {
    http.notFound(() => presentError(new ApiError('unavailable', { retryAfter: RETRY_AFTER_SECONDS })))
    if (tellsDetails) serveHealth(http, health)
    else serveBareHealth(http, health)
  }
}
