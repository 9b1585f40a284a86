// How the log lies on JetStream: names and subjects of the streams, what their descriptions tell, how positions are counted, and
// the share of each stream in the log's bytes.
import { Unreadable } from '../lib/failures.ts'
import { UnsafeNats } from '../lib/nats.ts'
import { APPEND_RECORDS_MAX, type LogRecord, type ReadLimits, type Seq, TOPICS, type Topic } from './log.ts'
import { slabRecordsOf } from './slab.ts'

export interface Deployment {
  readonly id: string
  /** ISO 8601, of the first start. */
  readonly createdAt: string
  readonly partitions: number
}

/** Kept as JSON in the description of every stream. */
export interface Description {
  readonly format: number
  readonly deployment: Deployment
  /** Added to the stream's own sequence: above all that streams of this name held before. */
  readonly base: number
  /** Of the stream that is made first only: from now on a stream that is missing was lost. */
  readonly complete?: boolean
}

export const FORMAT = 1
const BASE_ORIGIN_MS = Date.UTC(2020, 0, 1)
/** Kept for good, so whoever raises the log's bytes raises this. */
const PART_OF_CHANGES = 1 / 8
const SHARE_OF_DEAD = { part: 1 / 32, bytesMax: 2 ** 28 }

export const streamName = (prefix: string, topic: Topic, partition: number): string => `${prefix}_${topic}_${partition}`

/** Subjects carry the base: a publisher that does not know yet of a stream made anew reaches nobody. */
export const subjectOf = (prefix: string, topic: Topic, partition: number, base: number): string =>
  `${prefix}.log.${topic}.${partition}.${base}`

const baseOf = (subject: string): number => Number(subject.slice(subject.lastIndexOf('.') + 1))

/** Milliseconds: no partition gets a message in each, so this stays above what is counted from an earlier base. */
export const baseAt = (now: number): number => now - BASE_ORIGIN_MS

/** Seq of the last record of a message; those before it in the message count down from there. */
export const seqOfMessage = (base: number, streamSeq: number): Seq => (base + streamSeq) * APPEND_RECORDS_MAX

/** The first message of a stream that can hold a record above `after`. */
export const messageAfter = (base: number, after: Seq): number =>
  Math.max(1, Math.floor(after / APPEND_RECORDS_MAX) - base + 1)

/** The last message whose records are all at or below `upTo`. */
export const messageUpTo = (base: number, upTo: Seq): number => Math.floor(upTo / APPEND_RECORDS_MAX) - base

/** The records of a stored message. */
export function decodeMessage(subject: string, streamSeq: number, data: Uint8Array): LogRecord[] {
  const records = slabRecordsOf(data)
  const before = seqOfMessage(baseOf(subject), streamSeq) - records.length
  return records.map((bytes, index) => ({ seq: before + index + 1, bytes }))
}

/** The records above `after`, from message `first` on, that keep the limits; at least one when there is one. */
export function cut(
  messages: readonly { readonly records: readonly LogRecord[] }[],
  first: number,
  after: Seq,
  limits: Pick<ReadLimits, 'recordsMax' | 'bytesMax'>,
): LogRecord[] {
  const found: LogRecord[] = []
  let bytes = 0
  for (let index = first; index < messages.length; index += 1) {
    for (const record of messages[index]?.records ?? []) {
      if (record.seq <= after) continue
      bytes += record.bytes.length
      if (found.length === limits.recordsMax || (found.length > 0 && bytes > limits.bytesMax)) return found
      found.push(record)
    }
  }
  return found
}

export function listPartitions({ partitions }: Pick<Deployment, 'partitions'>): readonly (readonly [Topic, number])[] {
  return TOPICS.flatMap((topic) => {
    const count = topic === 'identifications' || topic === 'events' ? partitions : 1
    return Array.from({ length: count }, (_, partition) => [topic, partition] as const)
  })
}

/** Of one stream: shares for `changes` and `dead`, the rest in equal parts. */
export function streamBytesMax(topic: Topic, logBytesMax: number, partitions: number): number {
  const ofChanges = Math.floor(logBytesMax * PART_OF_CHANGES)
  const ofDead = Math.floor(Math.min(logBytesMax * SHARE_OF_DEAD.part, SHARE_OF_DEAD.bytesMax))
  if (topic === 'changes') return ofChanges
  if (topic === 'dead') return ofDead
  return Math.floor((logBytesMax - ofChanges - ofDead) / (2 * partitions))
}

/** Throws UnsafeNats for what we did not write, and Unreadable for what another build wrote. */
export function parseDescription(name: string, text = ''): Description {
  let parsed: Partial<Description>
  try {
    parsed = JSON.parse(text) as Partial<Description>
  } catch (cause) {
    throw new UnsafeNats(`the stream ${name} was not made by Fingerpost`, { cause })
  }
  const { format, deployment, base } = parsed
  if (format !== FORMAT) throw new Unreadable(`the stream ${name} has format ${format}, this build reads ${FORMAT}`)
  if (typeof deployment?.id !== 'string' || !Number.isInteger(deployment.partitions) || !Number.isInteger(base)) {
    throw new UnsafeNats(`the stream ${name} was not made by Fingerpost`)
  }
  return parsed as Description
}
