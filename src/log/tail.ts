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
/** Of a ring: a power of two. */
const SLOTS_MIN = 256

/** `from`: the seq up to which records are on disk only. At most `bytesMax` bytes are kept. */
export function openTail(from: Seq, bytesMax: number): Tail {
  // A ring that is emptied as records leave and when it is replaced: a list that shrinks and grows leaves its former memory behind in
  // V8's old generation, where all that still names is promoted (D209).
  let slots: (LogRecord | undefined)[] = new Array(SLOTS_MIN).fill(undefined)
  /** Records before the oldest of the ring, and before the next one: their difference is how many are here. */
  let head = 0
  let end = 0
  let missingUpTo = from
  let bytes = 0

  const slotOf = (index: number): number => index & (slots.length - 1)
  const at = (index: number): LogRecord => slots[slotOf(index)] as LogRecord

  function dropOldest(): LogRecord {
    const oldest = at(head)
    slots[slotOf(head)] = undefined
    head += 1
    bytes -= oldest.bytes.length + RECORD_OVERHEAD_BYTES
    return oldest
  }

  function grow(): void {
    const former = slots
    const mask = former.length - 1
    slots = new Array(former.length * 2).fill(undefined)
    for (let index = head; index < end; index += 1) slots[slotOf(index)] = former[index & mask]
    former.fill(undefined)
  }

  const firstAfter = (after: Seq): number => {
    let low = head
    let high = end
    while (low < high) {
      const middle = Math.floor((low + high) / 2)
      if (at(middle).seq > after) high = middle
      else low = middle + 1
    }
    return low
  }

  return {
    push(record) {
      if (end - head === slots.length) grow()
      slots[slotOf(end)] = record
      end += 1
      bytes += record.bytes.length + RECORD_OVERHEAD_BYTES
      while (bytes > bytesMax && head < end) missingUpTo = dropOldest().seq
    },
    skip(upTo) {
      missingUpTo = Math.max(missingUpTo, upTo)
      while (head < end && at(head).seq <= upTo) dropOldest()
    },
    covers: (after) => after >= missingUpTo,
    take(after, { recordsMax, bytesMax: mostBytes }, upTo = Number.POSITIVE_INFINITY) {
      const found: LogRecord[] = []
      let sum = 0
      for (let index = firstAfter(after); index < end && found.length < recordsMax; index += 1) {
        const record = at(index)
        if (record.seq > upTo) break
        sum += record.bytes.length
        if (found.length > 0 && sum > mostBytes) break
        found.push(record)
        // Once: what it was made of is for its first reader, and is large.
        if (record.attached !== undefined) slots[slotOf(index)] = { seq: record.seq, bytes: record.bytes }
      }
      return found
    },
  }
}
