// The log on NATS JetStream: one stream per partition, one message per append. A record's seq counts down from that of its
// message, (base + stream sequence) * 1024, so positions leave gaps and `expectLast` names the end of a message.
import type { NatsConnection } from 'nats'
import type { Clock } from '../lib/clock.ts'
import { Unavailable } from '../lib/failures.ts'
import { checkLimits, checkRecords, checkTrim } from './checks.ts'
import { jetStreamFailureOf, openApi } from './jetstream-api.ts'
import { type JetStreamFacts, readJetStreamFacts, refuseUnsafeJetStream } from './jetstream-facts.ts'
import { type Deployment, listPartitions, messageUpTo, seqOfMessage, streamName } from './jetstream-layout.ts'
import { openReader, type Reader } from './jetstream-reader.ts'
import { openStreams, type StreamLook } from './jetstream-streams.ts'
import { openUsage } from './jetstream-usage.ts'
import { type Destination, openWriter, type Target } from './jetstream-writer.ts'
import type { Log, Seq, Topic } from './log.ts'
import { openSlab, type Slab } from './slab.ts'

export interface JetStreamLogConfig {
  /** Stays open when the log is closed. */
  readonly connection: NatsConnection
  /** Begins the names of streams and subjects: letters, digits, `_` and `-`. */
  readonly prefix: string
  /** Of a new deployment; an existing one keeps its own. */
  readonly partitions: number
  /** Servers that hold each record; a deployment with fewer is refused. */
  readonly replicas: number
  /** Of the whole log: small fixed shares for `changes` and `dead`, the rest in equal parts for the other partitions. */
  readonly bytesMax: number
  readonly clock: Clock
  /** Random text of letters and digits, unlike any other: names the deployment, if it is new, and this process. */
  readonly makeDeploymentId: () => string
  /** Monitoring addresses of the servers, asked by `facts`. */
  readonly monitorUrls?: readonly string[]
  /** Told what was lost and mended, or lost for good. */
  readonly report: (fact: LogFact) => void
  /** Appended bytes that may wait for their acknowledgement before appends fail with Full. */
  readonly queuedBytesMax?: number
}

export interface LogFact {
  /**
   * `stream-remade`: a stream was gone and is there again, empty. `feed-rebuilt`: reading goes on after an interruption.
   * `went-back`: a stream has lost records it had acknowledged.
   */
  readonly kind: 'stream-remade' | 'feed-rebuilt' | 'went-back'
  readonly stream: string
  readonly why?: string
}

export interface JetStreamLog {
  readonly log: Log
  readonly deployment: Deployment
  /** Fails with Unavailable. */
  facts(): Promise<JetStreamFacts>
}

interface Partition extends Destination {
  readonly stream: string
  readonly reader: Reader
  readonly slab: Slab
  look(): Promise<StreamLook>
  /** No position up to this one may come again. */
  noteSeq(seq: Seq): void
  trimming: Promise<void>
}

const QUEUED_BYTES_MAX = 64 * 1024 * 1024
const SWEEP_MS = 5_000

/**
 * Finds the log or makes a new one. Fails with UnsafeNats or Unreadable when servers or streams must not be used, with
 * Unavailable when they do not answer.
 */
export async function openJetStreamLog(config: JetStreamLogConfig): Promise<JetStreamLog> {
  const { connection, clock, prefix, report } = config
  refuseUnsafeJetStream(connection)
  const api = openApi(connection, clock)
  const streams = await openStreams({
    ...config,
    api,
    onRemade: (stream) => report({ kind: 'stream-remade', stream }),
  })
  const { deployment } = streams
  const writer = openWriter({
    api,
    clock,
    instance: config.makeDeploymentId(),
    queuedBytesMax: config.queuedBytesMax ?? QUEUED_BYTES_MAX,
  })
  const usage = openUsage(streams, clock)
  const closing = new AbortController()

  function openPartition(topic: Topic, number: number, first: Target): Partition {
    const stream = streamName(prefix, topic, number)
    let target = first
    let known: Seq = 0
    let finding: Promise<void> | null = null

    async function look(): Promise<StreamLook> {
      const seen = known
      const found = await streams.look(topic, number, known)
      if (found.base < target.base) return found
      target = found
      const last = seqOfMessage(found.base, found.lastSeq)
      if (last < seen) report({ kind: 'went-back', stream, why: `from ${seen} to ${last}` })
      known = Math.max(last, last < seen ? 0 : known)
      return found
    }

    return {
      name: `${topic}/${number}`,
      stream,
      target: () => target,
      // However many appends found nobody there.
      find() {
        finding ??= look().then(
          () => {
            finding = null
          },
          (error: unknown) => {
            finding = null
            throw error
          },
        )
        return finding
      },
      look,
      noteSeq(seq) {
        known = Math.max(known, seq)
      },
      reader: openReader({
        api,
        clock,
        stream,
        look,
        onRebuilt: (why) => report({ kind: 'feed-rebuilt', stream, why }),
        isOwn: writer.isOwn,
      }),
      slab: openSlab(),
      trimming: Promise.resolve(),
    }
  }

  const targets = new Map((await streams.lookAtAll()).map((found) => [found.name, found]))
  const partitions = new Map(
    listPartitions(deployment).map(([topic, number]) => {
      const found = targets.get(streamName(prefix, topic, number))
      if (!found) throw new Unavailable(`the stream of ${topic}/${number} does not answer`)
      return [`${topic}/${number}`, openPartition(topic, number, found)]
    }),
  )

  async function sweep(): Promise<void> {
    while (!closing.signal.aborted) {
      await clock.sleep(SWEEP_MS, closing.signal)
      for (const { reader } of partitions.values()) reader.sweep()
    }
  }
  void sweep()

  const find = (topic: Topic, number: number): Partition => {
    if (closing.signal.aborted) throw new Unavailable('the log is closed')
    const p = partitions.get(`${topic}/${number}`)
    if (!p) throw new RangeError(`no partition ${topic}/${number}`)
    return p
  }

  async function trimTo(p: Partition, upTo: Seq): Promise<void> {
    const { base, firstSeq, lastSeq } = await p.look()
    const to = Math.min(upTo, seqOfMessage(base, lastSeq))
    if (to <= p.reader.floor()) return
    // A message that also holds later records stays until they go. Purging beyond the end would move it.
    const message = Math.min(messageUpTo(base, to), lastSeq)
    if (message >= Math.max(firstSeq, 1)) {
      await api.call(`STREAM.PURGE.${p.stream}`, { seq: message + 1 }).catch((error: unknown) => {
        throw jetStreamFailureOf(error)
      })
    }
    p.reader.raiseFloor(to)
  }

  const log: Log = {
    async append(topic, partition, records, opts = {}) {
      const p = find(topic, partition)
      checkRecords(records)
      const entry = p.slab.pack(records)
      const id = writer.nextId()
      p.reader.appending(id, opts.attached)
      let last: Seq
      try {
        last = await writer.write(p, id, entry.bytes, opts.expectLast)
      } catch (error) {
        p.reader.forget(id)
        throw error
      }
      p.noteSeq(last)
      p.reader.appended(id, last, entry.records)
      usage.note(p.stream, entry.bytes.length)
      return last
    },

    async read(topic, partition, after, limits, signal) {
      const p = find(topic, partition)
      checkLimits(after, limits)
      return p.reader.read(after, limits, signal)
    },

    async at(topic, partition, seq) {
      return find(topic, partition).reader.at(seq)
    },

    async trim(topic, partition, upTo) {
      const p = find(topic, partition)
      checkTrim(upTo)
      const step = p.trimming.then(() => trimTo(p, upTo))
      p.trimming = step.catch(() => undefined)
      await step
    },

    // What others read is durable here.
    basis: () => 0,
    pipelined: false,

    async last(topic, partition) {
      const { base, lastSeq } = await find(topic, partition).look()
      return seqOfMessage(base, lastSeq)
    },

    async usage() {
      if (closing.signal.aborted) throw new Unavailable('the log is closed')
      return usage.read()
    },

    async close() {
      closing.abort()
      for (const { reader } of partitions.values()) reader.close()
      await writer.settled()
    },
  }

  return {
    log,
    deployment,
    facts: async () => readJetStreamFacts(connection, await streams.lookAtAll(), config.monitorUrls ?? []),
  }
}
