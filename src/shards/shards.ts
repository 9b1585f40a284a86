// The process's side of its shards: starts a thread for each, tells them what they need, ends one that hangs and starts it anew.

import { createServer } from 'node:net'
import { MessageChannel } from 'node:worker_threads'
import { Piscina } from 'piscina'
import type { Bus } from '../bus/bus.ts'
import { serveBus } from '../bus/remote.ts'
import type { Config } from '../config.ts'
import type { Serve } from '../http/dispatch.ts'
import { PortBusy } from '../http/errors.ts'
import { serveForwarded } from '../http/forwarded.ts'
import { HOST_CELLS } from '../http/hosts.ts'
import type { IpData } from '../ipintel/addresses.ts'
import type { Kv } from '../kv/kv.ts'
import { serveKv } from '../kv/remote.ts'
import type { Clock } from '../lib/clock.ts'
import { Unavailable } from '../lib/failures.ts'
import { type Line, openLine } from '../lib/line.ts'
import type { Logger } from '../lib/logger.ts'
import type { Samples } from '../lib/metrics.ts'
import type { Limits } from '../limits/limits.ts'
import type { Place } from '../log/front.ts'
import { FIRST_GENERATION, type FrontWriter, serveFrontLog } from '../log/front-writer.ts'
import type { Log } from '../log/log.ts'
import type { Glimpse } from '../records/sighting.ts'
import { openFreshKv } from './fresh-kv.ts'
import { CASTS, type Cells, type ProcessCalls, type ShardCalls, type ShardStart, type ShardStatus } from './protocol.ts'

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
  readonly processId: string
  readonly sealsSecrets: boolean
  /** The object is another one when the data has changed. */
  readonly ipData: () => IpData
  /** Why nothing can be accepted now, or null. */
  readonly refusal: () => string | null
  readonly cells: Cells
  /** What the process answers. */
  readonly serve: Serve
  readonly calls: ProcessCalls
  readonly onLost: (error: unknown) => void
}

/** Memory for `count` shards. */
export function makeCells(count: number, partitions: number): Cells {
  return {
    beat: new Int32Array(new SharedArrayBuffer(4 * count)),
    deciding: new Float64Array(new SharedArrayBuffer(8 * partitions)),
    inFlight: new Int32Array(new SharedArrayBuffer(4)),
    hosts: new Int32Array(new SharedArrayBuffer(4 * HOST_CELLS)),
  }
}

export interface Shards {
  /** The kv in which readers find what was answered before they asked. */
  readonly freshKv: Kv
  /** The log whose appends to partitions of shards go through them. */
  readonly log: Log
  /** Resolves with the port when every shard listens. Fails with PortBusy. */
  listen(host: string, port: number): Promise<number>
  stopListening(): void
  drain(deadlineMs: number): Promise<void>
  /** Owns a partition until `signal` aborts, whatever becomes of threads. */
  run(partition: number, signal: AbortSignal): Promise<void>
  sunk(partition: number, seq: number): void
  glimpse(scope: string, requestId: string): Promise<Omit<Glimpse, 'from'>>
  samples(): Promise<Samples[]>
  /** Resolves when every shard has read all keys again. */
  reloadKeys(): Promise<void>
  status(): readonly ShardStatus[]
  /** Nothing is accepted any more. */
  refuse(reason: string): void
  close(): Promise<void>
}

interface Shard {
  readonly index: number
  /** Resolves when the thread serves; another promise after it was lost. */
  ready: Promise<Line>
  line: Line | null
  writer: FrontWriter | null
  pool: Piscina | null
  status: ShardStatus
  /** Beats seen, and checks since there was a new one. */
  beats: number
  missed: number
  listens: { readonly host: string; readonly port: number } | null
}

const CHECK_MS = 500
const RESTART_MS = 200
const YOUNG_MB = 96
/** A record at which a shard was lost so often is given up on. */
const LOSSES_MAX = 2
const NO_STATUS: ShardStatus = { problem: null, caughtUp: [], recent: 0, pending: 0 }

export function openShards(needs: ShardsNeeds): Shards {
  const { config, partitions, log, kv, bus, clock, logger, cells } = needs
  const count = config.shards
  const isEmbedded = !config.isCluster
  const losses = new Map<string, number>()
  const givenUp = new Map<number, number[]>()
  let ipData = needs.ipData()
  let refusal = needs.refusal()
  let isRefusing = false
  let closed = false

  const partitionsOf = (index: number): number[] =>
    Array.from({ length: partitions }, (_, partition) => partition).filter((partition) => partition % count === index)
  const placesOf = (index: number): Pick<Place, 'topic' | 'partition'>[] =>
    isEmbedded
      ? partitionsOf(index).flatMap((partition) => [
          { topic: 'identifications', partition } as const,
          { topic: 'events', partition } as const,
        ])
      : []

  const shards: Shard[] = Array.from({ length: count }, (_, index) => {
    const shard = { index, line: null, writer: null, pool: null, status: NO_STATUS, beats: 0, missed: 0, listens: null }
    return { ...shard, ready: Promise.reject(new Unavailable('not started')) }
  })
  const shardOf = (partition: number): Shard => shards[partition % count] as Shard

  async function start(shard: Shard): Promise<Line> {
    const { index } = shard
    await shard.writer?.settled()
    const { port1, port2 } = new MessageChannel()
    const line = openLine(port1, (error) => logger.error({ error, shard: index }, 'a message of a shard failed'))
    const own = placesOf(index)
    const writer = isEmbedded ? serveFrontLog({ line, log: routed, own }) : null
    if (isEmbedded) serveKv(line, kv)
    const endBus = serveBus(line, bus)
    line.serve('limits.take', (...args: Parameters<Limits['take']>) => needs.limits.take(...args))
    line.serve('findEvent', needs.calls.findEvent)
    line.serve('fateOf', needs.calls.fateOf)
    line.hear(CASTS.status, (status: ShardStatus) => {
      shard.status = status
    })
    const endForwarded = serveForwarded(line, needs.serve)
    const isReady = new Promise<void>((resolve) => line.hear('ready', () => resolve()))
    const pool = new Piscina({
      filename: new URL('./shard.worker.js', import.meta.url).href,
      minThreads: 1,
      maxThreads: 1,
      atomics: 'disabled',
      idleTimeout: Number.POSITIVE_INFINITY,
      recordTiming: false,
      // A batch lives for a few milliseconds: in a small young generation much of it would be copied before it dies.
      resourceLimits: { maxOldGenerationSizeMb: config['engine.heapMbMax'], maxYoungGenerationSizeMb: YOUNG_MB },
    })
    Object.assign(shard, { line, writer, pool, status: NO_STATUS, missed: 0, beats: Atomics.load(cells.beat, index) })
    const started: ShardStart = {
      ...{ index, config, deployment: needs.deployment, partitions, ipData, refusal, cells },
      own: (await writer?.places()) ?? [],
      generation: FIRST_GENERATION,
      ingressId: `${needs.processId}.${index}`,
      sealsSecrets: needs.sealsSecrets,
      givenUp: [...givenUp],
    }
    const ran = pool.run({ start: started, port: port2 }, { transferList: [port2] })
    const lost = ran.then(
      () => new Unavailable('the shard ended'),
      (error) => error,
    )
    void lost.then((error) => {
      endBus()
      line.end()
      endForwarded()
      port1.close()
      if (!closed) lose(shard, error)
    })
    await Promise.race([
      isReady,
      lost.then((error) => {
        throw error
      }),
    ])
    return line
  }

  function restart(shard: Shard): void {
    shard.ready = clock.sleep(RESTART_MS).then(async () => {
      const line = await start(shard)
      if (shard.listens !== null) await line.call('listen', shard.listens.host, shard.listens.port)
      return line
    })
    shard.ready.catch(() => undefined)
  }

  function lose(shard: Shard, error: unknown): void {
    for (const partition of partitionsOf(shard.index)) {
      const seq = cells.deciding[partition] as number
      cells.deciding[partition] = 0
      if (seq === 0) continue
      const name = `${partition}/${seq}`
      losses.set(name, (losses.get(name) ?? 0) + 1)
      if ((losses.get(name) as number) >= LOSSES_MAX) givenUp.set(partition, [...(givenUp.get(partition) ?? []), seq])
    }
    needs.onLost(error)
    shard.status = NO_STATUS
    void shard.pool?.destroy().catch(() => undefined)
    restart(shard)
  }

  /** Ends threads that have not turned their loop for too long; counted in checks, so that a process that was stopped blames nobody. */
  function endHanging(): void {
    for (const shard of shards) {
      const beats = Atomics.load(cells.beat, shard.index)
      shard.missed = beats === shard.beats ? shard.missed + 1 : 0
      shard.beats = beats
      if (shard.missed * CHECK_MS < config['engine.stepMsMax'] || shard.pool === null) continue
      shard.missed = 0
      logger.error({ shard: shard.index }, 'a shard hangs and is replaced')
      void shard.pool.destroy().catch(() => undefined)
    }
  }

  function tellRefusal(reason: string | null): void {
    if (reason === refusal) return
    refusal = reason
    for (const { line } of shards) line?.cast(CASTS.refusal, reason)
  }

  function passIpData(): void {
    const fresh = needs.ipData()
    if (fresh === ipData) return
    ipData = fresh
    for (const { line } of shards) line?.cast(CASTS.ipData, fresh)
  }

  const checking = setInterval(() => {
    endHanging()
    passIpData()
    if (!isRefusing) tellRefusal(needs.refusal())
  }, CHECK_MS)

  /** Waits for the shard of a partition, and calls it. */
  async function callOwner(partition: number, name: string, ...args: unknown[]): Promise<unknown> {
    return (await shardOf(partition).ready).call(name, ...args)
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

  for (const shard of shards) {
    shard.ready.catch(() => undefined)
    shard.ready = start(shard)
    shard.ready.catch(() => undefined)
  }

  return {
    log: routed,
    freshKv: openFreshKv(kv, (partition) => callOwner(partition, 'freshen', partition)),
    async listen(host, wanted) {
      const port = await findPort(host, wanted)
      for (const shard of shards) shard.listens = { host, port }
      await each('listen', host, port)
      return port
    },
    stopListening: () => void each('stopListening').catch(() => undefined),
    async drain(deadlineMs) {
      await each('drain', deadlineMs).catch(() => undefined)
    },
    async run(partition, signal) {
      const shard = shardOf(partition)
      while (!signal.aborted) {
        const line = await shard.ready.catch(() => null)
        if (signal.aborted) return
        if (line === null) {
          await clock.sleep(RESTART_MS, signal)
          continue
        }
        const release = () => line.cast(CASTS.release, partition)
        signal.addEventListener('abort', release)
        try {
          await line.call('hold' satisfies keyof ShardCalls, partition)
        } catch (error) {
          if (!(error instanceof Unavailable)) throw error
          await clock.sleep(RESTART_MS, signal)
        } finally {
          signal.removeEventListener('abort', release)
        }
      }
    },
    sunk: (partition, seq) => shardOf(partition).line?.cast(CASTS.sunk, [partition, seq]),
    async glimpse(scope, requestId) {
      const all = (await each<Omit<Glimpse, 'from'>>('glimpse', scope, requestId)) as Omit<Glimpse, 'from'>[]
      return {
        place: all.find(({ place }) => place !== null)?.place ?? null,
        pending: all.some(({ pending }) => pending),
        original: all.find(({ original }) => original !== null)?.original ?? null,
        covers: all.flatMap(({ covers }) => covers),
      }
    },
    samples: () => each<Samples>('samples'),
    async reloadKeys() {
      await each('reloadKeys')
    },
    status: () => shards.map(({ status }) => status),
    refuse(reason) {
      isRefusing = true
      tellRefusal(reason)
    },
    async close() {
      closed = true
      clearInterval(checking)
      await each('stop').catch(() => undefined)
      await Promise.all(shards.map(({ pool }) => pool?.close({ force: true })))
    },
  }
}

/** A port that nobody listens on: the shards share it, and would share it with another process as well. Fails with PortBusy. */
function findPort(host: string, wanted: number): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer()
    probe.once('error', () => reject(new PortBusy(host, wanted)))
    probe.listen({ host, port: wanted, exclusive: true }, () => {
      const address = probe.address()
      probe.close(() => resolve(typeof address === 'object' && address !== null ? address.port : wanted))
    })
  })
}
