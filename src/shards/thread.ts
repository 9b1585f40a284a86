// One shard's thread as its process sees it: starts it, serves it what it stores through the process, and ends it.

import { MessageChannel } from 'node:worker_threads'
import { Piscina } from 'piscina'
import type { Bus } from '../bus/bus.ts'
import { serveBus } from '../bus/remote.ts'
import type { Serve } from '../http/dispatch.ts'
import { serveForwarded } from '../http/forwarded.ts'
import type { Kv } from '../kv/kv.ts'
import { serveKv } from '../kv/remote.ts'
import { ringing } from '../lib/doorbell.ts'
import { Unavailable } from '../lib/failures.ts'
import { type Line, openLine } from '../lib/line.ts'
import type { Limits } from '../limits/limits.ts'
import type { PartitionHead } from '../log/front-protocol.ts'
import { FIRST_GENERATION, type FrontWriter, serveFrontLog } from '../log/front-writer.ts'
import type { Log } from '../log/log.ts'
import { closeHanging } from './interrupt.ts'
import type { Peer } from './peers.ts'
import { CASTS, type ProcessCalls, type ShardStart, type ShardStatus, type ShardTask } from './protocol.ts'

export interface ShardThreadNeeds {
  /** Where an embedded shard stores; null: it has the servers of the cluster. */
  readonly stores: {
    readonly log: Log
    readonly kv: Kv
    /** As `FrontWriterNeeds` has it. */
    readonly own: () => readonly Pick<PartitionHead, 'topic' | 'partition'>[]
  } | null
  readonly bus: Bus
  readonly limits: Pick<Limits, 'take'>
  readonly calls: ProcessCalls
  /** What the process answers. */
  readonly serve: Serve
  readonly heapMbMax: number
  readonly onStatus: (status: ShardStatus) => void
  readonly onError: (error: unknown) => void
}

export interface Thread {
  readonly line: Line
  /** Resolves when the thread serves; rejects when it was lost before. */
  readonly ready: Promise<Line>
  /** Resolves with the reason when the thread is gone. */
  readonly lost: Promise<unknown>
  isGone(): boolean
  /** Resolves when nothing of the thread's is being written any more. */
  settled(): Promise<void>
  /** Ends a thread that does not turn its loop any more. Rejects when that is not possible. */
  endHanging(): Promise<void>
  /** Ends a thread whose sockets are closed. */
  end(): Promise<void>
}

const YOUNG_MB = 96

/** `peers`: the new shard's ends of the lines to those there are. */
export function startThread(
  needs: ShardThreadNeeds,
  start: Omit<ShardStart, 'own' | 'generation'>,
  peers: readonly Peer[],
): Thread {
  const { stores, onError } = needs
  const { port1, port2 } = new MessageChannel()
  const line = openLine(ringing(port1, start.cells.bells, start.index), onError)
  const writer: FrontWriter | null = stores === null ? null : serveFrontLog({ line, ...stores })
  if (stores !== null) serveKv(line, stores.kv)
  const endBus = serveBus(line, needs.bus)
  line.serve('limits.take', (...args: Parameters<Limits['take']>) => needs.limits.take(...args))
  line.serve('findEvent', needs.calls.findEvent)
  line.serve('fateOf', needs.calls.fateOf)
  line.hear(CASTS.status, needs.onStatus)
  const endForwarded = serveForwarded(line, needs.serve)
  const pool = new Piscina({
    filename: new URL('./shard.worker.js', import.meta.url).href,
    minThreads: 1,
    maxThreads: 1,
    atomics: 'disabled',
    idleTimeout: Number.POSITIVE_INFINITY,
    recordTiming: false,
    // A batch lives for a few milliseconds: in a small young generation much of it would be copied before it dies.
    resourceLimits: { maxOldGenerationSizeMb: needs.heapMbMax, maxYoungGenerationSizeMb: YOUNG_MB },
  })

  let isGone = false

  async function run(): Promise<unknown> {
    try {
      const places = { own: (await writer?.places()) ?? [], generation: FIRST_GENERATION }
      const given: ShardTask = { start: { ...start, ...places }, port: port2, peers }
      await pool.run(given, { transferList: [port2, ...peers.map(({ port }) => port)] })
      return new Unavailable('the shard ended')
    } catch (error) {
      return error
    } finally {
      isGone = true
      endBus()
      line.end()
      endForwarded()
      port1.close()
    }
  }

  const lost = run()
  const ready = new Promise<Line>((resolve, reject) => {
    line.hear('ready', () => resolve(line))
    void lost.then(reject)
  })
  ready.catch(() => undefined)
  return {
    line,
    ready,
    lost,
    isGone: () => isGone,
    settled: async () => writer?.settled(),
    async endHanging() {
      for (const { threadId } of pool.threads) await closeHanging(threadId)
      await pool.destroy()
    },
    end: () => pool.close({ force: true }),
  }
}
