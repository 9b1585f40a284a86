// What listens: how each answers, and its end. Connections are served for a while, then requests in flight, and what comes late is refused.

import type { RandomBytes } from '../domain/ids.ts'
import { makeCallId } from '../domain/ids.ts'
import { type Dispatch, openDispatch } from '../http/dispatch.ts'
import type { Present } from '../http/message.ts'
import type { Listener } from '../http/port.ts'
import { bind, driverOf, type Http, type HttpConfig, type OwnHttp, openHttp } from '../http/server.ts'
import type { Clock } from '../lib/clock.ts'
import type { Logger } from '../lib/logger.ts'
import type { Metrics } from '../lib/metrics.ts'
import { callHeaders, openPresent } from './present.ts'

const DRAIN_MS = 15_000

/**
 * From its beginning on each connection ends with its next answer. A proxy keeps some open that it does not use, and would take a
 * refusal on one of them for ours: only when `lingered` is over `refuse` is called. `answering` is whatever answers, also what listens
 * nowhere itself. Resolves when nothing is in flight, or late.
 */
export async function drainAll(
  answering: readonly (Pick<Http, 'drain'> & Partial<Pick<Http, 'stopListening'>>)[],
  lingered: Promise<unknown>,
  refuse: () => void,
): Promise<void> {
  for (const http of answering) http.stopListening?.()
  const drained = answering.map((http) => http.drain(0))
  await lingered
  await Promise.all(drained)
  refuse()
  await Promise.all(answering.map((http) => http.drain(DRAIN_MS)))
}

export interface ListenersNeeds
  extends Pick<HttpConfig, 'driver' | 'tls' | 'inFlightMax' | 'inFlightCounts' | 'perHost'> {
  readonly clock: Clock
  readonly random: RandomBytes
  readonly logger: Logger
  readonly metrics: Metrics
}

export interface Listeners {
  readonly present: Present
  listen(host: string, port: number): Promise<OwnHttp>
  /** Answers what arrives elsewhere. */
  dispatch(): Dispatch
  /** Has what arrives on the port, on which other threads of the process may listen as well, answered there. */
  bind(host: string, port: number, dispatch: Dispatch): Promise<Listener>
}

export function openListeners({ clock, random, logger, metrics, ...settings }: ListenersNeeds): Listeners {
  const present = openPresent(
    (error, call) => logger.error({ ...call, error }, 'a request failed'),
    () => makeCallId(clock.now(), random),
  )
  const answering = () => ({
    clock,
    log: logger,
    present,
    observe: metrics.observeRequest,
    declare: metrics.declareRoute,
    responseHeaders: callHeaders(clock, random),
    ...settings,
  })
  return {
    present,
    listen: (host, port) => openHttp({ host, port, ...answering() }),
    dispatch: () => openDispatch(answering()),
    bind(host, port, dispatch) {
      const { driver = driverOf('auto'), tls } = settings
      return bind(driver)({ host, port, isShared: true, ...(tls === undefined ? {} : { tls }) }, dispatch)
    },
  }
}
