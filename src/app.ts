// Opens the ports, starts the roles and stops them in reverse. The only file that sees every folder.

import { adminRoutes } from './api/admin.ts'
import { registerRoutes } from './api/api.ts'
import { eventRoutes } from './api/events.ts'
import { serveHealth } from './api/health.ts'
import { metaRoutes } from './api/meta.ts'
import { openOperator } from './api/operator.ts'
import { callHeaders, openPresent } from './api/present.ts'
import { ruleRoutes } from './api/rules.ts'
import { readFiles, serveStatic } from './api/static.ts'
import { visitorRoutes } from './api/visitors.ts'
import { openBus } from './bus/open.ts'
import { deferClickHouse } from './clickhouse/deferred.ts'
import { openHistory } from './clickhouse/history.ts'
import type { Config } from './config.ts'
import { bootstrap, prepareDeployment, type Seed } from './control/bootstrap.ts'
import { runControl } from './control/owner.ts'
import { openPropagation } from './control/propagation.ts'
import { openSubmit } from './control/submit.ts'
import { makeObjectId } from './domain/ids.ts'
import { startEngine } from './engine/role.ts'
import { isNative, openHttp } from './http/server.ts'
import { openParsers } from './identity/parsers.ts'
import { watchCapacity } from './ingress/capacity.ts'
import { clientAddress } from './ingress/client-address.ts'
import { startIngress } from './ingress/ingress.ts'
import { runTrim } from './jobs/trim.ts'
import { openKv } from './kv/open.ts'
import { systemClock as clock } from './lib/clock.ts'
import { claimDataFolder } from './lib/data-folder.ts'
import { createLifetime, type Lifetime } from './lib/lifetime.ts'
import type { Logger } from './lib/logger.ts'
import { openMetrics } from './lib/metrics.ts'
import { openRandom } from './lib/random.ts'
import { openLog } from './log/open.ts'
import { openEventReads } from './reads/events.ts'
import { readRuleStats } from './reads/rule-stats.ts'
import { openVisitorReads } from './reads/visitors.ts'
import { openAuth } from './records/auth.ts'
import { openKeyDirectory } from './records/key-directory.ts'
import { ENGINE_POSITION, SINK_POSITION } from './records/partitions.ts'
import { startSinks } from './sink/role.ts'

/** The newest layout of the data folder this build reads, and the one it writes. */
const DATA_FORMAT = 1
const DRAIN_MS = 15_000
const TRIM_EVERY_MS = 5_000
/** Time for a body to arrive, besides the time its decision may take. */
const BODY_MS = 12_000

export interface Build {
  readonly version: string
  readonly commit: string
}

export interface App {
  readonly port: number
  /** Keys made by this start, to be shown once. */
  readonly generatedKeys: Awaited<ReturnType<typeof bootstrap>>['generated']
  /** Stops accepting, answers what was accepted, writes the last checkpoints, and lets go of everything. */
  stop(): Promise<void>
}

const random = openRandom()

/** Throws what a person can act upon: FolderInUse, Unreadable, PortBusy, NeedsRebuild. Nothing stays open then. */
export async function startApp(config: Config, build: Build, logger: Logger): Promise<App> {
  const lifetime = createLifetime(logger)
  try {
    const ports = await openPorts(config, logger, lifetime)
    return await startRoles(config, build, logger, lifetime, ports)
  } catch (error) {
    await lifetime.settle()
    await lifetime.close()
    throw error
  }
}

type Ports = Awaited<ReturnType<typeof openPorts>>

async function openPorts(config: Config, logger: Logger, lifetime: Lifetime) {
  const dataDir = config['data.dir']
  const folder = await claimDataFolder(dataDir, {
    format: DATA_FORMAT,
    partitions: config['data.partitions'],
    clock,
    random: Math.random,
  })
  lifetime.onClose(() => folder.release())
  const { partitions } = folder
  const durability = config['log.durability'] === 'relaxed' ? ('relaxed' as const) : ('fsync' as const)
  const historyConfig = { dataDir: `${dataDir}/clickhouse`, retentionDays: config['retention.eventsDays'] }
  const history = deferClickHouse(() => openHistory(historyConfig, { clock, log: logger }), clock)
  lifetime.onClose(() => history.port.close())
  const bus = await openBus({
    backend: 'local',
    onError: (error) => logger.error({ error }, 'a receiver of the bus failed'),
  })
  lifetime.onClose(() => bus.close())
  const log = await openLog({
    backend: 'lmdb',
    dataDir,
    partitions,
    clock,
    durability,
    bytesMax: config['log.bytesMax'],
  })
  lifetime.onClose(() => log.close())
  const kv = await openKv({
    backend: 'lmdb',
    dataDir,
    clock,
    durability,
    onError: (error) => logger.error({ error }, 'sweeping the kv failed'),
  })
  lifetime.onClose(() => kv.close())
  await prepareDeployment({ log, kv, partitions, sources: [ENGINE_POSITION, SINK_POSITION] })
  return { bus, log, kv, history, partitions, durability, deployment: folder.createdAt }
}

async function startRoles(
  config: Config,
  build: Build,
  logger: Logger,
  lifetime: Lifetime,
  ports: Ports,
): Promise<App> {
  const { bus, log, kv, partitions } = ports
  const clickhouse = ports.history.port
  const metrics = openMetrics({ version: build.version, ingress: isNative() ? 'native' : 'fallback' })
  if (!isNative()) logger.warn({}, 'the native HTTP server does not run on this Node.js: a slow substitute serves')

  lifetime.run(
    'control',
    runControl({
      log,
      kv,
      bus,
      clock,
      signal: lifetime.stopping,
      report: (fact) => {
        if (fact.kind === 'dead') logger.warn(fact, 'a command could not be applied')
        if (fact.kind === 'stalled') logger.warn({ error: fact.error }, 'the control plane waits for a port')
      },
    }),
  )
  const submitter = openSubmit({ log, kv, bus, clock, random })
  lifetime.onClose(() => submitter.close())
  const { submit } = submitter
  const booted = await bootstrap({ kv, submit, random, seeds: seedsOf(config) })
  const directory = await openKeyDirectory({
    kv,
    log,
    bus,
    clock,
    report: (error) => logger.error({ error }, 'loading keys failed'),
  })
  lifetime.onClose(() => directory.close())
  const auth = openAuth(directory, clock)

  const { recent } = await startEngine({
    log,
    kv,
    bus,
    clock,
    random,
    lifetime,
    logger,
    metrics,
    workers: {
      threads: config['engine.threads'],
      partitions,
      visitorsMax: config['engine.visitorsMax'],
      stepMsMax: config['engine.stepMsMax'],
      heapMbMax: config['engine.heapMbMax'],
    },
    recentMax: config['recent.eventsMax'],
  })
  startSinks({
    log,
    kv,
    clickhouse,
    clock,
    deployment: ports.deployment,
    flushMsMax: config['sink.flushMs'],
    batchRowsMax: config['sink.rowsMax'],
    partitions,
    lifetime,
    logger,
    metrics,
    onSunk: recent.forgetUpTo,
  })
  const keepMs = config['log.keepSeconds'] * 1_000
  const onError = (error: unknown) => logger.error({ error }, 'trimming the log failed')
  const trimming = { log, kv, clock, partitions, keepMs, everyMs: TRIM_EVERY_MS, onError }
  lifetime.run('trim', runTrim(trimming, lifetime.stopping))

  const capacity = await watchCapacity({
    log,
    clock,
    dir: config['data.dir'],
    freeBytesMin: config['data.freeBytesMin'],
    onUsage: (bytes) => metrics.logBytes.set(bytes),
  })
  lifetime.onClose(() => capacity.stop())
  const propagation = openPropagation({ kv, bus, clock })
  lifetime.onClose(() => propagation.close())

  const { 'tls.certFile': certFile, 'tls.keyFile': keyFile, 'operator.token': operatorToken } = config
  const files = readFiles(new URL('../sdk', import.meta.url).pathname)
  const present = openPresent((error) => logger.error({ error }, 'a request failed'))
  const http = await openHttp({
    host: config['http.host'],
    port: config['http.port'],
    ...(certFile === '' ? {} : { tls: { certFile, keyFile } }),
    inFlightMax: config['http.inFlightMax'],
    clock,
    log: logger,
    present,
    observe: metrics.observeRequest,
    responseHeaders: callHeaders(clock, random),
  })
  // From here on in one turn of the event loop: no request may meet a server without its routes.
  let draining = false
  const visitors = openVisitorReads(kv, partitions)
  const events = openEventReads({
    clickhouse,
    log,
    findRecent: recent.find,
    recentComplete: recent.complete,
    isPending: (scope, requestId) => ingress.isPending(scope, requestId),
    originalOf: (scope, requestId) => ingress.originalOf(scope, requestId),
    clock,
    retentionDays: config['retention.eventsDays'],
  })
  const ingress = startIngress({
    http,
    auth,
    bus,
    log,
    clock,
    random,
    parsers: openParsers(),
    partitions,
    ingressId: makeObjectId('ing', random),
    pendingMax: config['ingress.pendingMax'],
    decisionWaitMs: config['ingress.decisionWaitMs'],
    deadlineMs: config['ingress.decisionWaitMs'] + BODY_MS,
    retentionDays: config['retention.eventsDays'],
    trustedProxies: config.trustedProxies,
    present,
    refusal: () => (draining ? 'The server is shutting down.' : capacity.refusal()),
    findEvent: async (workspace, env, requestId) => {
      const event = await events.byId(workspace, env, requestId)
      return event === 'pending' ? null : event
    },
  })
  const ruleStats = readRuleStats.bind(null, kv, partitions)
  const routes = [
    ...eventRoutes({ events, visitors }),
    ...visitorRoutes({ visitors }),
    ...ruleRoutes({ kv, submit, awaitPropagation: propagation.awaitPropagation, clock, random, ruleStats }),
    ...metaRoutes({ version: build.version, commit: build.commit, native: http.native }),
    ...adminRoutes({ kv, submit, directory, clock, random }),
  ]
  registerRoutes(http, routes, {
    auth,
    operator: operatorToken === '' ? null : openOperator({ token: operatorToken, auth, clock }),
    addressHeaders: ['x-forwarded-for'],
    addressOf: (request) =>
      clientAddress(request.remoteAddress(), request.header('x-forwarded-for'), config.trustedProxies),
  })
  serveHealth(http, {
    checks: () => ({
      draining: draining ? 'the server is shutting down' : null,
      log: capacity.refusal(),
      keys: directory.isFresh() ? null : 'keys cannot be confirmed',
      engine: recent.caughtUp() ? null : 'partitions are being taken over',
      roles: lifetime.failed().length === 0 ? null : `stopped: ${lifetime.failed().join(', ')}`,
    }),
    info: () => ({ durability: ports.durability, partitions, native: http.native, version: build.version }),
    metrics: () => {
      metrics.pending.set(ingress.pendingCount())
      metrics.recent.set(recent.size())
      return metrics.text()
    },
    metricsContentType: metrics.contentType,
  })
  serveStatic(http, files)
  // Its engine takes longest to start, above all while a predecessor that was killed still holds its folder, and neither
  // accepting nor deciding needs it: it comes last.
  lifetime.run('clickhouse', ports.history.start())
  await booted.finish()

  return {
    port: http.port,
    generatedKeys: booted.generated,
    async stop() {
      draining = true
      http.stopListening()
      await http.drain(DRAIN_MS)
      ingress.stop()
      http.close()
      // Last checkpoints are written while the ports are still open.
      await lifetime.settle()
      await lifetime.close()
    },
  }
}

function seedsOf(config: Config): Seed[] {
  const seed = (kind: Seed['kind'], env: Seed['env'], text: string): Seed => ({
    kind,
    env,
    ...(text === '' ? {} : { text }),
  })
  return [
    seed('public', 'live', config['keys.public']),
    seed('secret', 'live', config['keys.secret']),
    seed('public', 'test', config['keys.testPublic']),
    seed('secret', 'test', config['keys.testSecret']),
  ]
}
