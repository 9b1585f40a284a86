// Reading all of something once, as commands do: a stretch of a log partition to its end, a whole table.

import { type Log, type LogRecord, RECORD_BYTES_MAX, type Seq, type Topic } from '../log/log.ts'

/** Scans of a whole history take minutes. */
export const SCAN = { timeoutMsMax: 590_000, rowsMax: 1_000_000 } as const

const READ = { recordsMax: 512, bytesMax: 8 * RECORD_BYTES_MAX }
/** An empty answer is believed only after a wait: a reader may have to find its place first. */
const WAIT_MS = 1_000

/** Batches of the records after `after` up to `upTo`; ends early where what should follow is gone for good. */
export async function* batchesOf(
  log: Pick<Log, 'read'>,
  topic: Topic,
  partition: number,
  after: Seq,
  upTo: Seq,
): AsyncGenerator<readonly LogRecord[]> {
  let from = after
  let waitMsMax = 0
  while (from < upTo) {
    const records = await log.read(topic, partition, from, { ...READ, waitMsMax })
    const last = records.at(-1)
    if (last === undefined) {
      if (waitMsMax > 0) return
      waitMsMax = WAIT_MS
      continue
    }
    waitMsMax = 0
    from = last.seq
    const within = last.seq <= upTo ? records : records.filter(({ seq }) => seq <= upTo)
    if (within.length > 0) yield within
  }
}

/** The same record by record. */
export async function* rebuildRecordsOf(
  log: Pick<Log, 'read'>,
  topic: Topic,
  partition: number,
  after: Seq,
  upTo: Seq,
): AsyncGenerator<LogRecord> {
  for await (const batch of batchesOf(log, topic, partition, after, upTo)) yield* batch
}
