// A thread's counters of one key as bytes, for keys that do not come again soon: of each partition that has some, what is known of them
// and the counters as the kv has them.

import { copyPacked } from '../../lib/packing.ts'
import { withRoom } from '../../lib/room.ts'
import { type Counters, packCounters, unpackCounters } from './counters.ts'
import { type Entry, type Followed, newEntry, UNCOUNTED } from './entry.ts'

/** When it was used last, in seconds of the board's clock. */
const USED_BYTES = 4

// What stands in front of a partition's counters.
const PARTITION_AT = 0
const TAKEN_AT = 2
const SEQ_AT = 6
const LENGTH_AT = 14
const FRONT_BYTES = 18
/** Instead of a length: nothing was counted. */
const NOTHING = 0xffffffff

const START_BYTES = 4_096
/** A buffer that grew beyond this is not kept. */
const KEPT_BYTES_MAX = 1_048_576

let bytes = Buffer.allocUnsafeSlow(START_BYTES)
let used = 0

function packFollowed({ counters, seq, takenS }: Followed, partition: number): void {
  const length = counters === null ? 0 : packCounters(counters)
  bytes = withRoom(bytes, used, FRONT_BYTES + length)
  bytes.writeUInt16LE(partition, used + PARTITION_AT)
  bytes.writeInt32LE(takenS, used + TAKEN_AT)
  bytes.writeDoubleLE(seq, used + SEQ_AT)
  bytes.writeUInt32LE(counters === null ? NOTHING : length, used + LENGTH_AT)
  used += FRONT_BYTES
  if (counters !== null) copyPacked(bytes, used)
  used += length
}

/** Packs an entry that is loaded, for `copyEntry`; returns how many bytes it takes. */
export function packEntry({ of }: Entry, usedS: number): number {
  if (bytes.length > KEPT_BYTES_MAX) bytes = Buffer.allocUnsafeSlow(START_BYTES)
  used = USED_BYTES
  bytes.writeUInt32LE(usedS, 0)
  for (let partition = 0; partition < of.length; partition++) {
    const followed = of[partition]
    if (followed !== undefined && followed !== UNCOUNTED) packFollowed(followed, partition)
  }
  return used
}

/** What was packed last. */
export const copyEntry = (to: Buffer, at: number): void => void bytes.copy(to, at, 0, used)

export const usedSOf = (from: Buffer, start: number): number => from.readUInt32LE(start)

function endOfPart(from: Buffer, at: number): number {
  const length = from.readUInt32LE(at + LENGTH_AT)
  return at + FRONT_BYTES + (length === NOTHING ? 0 : length)
}

function countersAt(from: Buffer, at: number): Counters | null {
  if (from.readUInt32LE(at + LENGTH_AT) === NOTHING) return null
  return unpackCounters(from, at + FRONT_BYTES, endOfPart(from, at))
}

export function unpackEntry(from: Buffer, start: number, end: number, partitions: number): Entry {
  const entry = newEntry(partitions)
  entry.of.fill(UNCOUNTED)
  for (let at = start + USED_BYTES; at < end; at = endOfPart(from, at)) {
    const seq = from.readDoubleLE(at + SEQ_AT)
    const takenS = from.readInt32LE(at + TAKEN_AT)
    entry.of[from.readUInt16LE(at + PARTITION_AT)] = { counters: countersAt(from, at), seq, takenS }
  }
  entry.isLoaded = true
  return entry
}

/** Where a partition's part of a packed entry begins; -1: it counted nothing. */
export function partAt(from: Buffer, start: number, end: number, partition: number): number {
  for (let at = start + USED_BYTES; at < end; at = endOfPart(from, at)) {
    if (from.readUInt16LE(at + PARTITION_AT) === partition) {
      return from.readUInt32LE(at + LENGTH_AT) === NOTHING ? -1 : at
    }
  }
  return -1
}

/** Where the counters of a part lie, and when they were taken to be stored. */
export const countersStart = (part: number): number => part + FRONT_BYTES
export const countersEnd = endOfPart
export const takenSOf = (from: Buffer, part: number): number => from.readInt32LE(part + TAKEN_AT)
export const setTakenS = (from: Buffer, part: number, takenS: number): void =>
  void from.writeInt32LE(takenS, part + TAKEN_AT)
