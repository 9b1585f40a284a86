// Starts the roles of this process over opened ports and stops them in reverse. The only file that sees every folder.

import { fileURLToPath } from 'node:url'
import { ipAdvice } from './advice.ts'
import { listenClosed, openClosed } from './api/closed.ts'
import { openSetupLink, setUpFromFile } from './api/console/set-up.ts'
import { openDemo } from './api/demo/access.ts'
import { type Advice, serveBareHealth, serveHealth } from './api/health.ts'
import { drainAll, openListeners } from './api/listeners.ts'
import { startApi } from './api/role.ts'
import { openStatic } from './api/static.ts'
import type { Config } from './config.ts'
import { bootstrap, DEFAULT_WORKSPACE, patientBootstrap, prepareDeployment } from './control/bootstrap.ts'
import { mendSecrets } from './control/mend-secrets.ts'
import { startControl } from './control/role.ts'
import { openOutgoing } from './dispatcher/outgoing.ts'
import { startDispatcher } from './dispatcher/role.ts'
import { makeObjectId } from './domain/ids.ts'
import { driverOf, driverText } from './http/server.ts'
import { type Capacity, watchCapacity } from './ingress/capacity.ts'
import { observeUsage } from './ingress/observe-usage.ts'
import type { IpData } from './ipintel/addresses.ts'
import { startJobs } from './jobs/role.ts'
import { systemClock as clock } from './lib/clock.ts'
import { Unavailable } from './lib/failures.ts'
import { type Lifetime, settleWithin } from './lib/lifetime.ts'
import type { Logger } from './lib/logger.ts'
import type { Metrics } from './lib/metrics.ts'
import { must } from './lib/must.ts'
import { openRandom } from './lib/random.ts'
import { runGroup } from './lib/run-group.ts'
import { insisting, type Ports, serveCommandsOf } from './ports.ts'
import { processHealth, tellStarted } from './process-health.ts'
import { openEventReads } from './reads/events.ts'
import { watchHistory } from './reads/history-watch.ts'
import { openPaced } from './reads/paced.ts'
import { openAuth } from './records/auth.ts'
import { INGRESS_GROUP } from './records/event-locator.ts'
import { type KeyDirectory, openKeyDirectory } from './records/key-directory.ts'
import { runLeases } from './records/leases.ts'
import { DISPATCHER_POSITION, ENGINE_POSITION, SINK_POSITION } from './records/partitions.ts'
import { openSecrets, SecretsLost } from './records/secrets.ts'
import {
  consolePlace,
  consoleUrl,
  eventsDaysOf,
  httpSettings,
  ipSettings,
  jobSettings,
  keySeeds,
  masterKeyFile,
  outgoingSettings,
  serviceUrl,
  webhookIps,
} from './role-settings.ts'
import { openFreshReads } from './shards/fresh-reads.ts'
import { openIpData } from './shards/ip-data.ts'
import { makeCells, makeCounts } from './shards/memory.ts'
import { openShards, type Shards } from './shards/shards.ts'
import { openSinks, type Sinks } from './sink/role.ts'

const SETTLE_MS = 4_000

const NO_IP_DATA: IpData = { images: [], relayIsVpn: false }

export interface BuildInfo {
  readonly version: string
  readonly commit: string
}

export interface App {
  readonly port: number
  /** Keys made by this start, to be shown once. */
  readonly generatedKeys: Awaited<ReturnType<typeof bootstrap>>['generated']
  /** To be called when they were: until then the next start makes others in their place. */
  shown(): Promise<void>
  /** null: somebody has set the console up, or this process does not serve it. */
  readonly setupLink: string | null
  /** Opens the demo page once; null where this process has none. */
  readonly demoLink: string | null
  /** What could be better than it is. */
  readonly advice: readonly Advice[]
  /** Stops accepting, answers what was accepted, writes the last checkpoints, and lets go of everything. */
  stop(): Promise<void>
}

const random = openRandom()

/** What it returns stops the process again; where it throws, whoever made `lifetime` ends that. */
export async function startRoles(
  config: Config,
  build: BuildInfo,
  logger: Logger,
  lifetime: Lifetime,
  ports: Ports,
  metrics: Metrics,
  acceptLost: boolean,
): Promise<App> {
  const { kv, bus, limits, clickhouse, partitions, deployment } = ports
  const { roles, isCluster } = config
  const processId = makeObjectId('prc', random)
  const driver = driverOf(config['http.driver'])
  const shared = { kv, bus, limits, clock, random, logger, metrics }
  const report = (what: string) => (error: unknown) => logger.error({ error }, what)
  const cells = makeCells(config.shards, config.shardsMin, partitions)
  const counts = makeCounts()
  logger.info({ driver }, driverText(config['http.driver']))
  logger.info({ roles: [...roles], partitions, ...ports.durability }, 'what an acknowledgement means here')
  const sources = [ENGINE_POSITION, SINK_POSITION, DISPATCHER_POSITION]
  const insist = insisting(isCluster, logger, lifetime.waiting)
  await insist(() => prepareDeployment({ log: ports.log, kv, partitions, sources }))

  /** Works on each name: all of them when alone, else this process's share among those of its group. */
  function own(group: string, names: readonly string[], hold: (name: string, signal: AbortSignal) => Promise<void>) {
    const report = (error: unknown) => logger.warn({ error, group }, 'a lease is in trouble')
    const leases = { kv, bus, clock, group, member: processId, names, hold, report }
    if (isCluster) lifetime.run(group, runLeases(leases, lifetime.stopping))
    else for (const name of names) lifetime.run(`${group} ${name}`, hold(name, lifetime.stopping))
  }

  let draining = false
  let capacity: Capacity | null = null
  let originals: ReturnType<typeof openEventReads> | null = null

  function startShards(): Shards {
    const reads = () => {
      if (originals === null) throw new Unavailable('the process is starting')
      return originals
    }
    const started = openShards({
      ...shared,
      config,
      deployment,
      partitions,
      log: ports.log,
      processId,
      cells,
      counts,
      sealsSecrets: sealer !== null,
      ipData: () => ip?.current() ?? NO_IP_DATA,
      refusal: () => capacity?.refusal() ?? null,
      serve: passedOn.serve,
      calls: {
        findEvent: (workspace, env, requestId) => reads().byId(workspace, env, requestId),
        fateOf: (workspace, env, requestId) => reads().fateOf(workspace, env, requestId),
      },
    })
    lifetime.onClose(() => started.close())
    return started
  }

  const { perHost, ...httpRest } = httpSettings(config)
  const { listen, dispatch } = openListeners({
    ...shared,
    ...httpRest,
    inFlightCounts: counts.inFlight,
    perHost: { ...perHost, counts: counts.hosts },
  })
  const keyFile = masterKeyFile(config)
  const makes = roles.has('api') || roles.has('dispatcher')
  const needsSecrets = makes || roles.has('engine') || roles.has('ingress')
  const secrets = needsSecrets ? await insist(() => openSecrets({ kv, random, makes, keyFile, acceptLost })) : null
  if (secrets instanceof SecretsLost) {
    const serve = openClosed(secrets, { logger, metrics, roles, version: build.version })
    const { 'http.host': host, 'http.port': wanted, 'http.adminHost': adminHost, 'http.adminPort': adminPort } = config
    const closed = await listenClosed({ host, port: wanted, adminHost, adminPort }, { listen, serve, lifetime })
    const nothing = { generatedKeys: [], shown: async () => {}, setupLink: null, demoLink: null, advice: [] }
    return { port: closed.port, ...nothing, stop: () => lifetime.end() }
  }
  const sealer = secrets?.sealer ?? null

  const partitionNames = Array.from({ length: partitions }, (_, partition) => String(partition))
  const listensInShards = roles.has('ingress')
  const passedOn = dispatch()
  const ip = roles.has('engine')
    ? await openIpData({ settings: { ...ipSettings(config), clock }, logger, metrics, lifetime })
    : null
  const shards = roles.has('engine') || roles.has('ingress') ? startShards() : null
  const log = shards?.log ?? ports.log
  const needs = { ...shared, log, lifetime }
  const control = roles.has('api')
    ? startControl({ ...needs, own: (run) => own('control', ['changes'], (_, signal) => run(signal)) })
    : null
  const out = { ...needs, version: build.version, settings: outgoingSettings(config) }
  const outgoing = makes && sealer !== null ? openOutgoing({ ...out, sealer }) : null
  const boot = isCluster ? patientBootstrap(logger, lifetime.waiting) : bootstrap
  const booted =
    control === null
      ? null
      : await insist(() => boot({ kv, random, sealer, seeds: keySeeds(config), submit: control.submit }))
  if (control !== null && secrets !== null) {
    const mending = { ...needs, submit: control.submit, sealsOld: !isCluster }
    await insist(() => mendSecrets(mending, secrets))
    await insist(() => setUpFromFile(config['console.setupFile'], { kv, submit: control.submit, random }))
    metrics.unreadableSecrets.set(secrets.unreadable.webhooks.length)
  }

  let sinks: Sinks | null = null
  if (shards !== null && roles.has('engine')) {
    sinks = openSinks({
      ...needs,
      clickhouse,
      deployment,
      partitions,
      flushMsMax: config['sink.flushMs'],
      batchRowsMax: config['sink.rowsMax'],
      onSunk: shards.sunk,
    })
    // The sink forgets for the engine what ClickHouse has, so they hold a partition together.
    const works = [shards.run, sinks.hold]
    own('engine', partitionNames, (name, signal) =>
      runGroup(
        signal,
        works.map((work) => (ending) => work(Number(name), ending)),
      ),
    )
  }
  const jobs = { ...needs, clickhouse, partitions, ...jobSettings(config) }
  if (roles.has('jobs')) startJobs({ ...jobs, own: (names, hold) => own('jobs', names, hold) })

  let backlog: ReturnType<typeof startDispatcher> | null = null
  if (roles.has('dispatcher') && outgoing !== null) {
    backlog = startDispatcher({
      ...needs,
      ...outgoing,
      partitions,
      inFlightMax: config['webhooks.inFlightMax'],
      backlogMax: config['webhooks.backlogMax'],
      own: (names, hold) => own('dispatcher', names, hold),
    })
  }

  const serves = roles.has('api') || roles.has('ingress')
  const directory = serves
    ? await insist(() => openKeyDirectory({ kv, log, bus, clock, sealer, report: report('loading keys failed') }))
    : null
  if (directory !== null) lifetime.onClose(() => directory.close())
  const auth = directory === null ? null : openAuth(directory, clock)
  const watched = await watchCapacity({
    ...needs,
    dir: ports.dataDir,
    freeBytesMin: config.freeBytesMin,
    kvBytesMax: config['kv.bytesMax'],
    onUsage: observeUsage(metrics, config),
    onNearlyFull: (bytes) => logger.warn({ bytes }, 'the state is nearly as large as kv.bytesMax allows'),
  })
  capacity = watched
  lifetime.onClose(() => watched.stop())

  const { sight, isFresh, freshKv } = openFreshReads({ ...needs, shards, processId, isCluster, partitions })
  if (isCluster && roles.has('ingress')) own(INGRESS_GROUP, [], async () => undefined)

  async function reloadKeys(directory: KeyDirectory): Promise<void> {
    await Promise.all([directory.reload(), listensInShards ? shards?.reloadKeys() : null])
  }

  const ownHttp = listensInShards ? null : await listen(config['http.host'], config['http.port'])
  const http = ownHttp ?? passedOn
  // From here on in one turn of the event loop: no request may meet a server without its routes.
  const retentionDays = (workspace: string) => eventsDaysOf(config, directory?.workspace(workspace)?.settings)
  const reading = { log, kv: freshKv, sight, partitions, clock, retentionDays, isAlone: !isCluster }
  const events = openEventReads({ ...reading, clickhouse })
  originals = openEventReads({ ...reading, clickhouse: openPaced(clickhouse, clock) })
  const files = openStatic(fileURLToPath(new URL('../sdk', import.meta.url)))
  if (roles.has('ingress')) files.serve(http).catch(report('compressing files failed'))
  let port = 0
  let serveOperator: ReturnType<typeof startApi> = () => {}
  const url = () => serviceUrl(config, port)
  const demo = isCluster ? null : openDemo({ clock, random, workspace: DEFAULT_WORKSPACE, serviceUrl: url })
  if (auth !== null && directory !== null && control !== null && outgoing !== null) {
    serveOperator = startApi({
      ...needs,
      ...{ http, auth, events, sight, isFresh, clickhouse, retentionDays, partitions, build, driver, demo, config },
      sdk: files.sdk,
      docsDir: fileURLToPath(new URL('../docs', import.meta.url)),
      consoleDir: fileURLToPath(new URL('../console', import.meta.url)),
      kv: freshKv,
      outgoing: { ...outgoing, ips: webhookIps(config) },
      directory: { ...directory, reload: () => reloadKeys(directory) },
      submit: control.submit,
      console: consolePlace(config, () => port),
    })
  }
  const history = watchHistory(clickhouse, clock, (answers) => metrics.clickhouseUp.set(answers ? 1 : 0))
  lifetime.onClose(() => history.stop())
  const has = { directory, shards, sinks, backlog, ip }
  const life = { ports, metrics, lifetime, capacity: watched, history, isDraining: () => draining }
  const health = processHealth({ config, version: build.version, driver, ...life, ...has })
  const { 'http.adminHost': adminHost, 'http.adminPort': adminPort } = config
  if (adminPort !== 0) serveBareHealth(http, health)
  const adminHttp = adminPort === 0 ? null : await listen(adminHost, adminPort)
  const inside = adminHttp ?? http
  serveOperator(inside)
  serveHealth(inside, health)
  // Its engine takes longest to start, above all while a predecessor that was killed still holds its folder, and neither
  // accepting nor deciding needs it: it comes last.
  lifetime.run('clickhouse', ports.startHistory(lifetime.stopping))
  port = ownHttp?.port ?? (await must(shards, 'shards').listen(config['http.host'], config['http.port']))
  await serveCommandsOf(ports, build.version, demo, lifetime)
  tellStarted({ config, build, driver, partitions, kv, logger, lifetime })

  return {
    port,
    generatedKeys: booted?.generated ?? [],
    shown: async () => booted?.finish(),
    setupLink: control === null || sealer === null ? null : await openSetupLink(kv, sealer, consoleUrl(config, port)),
    demoLink: demo?.newLink() ?? null,
    advice: ipAdvice(ip?.state() ?? null),
    async stop() {
      draining = true
      const answering = [shards, passedOn, ownHttp, adminHttp].filter((one) => one !== null)
      await drainAll(answering, clock.sleep(config['http.lingerMs']), () =>
        shards?.refuse('The server is shutting down.'),
      )
      ownHttp?.close()
      adminHttp?.close()
      passedOn.close()
      // Last checkpoints are written while the ports are still open. An insert that hangs is one the successor repeats: mark and
      // token make that safe.
      await settleWithin(SETTLE_MS, { lifetime, clock, hurry: () => clickhouse.close() })
      await lifetime.close()
    },
  }
}
