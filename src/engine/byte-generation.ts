// One generation of a table of small records by id, outside of the heap: ids and records one behind the other in a buffer, and where they lie.

import { hash32 } from '../domain/ids.ts'
import { createHashIndex, type HashIndex, NO_ENTRY } from '../lib/hash-index.ts'

const ENTRIES_MIN = 64
const BYTES_MIN = 16_384
/** Records have room to grow in place: a multiple of this, with an eighth more than they need. */
const ROOM_BYTES = 32
const roomFor = (length: number): number =>
  length <= 0 ? 0 : Math.ceil((length + length / 8) / ROOM_BYTES) * ROOM_BYTES
/** Instead of a length: there is no record. */
export const ABSENT = -1

// What there is to say of an entry lies in one line of the processor's cache: among hundreds of thousands each array would be another miss.
/** The hash of its id. */
const HASH = 0
/** Where the id begins, behind which is the record. */
const START = 1
const ID_LENGTH = 2
/** Of the record. */
const LENGTH = 3
/** Bytes there are for the record. */
const ROOM = 4
const IS_DIRTY = 5
const FIELDS = 8

/** Ids begin alike and end in what was drawn or hashed. */
const HASHED_CHARS = 16

/** With a sign: a number beyond 31 bits would be an object. */
export const hashOf = (id: string): number => hash32(id, Math.max(0, id.length - HASHED_CHARS)) | 0

/** Memory is given up where the generation before used less than this part of it. */
const USED_SHARE_MIN = 1 / 4

/** Ids are ASCII. Entries are numbers from 0 on; none leaves before all of them do. */
export function createGeneration() {
  let capacity = ENTRIES_MIN
  let bytes: Buffer = Buffer.allocUnsafeSlow(BYTES_MIN)
  let used = 0
  let count = 0
  let fields = new Int32Array(FIELDS * capacity)

  const field = (entry: number, which: number): number => fields[FIELDS * entry + which] as number

  function setField(entry: number, which: number, value: number): void {
    fields[FIELDS * entry + which] = value
  }

  let index = createIndex()

  function createIndex(): HashIndex<string> {
    return createHashIndex<string>((entry) => field(entry, HASH), isIdOf)
  }

  function isIdOf(entry: number, id: string): boolean {
    if (field(entry, ID_LENGTH) !== id.length) return false
    const start = field(entry, START)
    for (let i = 0; i < id.length; i++) if (bytes[start + i] !== id.charCodeAt(i)) return false
    return true
  }

  const recordAt = (entry: number): number => field(entry, START) + field(entry, ID_LENGTH)

  function growEntries(): void {
    capacity *= 2
    const before = fields
    fields = new Int32Array(FIELDS * capacity)
    fields.set(before)
  }

  /** What no entry has any more is left behind, once it is a quarter: to copy all as it lies is quicker. */
  function growBytes(wanted: number): void {
    let kept = 0
    for (let entry = 0; entry < count; entry++) kept += field(entry, ID_LENGTH) + field(entry, ROOM)
    const before = bytes
    bytes = Buffer.allocUnsafeSlow(Math.max(BYTES_MIN, 2 * (kept + wanted)))
    if (kept > 0.75 * used) {
      before.copy(bytes, 0, 0, used)
      return
    }
    used = 0
    for (let entry = 0; entry < count; entry++) {
      const start = field(entry, START)
      const length = field(entry, ID_LENGTH) + field(entry, ROOM)
      before.copy(bytes, used, start, start + length)
      setField(entry, START, used)
      used += length
    }
  }

  function place(wanted: number): number {
    if (used + wanted > bytes.length) growBytes(wanted)
    const at = used
    used += wanted
    return at
  }

  function add(hash: number, id: string, room: number): number {
    if (count === capacity) growEntries()
    const start = place(id.length + room)
    const entry = count
    count++
    for (let i = 0; i < id.length; i++) bytes[start + i] = id.charCodeAt(i)
    setField(entry, HASH, hash)
    setField(entry, START, start)
    setField(entry, ID_LENGTH, id.length)
    setField(entry, ROOM, room)
    setField(entry, IS_DIRTY, 0)
    index.put(hash, id, entry)
    return entry
  }

  /** The id goes along: it is found by where it is. */
  function move(entry: number, room: number): void {
    const idLength = field(entry, ID_LENGTH)
    setField(entry, ROOM, 0)
    const start = place(idLength + room)
    const before = field(entry, START)
    bytes.copyWithin(start, before, before + idLength)
    setField(entry, START, start)
    setField(entry, ROOM, room)
  }

  /** Forgets all entries; their memory is there for as many others, which need not grow into it again. */
  function clear(): void {
    if (count < USED_SHARE_MIN * capacity && capacity > ENTRIES_MIN) {
      capacity = Math.max(ENTRIES_MIN, 2 * count)
      fields = new Int32Array(FIELDS * capacity)
      index = createIndex()
    } else index.clear()
    if (used < USED_SHARE_MIN * bytes.length && bytes.length > BYTES_MIN) {
      bytes = Buffer.allocUnsafeSlow(Math.max(BYTES_MIN, 2 * used))
    }
    count = 0
    used = 0
  }

  return {
    clear,
    bytes: () => bytes,
    size: () => count,
    find: (hash: number, id: string): number => index.find(hash, id),
    isAbsent: (entry: number): boolean => field(entry, LENGTH) === ABSENT,
    recordAt,
    startOf: (entry: number): number => field(entry, START),
    /** Of its record. */
    lengthOf: (entry: number): number => field(entry, LENGTH),
    /** Of its id and its record. */
    sizeOf: (entry: number): number => field(entry, ID_LENGTH) + Math.max(0, field(entry, LENGTH)),
    idOf: (entry: number): string => bytes.toString('latin1', field(entry, START), recordAt(entry)),
    /** The entry, with room for a record of so many bytes, which is to be written at `recordAt`; ABSENT: there is none. */
    put(hash: number, id: string, length: number): number {
      let entry = index.find(hash, id)
      if (entry === NO_ENTRY) entry = add(hash, id, roomFor(length))
      else if (length > field(entry, ROOM)) move(entry, roomFor(length))
      setField(entry, LENGTH, length)
      return entry
    },
    /** There is no record any more. */
    setAbsent(entry: number): void {
      setField(entry, LENGTH, ABSENT)
    },
    /** Whether it was not. */
    markDirty(entry: number): boolean {
      if (field(entry, IS_DIRTY) === 1) return false
      setField(entry, IS_DIRTY, 1)
      return true
    },
    markClean(entry: number): void {
      setField(entry, IS_DIRTY, 0)
    },
  }
}

export type Generation = ReturnType<typeof createGeneration>

/** Copies an entry with its record from another generation; returns the entry it is here. */
export function copyInto(to: Generation, hash: number, id: string, entry: number, from: Generation): number {
  const length = from.lengthOf(entry)
  const copy = to.put(hash, id, length)
  const at = from.recordAt(entry)
  if (length !== ABSENT) from.bytes().copy(to.bytes(), to.recordAt(copy), at, at + length)
  return copy
}
