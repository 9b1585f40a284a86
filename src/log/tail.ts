// The newest records of one partition, in memory, so that a reader right behind the writer needs no disk.
import type { LogRecord, ReadLimits, Seq } from './log.ts'

export interface Tail {
  /** Forgets what is not above `upTo`; what is there at all comes later. */
  skip(upTo: Seq): void
  /** Takes the next record; its seq must be above all earlier ones. */
  push(record: LogRecord): void
  /** True when every record above `after` is here. */
  covers(after: Seq): boolean
  /**
   * The records above `after` and not above `upTo`, by default all, that keep the limits; at least one when there is one. What has
   * something attached is for its first reader and leaves with it, and all before it.
   */
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

  const dropOldest = () => {
    const oldest = records[head] as LogRecord
    records[head] = undefined
    head += 1
    bytes -= oldest.bytes.length + RECORD_OVERHEAD_BYTES
    missingUpTo = oldest.seq
  }

  const compact = () => {
    if (head <= COMPACT_AFTER || head * 2 <= records.length) return
    records.splice(0, head)
    head = 0
  }

  const skip = (upTo: Seq) => {
    while (head < records.length && (records[head] as LogRecord).seq <= upTo) dropOldest()
    missingUpTo = Math.max(missingUpTo, upTo)
    compact()
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
      while (bytes > bytesMax && head < records.length) dropOldest()
      compact()
    },
    skip,
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
      }
      const last = found.findLast(({ attached }) => attached !== undefined)
      if (last !== undefined) skip(last.seq)
      return found
    },
  }
}
