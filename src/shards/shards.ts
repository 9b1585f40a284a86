// The process's side of its shards: starts a thread for each, tells them what they need, ends one that hangs and starts it anew.

import { MessageChannel } from 'node:worker_threads'
import type { Bus } from '../bus/bus.ts'
import type { Config } from '../config.ts'
import type { Serve } from '../http/dispatch.ts'
import { takePort } from '../http/find-port.ts'
import { driverOf } from '../http/server.ts'
import type { IpData } from '../ipintel/addresses.ts'
import type { Kv } from '../kv/kv.ts'
import { type Clock, onEveryBeat } from '../lib/clock.ts'
import { takeOut } from '../lib/counts.ts'
import { Unavailable } from '../lib/failures.ts'
import type { Line } from '../lib/line.ts'
import type { Logger } from '../lib/logger.ts'
import type { Metrics } from '../lib/metrics.ts'
import type { Samples } from '../lib/prometheus.ts'
import type { Limits } from '../limits/limits.ts'
import { headsIn, ownTopics } from '../log/front-writer.ts'
import type { Log } from '../log/log.ts'
import { type Glimpse, together } from '../records/event-locator.ts'
import { createAssignment } from './assignment.ts'
import { openFigures } from './figures.ts'
import { listenersAtStart, listening } from './listening.ts'
import { joinAllCounts } from './memory.ts'
import type { Peer } from './peers.ts'
import { CASTS, type Cells, type ProcessCalls, type ShardCalls, type ShardStatus, type Shared } from './protocol.ts'
import { createSpreading, openIdleCores } from './spreading.ts'
import { standingOf } from './standing.ts'
import { createSuspects } from './suspects.ts'
import { startThread, type Thread } from './thread.ts'
import { createWatchdog } from './watchdog.ts'

export interface ShardsNeeds {
  readonly config: Config
  readonly deployment: string
  readonly partitions: number
  readonly log: Log
  readonly kv: Kv
  readonly bus: Bus
  readonly limits: Limits
  readonly clock: Clock
  readonly logger: Logger
  readonly metrics: Pick<Metrics, 'shardRestarts'>
  readonly processId: string
  readonly sealsSecrets: boolean
  /** The object is another one when the data has changed. */
  readonly ipData: () => IpData
  /** Why nothing can be accepted now, or null. */
  readonly refusal: () => string | null
  readonly cells: Cells
  /** With the process's own share. */
  readonly counts: Shared
  /** What the process answers. */
  readonly serve: Serve
  readonly calls: ProcessCalls
}

export interface Shards {
  /** As `Freshness` has it, whichever shard owns the partition. */
  freshen(partition: number): Promise<boolean>
  /** The log whose appends to partitions of shards go through them. */
  readonly log: Log
  /** Resolves with the port when every shard listens. Fails with PortBusy. */
  listen(host: string, port: number): Promise<number>
  stopListening(): void
  drain(deadlineMs: number): Promise<void>
  /** Owns a partition until `signal` aborts, whatever becomes of threads. */
  run(partition: number, signal: AbortSignal): Promise<void>
  sunk(partition: number, seq: number): void
  glimpse(scope: string, requestId: string): Promise<Glimpse>
  samples(): Promise<Samples[]>
  /** Resolves when every shard has read all keys again. */
  reloadKeys(): Promise<void>
  status(): readonly ShardStatus[]
  /** Why partitions that are held cannot be decided, or null. */
  problem(): string | null
  /** Nothing is accepted any more. */
  refuse(reason: string): void
  close(): Promise<void>
}

interface Shard {
  readonly index: number
  /** This thread's share of what all count. */
  readonly counts: Shared
  /** Resolves when the thread serves; another promise after it was lost. */
  ready: Promise<Line>
  thread: Thread | null
  status: ShardStatus
  listens: readonly [host: string, port: number, itself: boolean] | null
}

const CHECK_MS = 1_000
const RESTART_MS = 200
const NO_STATUS: ShardStatus = { problem: null, caughtUp: [], recent: 0, pending: 0, busy: 0, proxy: null }

export function openShards(needs: ShardsNeeds): Shards {
  const { config, partitions, log, kv, clock, logger, cells, counts } = needs
  const count = config.shards
  const isEmbedded = !config.isCluster
  const missedMax = config['engine.stepMsMax'] / CHECK_MS
  const checkThreads = createWatchdog({ beats: cells.beat, missedMax, logger })
  const suspects = createSuspects(cells.deciding)
  let ipData = needs.ipData()
  let refusal = needs.refusal()
  let isRefusing = false
  /** Whether several threads can listen on the port. */
  let isShared = false
  let isEnding = false
  const closing = new AbortController()

  const shards = Array.from(
    { length: count },
    (_, index): Shard => ({
      index,
      counts: joinAllCounts(counts),
      ready: Promise.reject(new Unavailable('not started')),
      thread: null,
      status: NO_STATUS,
      listens: null,
    }),
  )
  const lineOf = (index: number): Promise<Line> => (shards[index] as Shard).ready
  const assignment = createAssignment({
    owner: cells.owner,
    lineOf,
    headsOf: isEmbedded ? (partition) => headsIn(log, ownTopics(partition)) : null,
    clock,
    closing: closing.signal,
  })

  /** A line of the new shard to each other one that there is; those that come later make theirs. */
  function meetOthers(index: number): Peer[] {
    return shards.flatMap(({ index: other, thread }) => {
      if (other === index || thread === null || thread.isGone()) return []
      const { port1, port2 } = new MessageChannel()
      thread.line.cast(CASTS.peer, { index, port: port1 } satisfies Peer, [port1])
      return [{ index: other, port: port2 }]
    })
  }

  async function start(shard: Shard): Promise<Line> {
    const { index } = shard
    // The next one begins where the log stands when nothing of the former is being written any more.
    await shard.thread?.settled()
    const own = () => assignment.ownedBy(index).flatMap(ownTopics)
    const thread = startThread(
      {
        ...needs,
        stores: isEmbedded ? { log: routed, kv, own } : null,
        heapMbMax: config['engine.heapMbMax'],
        onStatus: (status) => void Object.assign(shard, { status }),
        onError: (error) => logger.error({ error, shard: index }, 'a message of a shard failed'),
      },
      {
        index,
        config,
        deployment: needs.deployment,
        partitions,
        ipData,
        refusal,
        cells,
        counts: shard.counts,
        processId: needs.processId,
        sealsSecrets: needs.sealsSecrets,
        givenUp: suspects.givenUp(),
      },
      meetOthers(index),
    )
    Object.assign(shard, { thread, status: NO_STATUS })
    void thread.lost.then((error) => {
      if (!closing.signal.aborted) lose(shard, thread, error)
    })
    return thread.ready
  }

  async function restart(shard: Shard): Promise<Line> {
    await clock.sleep(RESTART_MS)
    const line = await start(shard)
    const { thread } = shard
    while (shard.listens !== null && shard.thread === thread && !closing.signal.aborted) {
      try {
        await line.call('listen', ...shard.listens)
        break
      } catch (error) {
        // Its partitions wait for it, so it is tried until it listens or is lost again.
        logger.warn({ error, shard: shard.index }, 'a shard cannot listen yet')
        await clock.sleep(RESTART_MS, closing.signal)
      }
    }
    return line
  }

  function begin(shard: Shard, starting: Promise<Line>): void {
    shard.ready = starting
    starting.catch(() => undefined)
  }

  function lose(shard: Shard, thread: Thread, error: unknown): void {
    suspects.lost(assignment.ownedBy(shard.index))
    figures.lost(shard.index)
    for (const one of Object.values(shard.counts)) takeOut(one)
    logger.error({ error, shard: shard.index }, 'a shard was lost and is started again')
    shard.status = NO_STATUS
    void thread.end().catch(() => undefined)
    begin(shard, restart(shard))
  }

  function tellRefusal(reason: string | null): void {
    if (reason === refusal) return
    refusal = reason
    for (const { thread } of shards) thread?.line.cast(CASTS.refusal, reason)
  }

  function passIpData(): void {
    const fresh = needs.ipData()
    if (fresh === ipData) return
    ipData = fresh
    for (const { thread } of shards) thread?.line.cast(CASTS.ipData, fresh)
  }

  const spread = createSpreading({
    owner: cells.owner,
    shards: count,
    loadOf: (index) => (shards[index] as Shard).status,
    idleCores: openIdleCores(clock),
    async join(index) {
      const shard = shards[index] as Shard
      if (config.roles.has('engine')) await (await shard.ready).call('prepare' satisfies keyof ShardCalls)
      if (isEnding || shard.listens === null || shard.listens[2]) return
      const [host, port] = shard.listens
      shard.listens = [host, port, isShared]
      await listening(shard, () => closing.signal.aborted, clock)
    },
    move: assignment.move,
    onSpread: (shards) => logger.info({ shards }, 'more shards decide now'),
  })

  const endChecking = onEveryBeat(clock, CHECK_MS, () => {
    checkThreads(shards.map(({ thread }) => thread))
    passIpData()
    // A process that takes no new connections does not begin to on another thread.
    if (!isEnding) spread().catch((error) => logger.error({ error }, 'work did not spread'))
    if (!isRefusing) tellRefusal(needs.refusal())
  })

  /** Waits for the shard of a partition, and calls it. */
  async function callOwner(partition: number, name: string, ...args: unknown[]): Promise<unknown> {
    return (await lineOf(await assignment.of(partition))).call(name, ...args)
  }

  const routed: Log = {
    ...log,
    append(topic, partition, records, opts) {
      if (!isEmbedded || topic !== 'identifications') return log.append(topic, partition, records, opts)
      return callOwner(partition, 'append', partition, records) as Promise<number>
    },
  }

  const each = <T>(name: keyof ShardCalls, ...args: unknown[]): Promise<T[]> =>
    Promise.all(shards.map(async ({ ready }) => (await ready).call(name, ...args) as Promise<T>))

  const status = () => shards.map((shard) => shard.status)
  const standing = standingOf({ status, held: cells.held, assignment, isAlone: isEmbedded })
  const figures = openFigures({
    ...{ count, clock, restarts: needs.metrics.shardRestarts },
    ask: async (index) => (await lineOf(index)).call('samples') as Promise<Samples>,
  })
  for (const shard of shards) {
    shard.ready.catch(() => undefined)
    begin(shard, start(shard))
  }

  return {
    log: routed,
    freshen: async (partition) =>
      cells.held[partition] === 1 && (await callOwner(partition, 'freshen', partition)) === true,
    async listen(host, wanted) {
      // What was not known when they were started they know before they accept anything.
      if (!isRefusing) tellRefusal(needs.refusal())
      return takePort(driverOf(config['http.driver']), host, wanted, (found) => {
        isShared = found.isShared
        const listeners = isShared ? listenersAtStart(config) : [0]
        for (const shard of shards) shard.listens = [host, found.port, listeners.includes(shard.index)]
        return Promise.all(shards.map((shard) => listening(shard, () => closing.signal.aborted, clock)))
      })
    },
    stopListening() {
      isEnding = true
      each('stopListening').catch(() => undefined)
    },
    async drain(deadlineMs) {
      await each('drain', deadlineMs).catch(() => undefined)
    },
    async run(partition, signal) {
      cells.held[partition] = 1
      try {
        await assignment.hold(partition, signal)
      } finally {
        cells.held[partition] = 0
      }
    },
    sunk: (partition, seq) => shards[cells.owner[partition] as number]?.thread?.line.cast(CASTS.sunk, [partition, seq]),
    async glimpse(scope, requestId) {
      await standing.settled()
      return together(await each<Glimpse>('glimpse', scope, requestId))
    },
    samples: figures.samples,
    async reloadKeys() {
      await each('reloadKeys')
    },
    status,
    problem: standing.problem,
    refuse(reason) {
      isRefusing = true
      tellRefusal(reason)
    },
    async close() {
      closing.abort()
      endChecking()
      // One that is lost at this moment must not end the others before they have stopped.
      await Promise.allSettled(shards.map(async ({ ready }) => (await ready).call('stop' satisfies keyof ShardCalls)))
      await Promise.all(shards.map(({ thread }) => thread?.end()))
    },
  }
}
