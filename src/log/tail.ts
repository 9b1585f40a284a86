// The newest records of one partition, in memory, so that a reader right behind the writer needs no disk.
import type { LogRecord, ReadLimits, Seq } from './log.ts'

export interface Tail {
  /** Forgets what is not above `upTo`; what is there at all comes later. */
  skip(upTo: Seq): void
  /** Takes the next record; its seq must be above all earlier ones. */
  push(record: LogRecord): void
  /** True when every record above `after` is here. */
  covers(after: Seq): boolean
  /** The records above `after` and not above `upTo`, by default all, that keep the limits; at least one when there is one. */
  take(after: Seq, limits: Pick<ReadLimits, 'recordsMax' | 'bytesMax'>, upTo?: Seq): LogRecord[]
}

/** What an entry costs besides its bytes. */
const RECORD_OVERHEAD_BYTES = 128
const COMPACT_AFTER = 1_024

/** `from`: the seq up to which records are on disk only. At most `bytesMax` bytes are kept. */
export function openTail(from: Seq, bytesMax: number): Tail {
  const records: (LogRecord | undefined)[] = []
  let head = 0
  let missingUpTo = from
  let bytes = 0

  const evict = () => {
    while (bytes > bytesMax && head < records.length) {
      const oldest = records[head] as LogRecord
      records[head] = undefined
      head += 1
      bytes -= oldest.bytes.length + RECORD_OVERHEAD_BYTES
      missingUpTo = oldest.seq
    }
    if (head > COMPACT_AFTER && head * 2 > records.length) {
      records.splice(0, head)
      head = 0
    }
  }

  const firstAfter = (after: Seq): number => {
    let low = head
    let high = records.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if ((records[middle] as LogRecord).seq > after) high = middle
      else low = middle + 1
    }
    return low
  }

  return {
    push(record) {
      records.push(record)
      bytes += record.bytes.length + RECORD_OVERHEAD_BYTES
      evict()
    },
    skip(upTo) {
      missingUpTo = Math.max(missingUpTo, upTo)
      while (head < records.length && (records[head] as LogRecord).seq <= upTo) {
        bytes -= (records[head] as LogRecord).bytes.length + RECORD_OVERHEAD_BYTES
        records[head] = undefined
        head += 1
      }
    },
    covers: (after) => after >= missingUpTo,
    take(after, { recordsMax, bytesMax: mostBytes }, upTo = Number.POSITIVE_INFINITY) {
      const found: LogRecord[] = []
      let sum = 0
      for (let index = firstAfter(after); found.length < recordsMax; index += 1) {
        const record = records[index]
        if (!record || record.seq > upTo) break
        sum += record.bytes.length
        if (found.length > 0 && sum > mostBytes) break
        found.push(record)
        // Once: what it was made of is for its first reader, and is large.
        if (record.attached !== undefined) records[index] = { seq: record.seq, bytes: record.bytes }
      }
      return found
    },
  }
}
