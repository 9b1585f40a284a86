// A bounded cache of small records of the kv by id, with what has changed since they were read, outside of the heap: ids and records lie in one
// buffer, what finds them in arrays of numbers. As texts in maps they were what V8's collector had to mark and most of what made a shard's
// heap old (D232). It forgets by generations, as `table.ts` does.

import { NO_ENTRY } from '../lib/hash-index.ts'
import { ABSENT, copyInto, createGeneration, type Generation, hashOf } from './byte-generation.ts'
import { unusedMsMaxOf } from './table.ts'

export interface ByteTable {
  /** Where the record is from now until the next call, in `bytes`; undefined: not loaded. null: known to be absent. */
  find(id: string): Place | null | undefined
  bytes(): Buffer
  /** Whether it is loaded; counts as no use. */
  has(id: string): boolean
  set(id: string, record: Uint8Array | null): void
  /** What the kv has, unless something is known already. */
  load(id: string, record: Uint8Array | null): void
  /** What was set since the last call, to be in the kv before the next one; then the table makes room. `nowMs`: monotonic. */
  takeDirty(nowMs: number): TakenRecords
  dirtyCount(): number
}

/** The table's own object, which the next call changes. */
export interface Place {
  readonly start: number
  readonly end: number
}

/** Records as they were when they were taken; each is made when it is asked for. */
export interface TakenRecords {
  entries(): Iterable<readonly [id: string, record: Buffer]>
  /** Ids of what is absent now. */
  readonly gone: readonly string[]
}

/**
 * After `takeDirty` holds half as many again as `entriesMax` at most, and what it took; of those used last half as many stay.
 */
export function createByteTable(entriesMax: number): ByteTable {
  let young: Generation = createGeneration()
  let old: Generation = createGeneration()
  let dirty: number[] = []
  const unusedMsMax = unusedMsMaxOf(entriesMax)
  let youngSinceMs: number | null = null
  const place = { start: 0, end: 0 }
  /** Whoever is asked for is asked for several times. */
  let lastId = ''
  let lastEntry = NO_ENTRY

  /** Its entry among the young, where it is put when it is used. */
  function entryOf(id: string): number {
    if (lastEntry !== NO_ENTRY && id === lastId) return lastEntry
    const hash = hashOf(id)
    let entry = young.find(hash, id)
    if (entry === NO_ENTRY) {
      const older = old.find(hash, id)
      if (older === NO_ENTRY) return NO_ENTRY
      entry = copyInto(young, hash, id, older, old)
    }
    lastId = id
    lastEntry = entry
    return entry
  }

  function put(id: string, record: Uint8Array | null): number {
    const entry = young.put(hashOf(id), id, record === null ? ABSENT : record.length)
    if (record !== null) young.bytes().set(record, young.recordAt(entry))
    return entry
  }

  function has(id: string): boolean {
    if (lastEntry !== NO_ENTRY && id === lastId) return true
    const hash = hashOf(id)
    return young.find(hash, id) !== NO_ENTRY || old.find(hash, id) !== NO_ENTRY
  }

  /** Taken entries are among the young. They stay until the next call at least, and are in the kv by then. */
  function makeRoom(taken: readonly number[], nowMs: number): void {
    youngSinceMs ??= nowMs
    if (young.size() <= entriesMax / 2 && nowMs - youngSinceMs < unusedMsMax) return
    // What is forgotten leaves its memory to the next generation (D239).
    old.clear()
    if (young.size() > entriesMax) {
      copyAll(taken, young, old)
      young.clear()
    } else [young, old] = [old, young]
    lastEntry = NO_ENTRY
    youngSinceMs = nowMs
  }

  function copyAll(entries: readonly number[], from: Generation, to: Generation): void {
    for (const entry of entries) {
      const id = from.idOf(entry)
      copyInto(to, hashOf(id), id, entry, from)
    }
  }

  return {
    find(id) {
      const entry = entryOf(id)
      if (entry === NO_ENTRY) return undefined
      if (young.isAbsent(entry)) return null
      place.start = young.recordAt(entry)
      place.end = place.start + young.lengthOf(entry)
      return place
    },
    bytes: () => young.bytes(),
    has,
    set(id, record) {
      // An older record is found by nobody any more.
      const entry = put(id, record)
      if (young.markDirty(entry)) dirty.push(entry)
    },
    load(id, record) {
      if (!has(id)) put(id, record)
    },
    takeDirty(nowMs) {
      const taken = dirty
      dirty = []
      const records = takeRecords(young, taken)
      makeRoom(taken, nowMs)
      return records
    },
    dirtyCount: () => dirty.length,
  }
}

/** Before an id: its length and that of the record behind it. */
const RECORD_LENGTH_AT = 2
const FRONT_BYTES = 6

/** A copy of entries of a generation, which are clean from now on. */
function takeRecords(from: Generation, entries: readonly number[]): TakenRecords {
  let length = 0
  for (const entry of entries) length += FRONT_BYTES + from.sizeOf(entry)
  const copy = Buffer.allocUnsafeSlow(length)
  const gone: string[] = []
  let used = 0
  for (const entry of entries) {
    from.markClean(entry)
    if (from.isAbsent(entry)) {
      gone.push(from.idOf(entry))
      continue
    }
    const recordAt = from.recordAt(entry)
    const idLength = recordAt - from.startOf(entry)
    copy.writeUInt16BE(idLength, used)
    copy.writeUInt32BE(from.lengthOf(entry), used + RECORD_LENGTH_AT)
    used += FRONT_BYTES
    used += from.bytes().copy(copy, used, recordAt - idLength, recordAt + from.lengthOf(entry))
  }

  function* read(): Generator<readonly [string, Buffer]> {
    for (let at = 0; at < used; ) {
      const recordAt = at + FRONT_BYTES + copy.readUInt16BE(at)
      const end = recordAt + copy.readUInt32BE(at + RECORD_LENGTH_AT)
      yield [copy.toString('latin1', at + FRONT_BYTES, recordAt), copy.subarray(recordAt, end)]
      at = end
    }
  }

  return { entries: read, gone }
}
