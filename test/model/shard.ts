// A shard of a model process: a thread of its own that accepts and decides, with the real front log, its writer and the real
// line between them. It dies without its process, which writes what it had handed over and starts another one.

import { type HandedBack, type HandedOver, type HandOver, openAnswering } from '../../src/ingress/hand-over.ts'
import type { Kv } from '../../src/kv/kv.ts'
import { openRemoteKv, serveKv } from '../../src/kv/remote.ts'
import { Unavailable } from '../../src/lib/failures.ts'
import { type Line, openLine } from '../../src/lib/line.ts'
import { promised } from '../../src/lib/promised.ts'
import { openFrontLog } from '../../src/log/front.ts'
import type { PartitionHead } from '../../src/log/front-protocol.ts'
import { type FrontWriter, ownTopics, serveFrontLog } from '../../src/log/front-writer.ts'
import type { Log, Seq } from '../../src/log/log.ts'
import type { Glimpse } from '../../src/records/event-locator.ts'
import { CASTS } from '../../src/shards/protocol.ts'
import { handedOver } from '../helpers/handed-over.ts'
import { NO_OTHERS } from '../helpers/no-others.ts'
import { rng } from '../helpers/rng.ts'
import { startAccepting } from './accepting.ts'
import { type Deciding, type DecidingNeeds, foreseen, startDeciding } from './deciding.ts'
import type { SimHost } from './host.ts'
import { joinHosts } from './joint.ts'
import type { Ports, ProcessNeeds, Role } from './process.ts'

export interface ShardNeeds extends Omit<DecidingNeeds, 'portsOf' | 'stopping' | 'checkpointMsMax' | 'otherShards'> {
  readonly ports: Ports
  readonly raw: Ports
  /** Makes the host of a thread, and the bus as that thread sees it. */
  readonly thread: NonNullable<ProcessNeeds['thread']>
  /** Half of the calls arrive at the process, which has no partitions and hands over what a token tells it. */
  readonly handing: boolean
  /** Which partitions the thread has, and who has the others; null: it has all of them. */
  readonly assigned: Assigned | null
  /** Of its threads, each with a number behind it. */
  readonly name: string
}

export interface Assigned {
  readonly owned: () => readonly number[]
  /** Goes to whichever thread has the partition. */
  readonly append: Log['append']
}

export interface Shard extends Pick<Deciding, 'ready' | 'identify' | 'stop'> {
  /** Asks the thread; rejects with Unavailable when it is lost meanwhile. */
  glimpse(scope: string, requestId: string): Promise<Glimpse>
  /** What the thread knows at this very moment. */
  glimpseNow: Deciding['glimpse']
  sunk(partition: number, seq: Seq): void
  /** Appends of the process to partitions of the thread. */
  readonly append: Log['append']
  /** The threads that live now. */
  hosts(): readonly SimHost[]
}

export interface SingleShard extends Shard {
  /** To the thread that lives now, or to the next one. */
  line(): Promise<Line>
}

const RESTART_MS = 200
/** Of embedded storage. */
const CHECKPOINT_MS = 5_000
const FIRST_WRITER = { settled: () => Promise.resolve() }
export const NOTHING_SEEN = { place: null, pending: false, original: null, covers: [] }

interface Thread {
  readonly host: SimHost
  /** The process's end. */
  readonly line: Line
  readonly deciding: Deciding
}

export function startShard(needs: ShardNeeds): SingleShard {
  const { host: processHost, ports, raw, tamper, partitions, random, onFailure, assigned } = needs
  const { clock } = processHost
  const stopping = new AbortController()
  const all = Array.from({ length: partitions }, (_, partition) => partition)
  const own = () => (assigned?.owned() ?? all).flatMap(ownTopics)
  const ingressId = needs.ingressId()
  let writer: Pick<FrontWriter, 'settled'> = FIRST_WRITER
  let thread: Thread | null = null
  let started = promised<Thread>()
  let threads = 0

  /** Resolves when the thread is lost. */
  async function run(): Promise<void> {
    await writer.settled()
    const { host, bus } = needs.thread(`${needs.name}.${threads++}`)
    const lost = new Promise<void>((resolve) => host.onKill(() => processHost.step(processHost.latency(), resolve)))
    const ends = joinHosts(processHost, host)
    const line = openLine(ends.here, (error) => onFailure('line', error))
    const served = tamper.writer?.({ line, log: { ...ports.log, append } }) ?? { line, log: { ...ports.log, append } }
    const front = serveFrontLog({ ...served, own })
    writer = front
    // Commits go over as they are: the model's kv has no bytes.
    serveKv(line, { ...ports.kv, commitPrepared: (commits) => ports.kv.commit(commits as never) })
    line.serve('findEvent', needs.findEvent)
    line.serve('fateOf', needs.fateOf)
    try {
      const places = await front.places()
      if (stopping.signal.aborted) return
      thread = startThread(
        host,
        bus,
        line,
        openLine(ends.there, (error) => onFailure('line', error)),
        places,
      )
      started.resolve(thread)
      await lost
    } finally {
      host.kill(true)
      thread = null
      started.reject(new Unavailable('the thread is lost'))
      started = promised()
      line.end()
      ends.part()
    }
  }

  function startThread(
    host: SimHost,
    bus: Ports['bus'],
    line: Line,
    far: Line,
    places: readonly PartitionHead[],
  ): Thread {
    const log = openFrontLog({
      line: far,
      clock: host.clock,
      generation: 1,
      own: places,
      atEndOfTurn: (act) => host.step(host.latency(), act),
    })
    const commit: Kv['commit'] = (commits) => {
      // Laid out, as openRemoteKv does: what is put may be made as it is asked for, and the line takes data only.
      const laidOut = commits.map(({ put, ...more }) => (put === undefined ? more : { ...more, put: [...put] }))
      const answer = far.call('kv.commit', laidOut) as ReturnType<Kv['commit']>
      far.flush()
      return answer
    }
    const kv = { ...openRemoteKv(far, host.clock), commit } as Kv
    const its: Ports = { log, kv, bus, clickhouse: ports.clickhouse }
    const portsOf = (role: Role): Ports => tamper.ports?.(role, its, raw) ?? its
    const answering = openAnswering()
    far.serve('identify', (call: HandedOver) => handedOver(answering.serve, call))
    const deciding = startDeciding({
      ...needs,
      otherShards: { ...NO_OTHERS, answer: answering.answer },
      host,
      portsOf,
      random: rng(random.int(2 ** 31)),
      ingressId: () => ingressId,
      stopping: new AbortController(),
      checkpointMsMax: CHECKPOINT_MS,
      heldByCall: assigned !== null,
      findEvent: (...args) => far.call('findEvent', ...args) as never,
      fateOf: (...args) => far.call('fateOf', ...args) as never,
    })
    const holds = new Map<number, AbortController>()
    far.serve('hold', (partition: number) => {
      const ending = new AbortController()
      holds.set(partition, ending)
      return deciding.hold(partition, ending.signal)
    })
    far.hear(CASTS.release, (partition: number) => holds.get(partition)?.abort())
    far.serve('giveUp', log.giveUp)
    far.serve('take', log.take)
    far.serve('glimpse', deciding.glimpse)
    far.serve('append', (partition: number, records: readonly Uint8Array[]) =>
      portsOf('ingress').log.append('identifications', partition, records),
    )
    far.hear('sunk', ([partition, seq]: [number, Seq]) => deciding.recent.forgetUpTo(partition, seq))
    far.serve('stop', async () => {
      await deciding.stop()
      await log.close()
    })
    return { host, line, deciding }
  }

  async function keepRunning(): Promise<void> {
    while (!stopping.signal.aborted) {
      await run().catch((error) => {
        if (!foreseen(error)) onFailure('shard', error)
      })
      await clock.sleep(RESTART_MS, stopping.signal)
    }
    started.reject(new Unavailable('no thread is started any more'))
  }

  const append: Log['append'] =
    assigned?.append ??
    (async (topic, partition, records, opts) => {
      if (topic !== 'identifications') return ports.log.append(topic, partition, records, opts)
      return (await started.promise).line.call('append', partition, records) as Promise<Seq>
    })

  void keepRunning()

  return withHanding(needs, async () => (await started.promise).line, {
    append,
    line: async () => (await started.promise).line,
    ready: () => thread?.host.alive() === true && thread.deciding.ready(),
    hosts: () => (thread === null ? [] : [thread.host]),
    identify: (request, answer) => {
      if (thread?.host.alive()) thread.deciding.identify(request, answer)
    },
    async glimpse(scope, requestId) {
      return (await (await started.promise).line.call('glimpse', scope, requestId)) as Glimpse
    },
    glimpseNow: (scope, requestId) => thread?.deciding.glimpse(scope, requestId) ?? NOTHING_SEEN,
    sunk: (partition, seq) => thread?.line.cast('sunk', [partition, seq]),
    async stop() {
      stopping.abort()
      if (thread?.host.alive()) await thread.line.call('stop').catch(() => undefined)
      await writer.settled()
    },
  })
}

/** With `handing`, half of the calls arrive at the process, which accepts what it cannot hand over to the line of the partition. */
export function withHanding<S extends Shard>(
  needs: Omit<ShardNeeds, 'assigned' | 'name'>,
  lineTo: (partition: number) => Promise<Line>,
  shard: S,
): S {
  if (!needs.handing) return shard
  const { ports, random } = needs
  const wayTo =
    (partition: number): HandOver =>
    (call, answer) =>
      void lineTo(partition)
        .then((line) => line.call('identify', call) as Promise<HandedBack>)
        .then(answer, answer)
  function wayFor(partitionOf: () => number | null): HandOver | null {
    const partition = partitionOf()
    return partition === null ? null : wayTo(partition)
  }
  const handing = startAccepting({
    ...needs,
    ports: { ...ports, log: { ...ports.log, append: shard.append } },
    ingressId: needs.ingressId(),
    otherShards: { wayFor, answer: () => undefined },
  })

  /** What the threads know, and what the process itself accepted. */
  const withOwn = (of: Glimpse, scope: string, requestId: string) => ({
    ...of,
    pending: of.pending || handing.isPending(scope, requestId),
    original: of.original ?? handing.originalOf(scope, requestId),
  })
  return {
    ...shard,
    identify(request, answer) {
      if (random.chance(0.5)) handing.identify(request, answer)
      else shard.identify(request, answer)
    },
    glimpse: async (scope, requestId) => withOwn(await shard.glimpse(scope, requestId), scope, requestId),
    glimpseNow: (scope, requestId) => withOwn(shard.glimpseNow(scope, requestId), scope, requestId),
    async stop() {
      handing.stop()
      await shard.stop()
    },
  }
}
