// What runs in a shard: a listener of its own on the port that all share, accepting, and the engine of its partitions. What it has no
// route for goes to the process, and what it stores goes through the process or, in a cluster, to the servers themselves.

import { openListeners } from '../api/listeners.ts'
import type { Bus } from '../bus/bus.ts'
import { openLocalBus } from '../bus/local.ts'
import { openLoopbackBus } from '../bus/loopback.ts'
import { openRemoteBus } from '../bus/remote.ts'
import type { Env } from '../domain/event.ts'
import { NONCE_WINDOW_MS } from '../domain/identify.ts'
import { type EngineRole, startEngine } from '../engine/role.ts'
import type { Dispatch } from '../http/dispatch.ts'
import { openForward } from '../http/forward.ts'
import type { Listener } from '../http/port.ts'
import { openParsers } from '../identity/parsers.ts'
import { type Ingress, startIngress } from '../ingress/ingress.ts'
import { openRemoteKv, type ThreadKv } from '../kv/remote.ts'
import { systemClock as clock, onEveryBeat } from '../lib/clock.ts'
import { openBell } from '../lib/doorbell.ts'
import { openClaims } from '../lib/first-claims.ts'
import { createLifetime } from '../lib/lifetime.ts'
import { type Line, openLine } from '../lib/line.ts'
import { type Logger, openLogger } from '../lib/logger.ts'
import { measured } from '../lib/measured.ts'
import { openMetrics } from '../lib/metrics.ts'
import { untilDone } from '../lib/promised.ts'
import { openRandom } from '../lib/random.ts'
import { openSealer, readMasterKey } from '../lib/sealed.ts'
import { openSpans } from '../lib/spans.ts'
import { openTurn } from '../lib/turn.ts'
import { openUtilization } from '../lib/utilization.ts'
import type { Limits } from '../limits/limits.ts'
import { type FrontLog, openFrontLog } from '../log/front.ts'
import type { Log } from '../log/log.ts'
import { busError, insisting } from '../ports.ts'
import { openAuth } from '../records/auth.ts'
import { openKeyDirectory } from '../records/key-directory.ts'
import { replySubject } from '../records/replies.ts'
import { engineSettings, eventsDaysOf, httpSettings, masterKeyFile } from '../role-settings.ts'
import { openCoalescing } from './coalescing.ts'
import { openPeers, type Peer } from './peers.ts'
import {
  CASTS,
  ingressIdOf,
  type ProcessCalls,
  type ShardCalls,
  type ShardStart,
  type ShardStatus,
  type ShardTask,
} from './protocol.ts'
import { countVisitorReads } from './visitor-reads.ts'

const BEAT_MS = 1_000
/** What changes all the time is told so often; what readiness goes by, at once. */
const STATUS_MS = 1_000
/** Readers ask for one before. */
const CHECKPOINT_MS = 5_000
/** Time for a body to arrive, besides the time its decision may take. */
const BODY_MS = 12_000

/** Each thread counts from its own start. */
const nowOfAllThreads = (): number => performance.timeOrigin + performance.now()

interface StoragePorts {
  readonly log: Log
  readonly kv: ThreadKv
  readonly bus: Bus
  readonly limits: Pick<Limits, 'take'>
}

/** What the process has of its own, where it has embedded storage. */
const portsOver = (line: Line, log: FrontLog, logger: Logger): StoragePorts => ({
  log,
  kv: openRemoteKv(line, clock),
  bus: openRemoteBus(line, busError(logger)),
  limits: { take: (...args) => line.call('limits.take', ...args) as ReturnType<Limits['take']> },
})

/** Resolves when the shard has been stopped. */
export async function runShard({ start, port, peers }: ShardTask): Promise<void> {
  const { config, partitions, deployment, cells, counts } = start
  const ingressId = ingressIdOf(start.processId, start.index)
  const logger = openLogger(config['logging.level'])
  const lifetime = createLifetime(logger)
  const random = openRandom()
  /** In a cluster what a shard waits for comes over sockets, which ring no bell. */
  const isWaiting = () => front !== null && !beside.isBehind() && (front.isFlushing() || beside.areAnswering())
  const coalescing = openCoalescing({ bell: openBell(cells.bells, start.index), clock, isWaiting })
  const turn = openTurn(setImmediate, coalescing)
  const line = openLine(port, (error) => logger.error({ error }, 'a message of another thread failed'))
  let refusal = start.refusal
  let { ipData } = start
  // From the beginning on: what is cast while nobody hears it is lost, such as while an SDK is loaded.
  line.hear(CASTS.refusal, (reason: string | null) => {
    refusal = reason
  })
  line.hear(CASTS.ipData, (fresh: ShardStart['ipData']) => {
    ipData = fresh
  })
  const known = [...peers]
  line.hear(CASTS.peer, (peer: Peer) => void known.push(peer))
  const spans = await openSpans(config['tracing.sdk'], clock)
  const metrics = openMetrics(null, String(start.index), spans, openUtilization(coalescing.sleptMs))
  lifetime.onClose(() => spans?.close())
  const stopped = new AbortController()
  let engine: EngineRole | null = null
  let ingress: Ingress | null = null
  let http: Dispatch | null = null
  let listener: Listener | null = null
  const holds = new Map<number, AbortController>()

  const serve = <Name extends keyof ShardCalls>(name: Name, answer: ShardCalls[Name]) => line.serve(name, answer)
  const call = <Name extends keyof ProcessCalls>(name: Name, ...args: Parameters<ProcessCalls[Name]>) =>
    line.call(name, ...args) as ReturnType<ProcessCalls[Name]>

  // A thread that ends with a listener open would take the process along.
  process.on('exit', () => listener?.close())
  lifetime.onClose(onEveryBeat(clock, BEAT_MS, () => Atomics.add(cells.beat, start.index, 1)))

  const { generation, own } = start
  const front = config.isCluster ? null : openFrontLog({ line, clock, generation, own, atEndOfTurn: turn.append })
  const stores: StoragePorts =
    front === null
      ? await (await import('../ports-cluster.ts')).openCluster(config, logger, lifetime, metrics)
      : portsOver(line, front, logger)
  const near = openLocalBus({ onError: busError(logger), atEndOfTurn: turn.tell })
  const beside = openPeers({
    log: stores.log,
    bus: stores.bus,
    near,
    turn,
    onError: busError(logger),
    index: start.index,
    ingressIdOf: (one) => ingressIdOf(start.processId, one),
    count: config.shards,
    isAlone: !config.isCluster,
    held: cells.held,
    owner: cells.owner,
    bells: cells.bells,
  })
  for (const peer of known) beside.add(peer)
  line.hear(CASTS.peer, beside.add)
  lifetime.onClose(() => beside.close())
  const bus = openLoopbackBus({ far: beside.bus, near, own: replySubject(ingressId) })
  const key = start.sealsSecrets ? readMasterKey(masterKeyFile(config)) : null
  const sealer = key === null ? null : openSealer(key, random)
  const { kv, limits } = stores
  const log = measured(beside.log, ['append'], clock, {
    called(seconds) {
      metrics.logAppend.observe(seconds)
      spans?.ended('fingerpost.append', seconds * 1_000, {})
    },
  })
  const needs = { log, kv, bus, limits, clock, random, lifetime, logger, metrics, partitions, sealer }

  const utilization = openUtilization(coalescing.sleptMs)
  let busy = 0
  let told = ''
  function tellStatus(): void {
    const status: ShardStatus = {
      problem: engine?.problem() ?? null,
      caughtUp: engine?.caughtUp() ?? [],
      recent: engine?.recent.size() ?? 0,
      pending: ingress?.pendingCount() ?? 0,
      busy,
      proxy: ingress?.proxySuspicion() ?? null,
    }
    const text = JSON.stringify(status)
    if (text === told) return
    told = text
    line.cast(CASTS.status, status)
  }

  const givenUp = new Map(start.givenUp)
  /** Rules, lists and what others count cost whoever follows them, so they are loaded where something is decided. */
  const prepare = untilDone(async () => {
    engine = await startEngine({
      ...needs,
      kv: countVisitorReads(kv, metrics.visitorReads),
      ...engineSettings(config),
      deployment,
      ipData: () => ipData,
      checkpointMsMax: CHECKPOINT_MS,
      onRecord: (partition, seq) => {
        cells.deciding[partition] = seq
      },
      givenUp: (partition) => givenUp.get(partition) ?? [],
      onStanding: tellStatus,
    })
    return engine
  })

  if (config.roles.has('engine') && cells.owner.includes(start.index)) await prepare()

  serve('freshen', async (partition) => engine?.ask(partition) ?? false)
  serve('append', (partition, records) => log.append('identifications', partition, records))
  serve('prepare', async () => void (await prepare()))
  serve('hold', async (partition) => {
    const ending = new AbortController()
    holds.set(partition, ending)
    try {
      await (await prepare()).run(partition, ending.signal)
    } finally {
      holds.delete(partition)
    }
  })
  serve('giveUp', async (partition) => front?.giveUp(partition))
  serve('take', (heads) => front?.take(heads))
  line.hear(CASTS.release, (partition: number) => holds.get(partition)?.abort())
  line.hear(CASTS.sunk, ([partition, seq]: [number, number]) => engine?.recent.forgetUpTo(partition, seq))
  serve('glimpse', (scope, requestId) => ({
    place: engine?.recent.find(requestId) ?? null,
    pending: ingress?.isPending(scope, requestId) ?? false,
    original: ingress?.originalOf(scope, requestId) ?? engine?.originalOf(scope, requestId) ?? null,
    covers: engine?.recent.complete() ?? [],
  }))
  serve('samples', () => {
    metrics.oldestPending.set((ingress?.oldestMs() ?? 0) / 1_000)
    metrics.shardPartitions.set({ shard: String(start.index) }, holds.size)
    // Who decides nothing has no rules that could differ from those of others.
    if (engine !== null) metrics.rulesRevision.set({ shard: String(start.index) }, engine.rulesRevision())
    return metrics.samples()
  })

  /** Answers what is handed over, or passed to it; tells how it comes to listen. */
  const answer = untilDone(async () => {
    const report = (error: unknown) => logger.error({ error }, 'loading keys failed')
    const insist = insisting(config.isCluster, logger, lifetime.waiting)
    const directory = await insist(() => openKeyDirectory({ ...needs, report }))
    lifetime.onClose(() => directory.close())
    serve('reloadKeys', directory.reload)
    const { perHost, ...settings } = httpSettings(config)
    const { bind, dispatch, present } = openListeners({
      ...settings,
      clock,
      random,
      logger,
      metrics,
      inFlightCounts: counts.inFlight,
      perHost: { ...perHost, counts: counts.hosts },
    })
    const answering = dispatch()
    lifetime.onClose(() => answering.close())
    ingress = startIngress({
      ...needs,
      http: answering,
      present,
      otherShards: beside.others,
      auth: openAuth(directory, clock),
      parsers: openParsers(),
      config,
      ingressId,
      pendingMax: config['ingress.pendingMax'],
      pendingCounts: counts.pending,
      toldOfProxy: cells.toldOfProxy,
      nonceRoutes: openClaims(cells.nonceRoutes, NONCE_WINDOW_MS, nowOfAllThreads),
      atEndOfTurn: turn.take,
      decisionWaitMs: config['ingress.decisionWaitMs'],
      deadlineMs: config['ingress.decisionWaitMs'] + BODY_MS,
      retentionDays: (workspace) => eventsDaysOf(config, directory.workspace(workspace)?.settings),
      trustedProxies: config.trustedProxies,
      cookieDomain: config['ingress.cookieDomain'],
      refusal: () => refusal,
      findEvent: (workspace: string, env: Env, requestId: string) => call('findEvent', workspace, env, requestId),
      fateOf: (workspace: string, env: Env, requestId: string) => call('fateOf', workspace, env, requestId),
      workspace: directory.workspace,
    })
    answering.passOn(openForward(line))
    http = answering
    return (host: string, port: number) => bind(host, port, answering)
  })

  // One that took the place of another listens by itself, and may be asked to once more.
  const listen = untilDone(async (host: string, wanted: number) => {
    const bound = await (await answer())(host, wanted)
    listener = bound
    lifetime.onClose(() => bound.close())
  })
  serve('listen', async (host, wanted, listens) => {
    await answer()
    if (listens) await listen(host, wanted)
  })
  serve('stopListening', () => listener?.stopListening())
  serve('drain', async (deadlineMs) => {
    await http?.drain(deadlineMs)
  })
  serve('stop', async () => {
    ingress?.stop()
    await lifetime.end()
    stopped.abort()
  })

  const endTelling = onEveryBeat(clock, STATUS_MS, () => {
    // To the last digit it would differ at rest as well, and be told every second.
    busy = Math.round(10 * utilization()) / 10
    tellStatus()
  })
  lifetime.onClose(endTelling)

  line.cast('ready', null)
  await new Promise<void>((resolve) => stopped.signal.addEventListener('abort', () => setImmediate(resolve)))
  line.end()
}
