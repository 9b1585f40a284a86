// The newest durable records of one partition, in memory, so that a reader right behind the writer needs no disk.
import type { LogRecord, Seq } from './log.ts'

export interface Tail {
  /** Takes the next durable record; its seq must be above all earlier ones. */
  push(record: LogRecord): void
  /** True when every durable record above `after` is here. */
  covers(after: Seq): boolean
  /** Index for `get` of the first record above `after`. */
  find(after: Seq): number
  get(index: number): LogRecord | undefined
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

  return {
    push(record) {
      records.push(record)
      bytes += record.bytes.length + RECORD_OVERHEAD_BYTES
      evict()
    },
    covers: (after) => after >= missingUpTo,
    find(after) {
      let low = head
      let high = records.length
      while (low < high) {
        const middle = (low + high) >>> 1
        if ((records[middle] as LogRecord).seq > after) high = middle
        else low = middle + 1
      }
      return low
    },
    get: (index) => records[index],
  }
}
