// What a process serves whose secrets cannot be opened: health, with the reason why, and the same refusal to everybody else.

import { ApiError } from '../domain/errors.ts'
import type { Http, OwnHttp } from '../http/server.ts'
import type { Lifetime } from '../lib/lifetime.ts'
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

interface Places {
  readonly host: string
  readonly port: number
  readonly adminHost: string
  /** 0: there is no second port. */
  readonly adminPort: number
}

interface ListenClosedNeeds {
  readonly listen: (host: string, port: number) => Promise<OwnHttp>
  readonly serve: ReturnType<typeof openClosed>
  readonly lifetime: Pick<Lifetime, 'onClose'>
}

/** Details are told on the second port, where there is one. Resolves with what listens for clients. */
export async function listenClosed(
  { host, port, adminHost, adminPort }: Places,
  { listen, serve, lifetime }: ListenClosedNeeds,
): Promise<OwnHttp> {
  if (adminPort !== 0) {
    const inside = await listen(adminHost, adminPort)
    serve(inside, true)
    lifetime.onClose(() => inside.close())
  }
  const closed = await listen(host, port)
  serve(closed, adminPort === 0)
  lifetime.onClose(() => closed.close())
  return closed
}
