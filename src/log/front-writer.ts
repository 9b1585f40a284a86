// The writer's side of a front log: takes the ticks of one thread into the log, tells it what has become durable, and takes back
// everything it has submitted when one tick fails.

import { Full } from '../lib/failures.ts'
import type { Line } from '../lib/line.ts'
import { must } from '../lib/must.ts'
import { FRONT, LAYOUT_FIELDS, type PartitionHead, type TakenBack, type Tick } from './front-protocol.ts'
import { type Log, type PlacedAppend, type ReadLimits, type Seq, TOPICS, type Topic } from './log.ts'

export interface FrontWriterNeeds {
  readonly line: Line
  readonly log: Log
  /** The partitions that only the thread at the other end appends to, as it is now. */
  readonly own: () => readonly Pick<PartitionHead, 'topic' | 'partition'>[]
}

export interface FrontWriter {
  /** Where the thread's partitions stand now. */
  places(): Promise<PartitionHead[]>
  /** Resolves when nothing of the thread's is being written any more. */
  settled(): Promise<void>
}

export const FIRST_GENERATION = 1

/** What a thread appends to a partition of its own. */
export const ownTopics = (partition: number): Pick<PartitionHead, 'topic' | 'partition'>[] => [
  { topic: 'identifications', partition },
  { topic: 'events', partition },
]

/** Where they stand in the log. */
export const headsIn = (
  log: Pick<Log, 'last'>,
  those: readonly Pick<PartitionHead, 'topic' | 'partition'>[],
): Promise<PartitionHead[]> =>
  Promise.all(those.map(async (one) => ({ ...one, last: await log.last(one.topic, one.partition) })))

export function serveFrontLog({ line, log, own }: FrontWriterNeeds): FrontWriter {
  const appendTogether = must(log.appendTogether, 'a log that takes a tick as one')
  let generation = FIRST_GENERATION
  let isTakingBack = false
  let ring: Uint8Array = new Uint8Array(0)
  const writing = new Set<Promise<void>>()
  let durable = 0
  let told = 0

  const places = (): Promise<PartitionHead[]> => headsIn(log, own())

  async function settled(): Promise<void> {
    while (writing.size > 0) await Promise.allSettled(writing)
  }

  /** Ticks that shared a flush are told of together. */
  function tellDurable(number: number): void {
    if (durable === told) queueMicrotask(tell)
    durable = number
  }

  function tell(): void {
    told = durable
    line.cast(FRONT.durable, durable)
  }

  async function takeBack(error: unknown): Promise<void> {
    if (isTakingBack) return
    isTakingBack = true
    await settled()
    generation += 1
    isTakingBack = false
    const message = error instanceof Error ? error.message : String(error)
    const failure = { full: error instanceof Full, message }
    // A log that is closed does not tell: the thread stays where it knows to be.
    const known = await places().catch(() => [])
    line.cast(FRONT.takenBack, { generation, places: known, failure } satisfies TakenBack)
  }

  line.hear(FRONT.ring, (memory: SharedArrayBuffer) => {
    ring = new Uint8Array(memory)
  })
  line.hear(FRONT.tick, (tick: Tick) => {
    // It builds on what was taken back, of which its thread is about to be told.
    if (isTakingBack || tick.generation !== generation) return
    const written = appendTogether(appendsOf(tick, ring), { patient: tick.patient }).then(
      () => tellDurable(tick.number),
      (error) => void takeBack(error),
    )
    const done = written.finally(() => writing.delete(done))
    writing.add(done)
  })

  line.serve(FRONT.append, (topic: Topic, partition: number, records: Uint8Array[], opts: object) =>
    log.append(topic, partition, records, opts),
  )
  line.serve(FRONT.read, (topic: Topic, partition: number, after: Seq, limits: ReadLimits) =>
    log.read(topic, partition, after, limits),
  )
  line.serve(FRONT.at, (topic: Topic, partition: number, seq: Seq) => log.at(topic, partition, seq))
  line.serve(FRONT.last, (topic: Topic, partition: number) => log.last(topic, partition))
  line.serve(FRONT.trim, (topic: Topic, partition: number, upTo: Seq) => log.trim(topic, partition, upTo))
  line.serve(FRONT.usage, () => log.usage())

  return {
    places,
    settled,
  }
}

function appendsOf({ layout }: Tick, ring: Uint8Array): PlacedAppend[] {
  const appends: PlacedAppend[] = []
  for (let i = 0; i < layout.length; i += LAYOUT_FIELDS) {
    const [code = 0, partition = 0, after = 0, at = 0, length = 0] = layout.slice(i, i + LAYOUT_FIELDS)
    appends.push({ topic: TOPICS[code] as Topic, partition, after, entry: ring.subarray(at, at + length) })
  }
  return appends
}
