// Opens the ports, starts the roles and stops them in reverse. The only file that sees every folder.

import { randomFillSync } from 'node:crypto'
import { adminRoutes } from './api/admin.ts'
import { registerRoutes } from './api/api.ts'
import { eventRoutes } from './api/events.ts'
import { serveHealth } from './api/health.ts'
import { metaRoutes } from './api/meta.ts'
import { openOperator } from './api/operator.ts'
import { callHeaders, openPresent } from './api/present.ts'
import { ruleRoutes } from './api/rules.ts'
import { serveStatic } from './api/static.ts'
import { visitorRoutes } from './api/visitors.ts'
import { openBus } from './bus/open.ts'
import { migrate } from './clickhouse/migrate.ts'
import { DATABASE, openClickHouse } from './clickhouse/open.ts'
import type { Config } from './config.ts'
import { bootstrap, prepareDeployment, type Seed } from './control/bootstrap.ts'
import { runControl } from './control/owner.ts'
import { openPropagation } from './control/propagation.ts'
import { openSubmit } from './control/submit.ts'
import { makeObjectId, type RandomBytes } from './domain/ids.ts'
import { runPartition } from './engine/engine.ts'
import { createRecent } from './engine/recent.ts'
import { openRulesets } from './engine/rulesets.ts'
import { openWorkers } from './engine/workers.ts'
import { isNative, openHttp } from './http/server.ts'
import { openParsers } from './identity/parsers.ts'
import { watchCapacity } from './ingress/capacity.ts'
import { startIngress } from './ingress/ingress.ts'
import { clientAddress } from './ingress/client-address.ts'
import { runTrim } from './jobs/trim.ts'
import { openKv } from './kv/open.ts'
import { type Clock, systemClock } from './lib/clock.ts'
import { claimDataFolder } from './lib/data-folder.ts'
import type { Logger } from './lib/logger.ts'
import { openMetrics } from './lib/metrics.ts'
import { openLog } from './log/open.ts'
import { openAuth } from './records/auth.ts'
import { openKeyDirectory } from './records/key-directory.ts'
import { ENGINE_POSITION, SINK_POSITION } from './records/partitions.ts'
import { replySubject } from './records/replies.ts'
import { openEventReads } from './reads/events.ts'
import { readRuleStats } from './reads/rule-stats.ts'
import { openVisitorReads } from './reads/visitors.ts'
import { runSink } from './sink/sink.ts'

/** The newest layout of the data folder this build reads, and the one it writes. */
const DATA_FORMAT = 1
const DRAIN_MS = 15_000
const TRIM_EVERY_MS = 5_000
const BODY_MS = 12_000

export interface Build {
  readonly version: string
  readonly commit: string
}

export interface App {
  readonly port: number
  /** Keys made by this start, to be shown once. */
  readonly generatedKeys: readonly { readonly kind: 'public' | 'secret'; readonly env: 'live' | 'test'; readonly text: string }[]
  /** Stops accepting, answers what was accepted, writes the last checkpoints, and lets go of everything. */
  stop(): Promise<void>
}

const random: RandomBytes = (n) => randomFillSync(new Uint8Array(n))

export async function startApp(config: Config, build: Build, log: Logger): Promise<App> {
  const clock: Clock = systemClock
  // Whatever was opened is closed in reverse, whether the start fails or the app stops.
  const closers: (() => Promise<void> | void)[] = []
  const onClose = (close: () => Promise<void> | void) => closers.push(close)
  async function closeAll(): Promise<void> {
    for (const close of closers.splice(0).reverse()) {
      try {
        await close()
      } catch (error) {
        log.error({ error }, 'closing failed')
      }
    }
  }

  try {
    return await start()
  } catch (error) {
    await closeAll()
    throw error
  }

  async function start(): Promise<App> {
    const dataDir = config['data.dir']
    const folder = await claimDataFolder(dataDir, {
      format: DATA_FORMAT,
      partitions: config['data.partitions'],
      clock,
      random: Math.random,
    })
    onClose(() => folder.release())
    const { partitions } = folder
    const everyPartition = Array.from({ length: partitions }, (_, partition) => partition)
    const metrics = openMetrics({ version: build.version, ingress: isNative() ? 'native' : 'fallback' })
    if (!isNative()) log.warn({}, 'the native HTTP server does not run on this Node.js: serving with the slow substitute')

    const durability = config['log.durability'] === 'relaxed' ? 'relaxed' : 'fsync'
    const bus = await openBus({ backend: 'local', onError: (error) => log.error({ error }, 'a receiver of the bus failed') })
    onClose(() => bus.close())
    const durable = await openLog({
      backend: 'lmdb',
      dataDir,
      partitions,
      clock,
      durability,
      bytesMax: config['log.bytesMax'],
    })
    onClose(() => durable.close())
    const kv = await openKv({
      backend: 'lmdb',
      dataDir,
      clock,
      durability,
      onError: (error) => log.error({ error }, 'sweeping the kv failed'),
    })
    onClose(() => kv.close())
    const clickhouse = await openClickHouse({ mode: 'embedded', dataDir: `${dataDir}/clickhouse` }, { clock, log })
    onClose(() => clickhouse.close())
    await migrate(clickhouse, { database: DATABASE, retentionDays: config['retention.eventsDays'], clock })

    const stopping = new AbortController()
    const running: Promise<unknown>[] = []
    /** Runs until `stopping`; a failure is the end of the process's usefulness, so it is said loudly and fails readiness. */
    const failures = new Map<string, string>()
    function run(name: string, work: Promise<unknown>): void {
      running.push(
        work.catch((error) => {
          failures.set(name, String(error))
          log.error({ error }, `${name} stopped`)
        }),
      )
    }
    onClose(async () => {
      stopping.abort()
      await Promise.all(running)
    })

    await prepareDeployment({ log: durable, kv, partitions, sources: [ENGINE_POSITION, SINK_POSITION] })
    run(
      'control',
      runControl({
        log: durable,
        kv,
        bus,
        clock,
        signal: stopping.signal,
        report: (fact) => {
          if (fact.kind === 'dead') log.warn(fact, 'a command could not be applied')
          if (fact.kind === 'stalled') log.warn({ error: fact.error }, 'the control plane waits for a port')
        },
      }),
    )
    const submitter = openSubmit({ log: durable, kv, bus, clock, random })
    onClose(() => submitter.close())
    const booted = await bootstrap({ kv, submit: submitter.submit, random, seeds: seedsOf(config) })

    const directory = await openKeyDirectory({
      kv,
      log: durable,
      bus,
      clock,
      report: (error) => log.error({ error }, 'loading keys failed'),
    })
    onClose(() => directory.close())
    const auth = openAuth(directory, clock)

    const evaluator = makeObjectId('eng', random)
    const rulesets = await openRulesets({
      kv,
      bus,
      clock,
      evaluator,
      report: {
        swapped: () => metrics.rulesetSwaps.inc(),
        failed: (error) => log.warn({ error }, 'loading a ruleset failed'),
      },
    })
    onClose(() => rulesets.stop())
    const workers = openWorkers(
      {
        threads: config['engine.threads'],
        partitions,
        visitorsMax: config['engine.visitorsMax'],
        stepMsMax: config['engine.stepMsMax'],
        heapMbMax: config['engine.heapMbMax'],
        workerUrl: new URL('./engine/decide.worker.js', import.meta.url).href,
      },
      rulesets.current,
    )
    onClose(() => workers.close())

    const recent = createRecent(partitions, config['recent.eventsMax'])
    const ingressId = makeObjectId('ing', random)
    const deciding = new AbortController()
    const engineDone: Promise<unknown>[] = []
    const engineNeeds = {
      log: durable,
      kv,
      decider: workers.decider,
      recent,
      clock,
      reply: replyOver(bus),
      report: {
        decided(partition: number, events: number, dead: number) {
          metrics.decided.inc({ partition }, events)
          if (dead > 0) metrics.dead.inc({ partition }, dead)
        },
        lost(partition: number, error: unknown) {
          metrics.tenuresLost.inc({ partition })
          log.error({ partition, error }, 'a partition is taken over again')
        },
        ruleLogs(lines: readonly { level: 'info' | 'warn' | 'error' }[]) {
          for (const line of lines) log[line.level](line, 'rule')
        },
      },
    }
    for (const partition of everyPartition) {
      const owning = runPartition(engineNeeds, partition, deciding.signal)
      engineDone.push(owning)
      run(`engine/${partition}`, owning)
      const sinking = runSink(
        {
          log: durable,
          kv,
          clickhouse,
          clock,
          deployment: folder.createdAt,
          flushMsMax: config['sink.flushMs'],
          batchRowsMax: config['sink.rowsMax'],
          report: {
            sunk(p, seq, rows) {
              recent.forgetUpTo(p, seq)
              metrics.sunk.inc({ partition: p }, rows)
            },
            quarantined(p, reason) {
              metrics.quarantined.inc({ partition: p })
              log.error({ partition: p, reason }, 'ClickHouse refused a row: it is in quarantine')
            },
            failed(p, error) {
              metrics.sinkFailures.inc({ partition: p })
              log.warn({ partition: p, error }, 'the sink waits')
            },
          },
        },
        partition,
        stopping.signal,
      )
      run(`sink/${partition}`, sinking)
    }
    onClose(async () => {
      // Last checkpoints are written before the ports close.
      deciding.abort()
      await Promise.allSettled(engineDone)
    })
    const keepMs = config['log.keepSeconds'] * 1_000
    run(
      'trim',
      runTrim(
        { log: durable, kv, clock, partitions, keepMs, everyMs: TRIM_EVERY_MS, onError: (error) => log.error({ error }, 'trimming failed') },
        stopping.signal,
      ),
    )

    const capacity = await watchCapacity({
      log: durable,
      clock,
      dir: dataDir,
      freeBytesMin: config['data.freeBytesMin'],
      onUsage: (bytes) => metrics.logBytes.set(bytes),
    })
    onClose(() => capacity.stop())
    const propagation = openPropagation({ kv, bus, clock })
    onClose(() => propagation.close())

    const present = openPresent((error) => log.error({ error }, 'a request failed'))
    const tls = config['tls.certFile'] === '' ? {} : { tls: { certFile: config['tls.certFile'], keyFile: config['tls.keyFile'] } }
    const http = await openHttp({
      host: config['http.host'],
      port: config['http.port'],
      ...tls,
      inFlightMax: config['http.inFlightMax'],
      clock,
      log,
      present,
      observe(route, method, status, durationMs) {
        metrics.httpRequests.inc({ route, method, code: status })
        metrics.httpSeconds.observe({ route }, durationMs / 1_000)
      },
      responseHeaders: callHeaders(clock, random),
    })
    // From here on in one turn of the event loop: no request may meet a server without its routes.
    let draining = false
    const visitors = openVisitorReads(kv, partitions)
    const events = openEventReads({
      clickhouse,
      log: durable,
      findRecent: recent.find,
      recentComplete: recent.complete,
      isPending: (requestId) => ingress.isPending(requestId),
    })
    const ingress = startIngress({
      http,
      auth,
      bus,
      log: durable,
      clock,
      random,
      parsers: openParsers(),
      partitions,
      ingressId,
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
    const operatorToken = config['operator.token']
    registerRoutes(
      http,
      [
        ...eventRoutes({ events, visitors }),
        ...visitorRoutes({ visitors }),
        ...ruleRoutes({
          kv,
          submit: submitter.submit,
          awaitPropagation: propagation.awaitPropagation,
          clock,
          random,
          ruleStats: (workspace, env, ruleId) => readRuleStats(kv, partitions, workspace, env, ruleId),
        }),
        ...metaRoutes({ version: build.version, commit: build.commit, native: http.native }),
        ...adminRoutes({ kv, submit: submitter.submit, directory, clock, random }),
      ],
      {
        auth,
        operator: operatorToken === '' ? null : openOperator({ token: operatorToken, auth, clock }),
        addressOf: (request) => clientAddress(request.remoteAddress(), '', config.trustedProxies),
      },
    )
    serveHealth(http, {
      checks: () => ({
        draining: draining ? 'the server is shutting down' : null,
        log: capacity.refusal(),
        keys: directory.isFresh() ? null : 'keys cannot be confirmed',
        engine: recent.complete() ? null : 'partitions are being taken over',
        roles: failures.size === 0 ? null : [...failures.keys()].join(', '),
      }),
      info: () => ({ durability, partitions, native: http.native, version: build.version }),
      metrics: () => {
        metrics.pending.set(ingress.pendingCount())
        metrics.recent.set(recent.size())
        return metrics.text()
      },
      metricsContentType: metrics.contentType,
    })
    serveStatic(http, new URL('../sdk', import.meta.url).pathname)
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
        await closeAll()
      },
    }
  }
}

function replyOver(bus: { publish(subject: string, message: unknown): void }) {
  type Reply = { readonly requestId: string; readonly replyTo: string; readonly body: string }
  type Replay = { readonly requestId: string; readonly replyTo: string; readonly workspace: string; readonly env: 'live' | 'test'; readonly original: string; readonly conflict: boolean }
  return (replies: readonly Reply[], replays: readonly Replay[]) => {
    const messages = new Map<string, { replies: [string, string][]; replays: Replay[] }>()
    const of = (ingressId: string) => {
      const known = messages.get(ingressId) ?? { replies: [], replays: [] }
      messages.set(ingressId, known)
      return known
    }
    for (const { requestId, replyTo, body } of replies) of(replyTo).replies.push([requestId, body])
    for (const replay of replays) of(replay.replyTo).replays.push(replay)
    for (const [ingressId, message] of messages) if (ingressId !== '') bus.publish(replySubject(ingressId), message)
  }
}

function seedsOf(config: Config): Seed[] {
  const seed = (kind: Seed['kind'], env: Seed['env'], text: string): Seed => ({ kind, env, ...(text === '' ? {} : { text }) })
  return [
    seed('public', 'live', config['keys.public']),
    seed('secret', 'live', config['keys.secret']),
    seed('public', 'test', config['keys.testPublic']),
    seed('secret', 'test', config['keys.testSecret']),
  ]
}
