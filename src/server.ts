// One server process: it opens its ports, starts its roles over them, and lets go of everything when its start fails.

import { type App, type BuildInfo, startRoles } from './app.ts'
import type { Config } from './config.ts'
import { driverOf } from './http/server.ts'
import { systemClock } from './lib/clock.ts'
import { createLifetime } from './lib/lifetime.ts'
import type { Logger } from './lib/logger.ts'
import { MAIN, openMetrics } from './lib/metrics.ts'
import { openSpans } from './lib/spans.ts'
import { openEmbedded } from './ports.ts'

/** Throws what a person can act upon: FolderInUse, Unreadable, PortBusy, NeedsRebuild. Nothing stays open then. */
export async function startApp(
  config: Config,
  build: BuildInfo,
  logger: Logger,
  unwanted: AbortSignal,
  acceptLost: boolean,
): Promise<App> {
  const lifetime = createLifetime(logger, unwanted)
  try {
    // Loaded only where they are used: the clients of the servers would lengthen every start on one machine.
    const open = config.isCluster ? (await import('./ports-cluster.ts')).openCluster : openEmbedded
    const { 'http.driver': driver, 'deployment.mode': mode } = config
    const spans = await openSpans(config['tracing.sdk'], systemClock)
    lifetime.onClose(() => spans?.close())
    const labels = { ...build, node: process.version, driver: driverOf(driver), mode }
    const metrics = openMetrics(labels, MAIN, spans)
    const ports = await open(config, logger, lifetime, metrics)
    return await startRoles(config, build, logger, lifetime, ports, metrics, acceptLost)
  } catch (error) {
    await lifetime.end()
    throw error
  }
}
