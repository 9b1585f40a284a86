// Owns copies of appended records, in few allocations: a caller may reuse its buffer, and readers are given
// views of ours. What is appended together lies together as one entry, laid out as it goes to disk.
import { markAsUntransferable } from 'node:worker_threads'

/** Records that were appended together. */
export interface SlabEntry {
  /** count u32 | length u32 of each | the records, one after the other; big endian. */
  readonly bytes: Uint8Array
  /** Views into `bytes`. */
  readonly records: readonly Uint8Array[]
}

export interface Slab {
  pack(records: readonly Uint8Array[]): SlabEntry
  /** The records of a copy of the entry. */
  copy(entry: Uint8Array): Uint8Array[]
}

const SLAB_BYTES = 64 * 1024
const LENGTH_BYTES = 4

/** Bytes of an entry of these records. */
export function entryBytes(records: readonly Uint8Array[]): number {
  let bytes = LENGTH_BYTES * (1 + records.length)
  for (const record of records) bytes += record.length
  return bytes
}

/** The records of a stored entry, as views. */
export function slabRecordsOf(bytes: Uint8Array): Uint8Array[] {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
  const count = view.getUint32(0)
  const records: Uint8Array[] = []
  let at = LENGTH_BYTES * (1 + count)
  for (let index = 1; index <= count; index += 1) {
    const end = at + view.getUint32(LENGTH_BYTES * index)
    records.push(bytes.subarray(at, end))
    at = end
  }
  return records
}

/** Lays records out as an entry in `bytes`, which has room for exactly that, and returns them. */
export function packInto(bytes: Buffer, records: readonly Uint8Array[]): Buffer {
  bytes.writeUInt32BE(records.length, 0)
  let at = LENGTH_BYTES * (1 + records.length)
  for (const [index, record] of records.entries()) {
    bytes.writeUInt32BE(record.length, LENGTH_BYTES * (1 + index))
    bytes.set(record, at)
    at += record.length
  }
  return bytes
}

/** How many records an entry holds. */
export const countOf = (entry: Uint8Array): number =>
  new DataView(entry.buffer, entry.byteOffset, LENGTH_BYTES).getUint32(0)

/** One per partition, so that records that are forgotten together lie together. */
export function openSlab(): Slab {
  let slab = Buffer.alloc(0)
  let used = 0

  const take = (length: number): Buffer<ArrayBuffer> => {
    if (length > SLAB_BYTES / 4) return allocate(length)
    if (used + length > slab.length) {
      slab = allocate(SLAB_BYTES)
      used = 0
    }
    used += length
    return slab.subarray(used - length, used)
  }

  return {
    pack(records) {
      const bytes = packInto(take(entryBytes(records)), records)
      return { bytes, records: slabRecordsOf(bytes) }
    },
    copy(entry) {
      const bytes = take(entry.length)
      bytes.set(entry)
      return slabRecordsOf(bytes)
    },
  }
}

function allocate(length: number): Buffer<ArrayBuffer> {
  const bytes = Buffer.allocUnsafeSlow(length)
  markAsUntransferable(bytes.buffer)
  return bytes
}
