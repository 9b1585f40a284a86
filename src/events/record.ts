// A record of the `events` topic: decisions of one contiguous range of identifications, with all that is needed to apply
// them to state again (src/README.md, The protocol, 1) and, behind the header, the rows as ClickHouse will read them.

import { Packr } from 'msgpackr'
import { beginPacking, copyPacked, packedLength, packNumber, putArray, putRaw } from '../lib/packing.ts'
import type { Aliasing } from '../records/aliases.ts'
import type { DecidedAnnotation } from '../records/annotations.ts'
import type { ErasedNames, RecordedErasure } from '../records/erasures.ts'
import type { Expiry } from '../records/expiry.ts'
import type { Splitting } from '../records/splits.ts'
import type { Unnaming } from '../records/unnaming.ts'
import { type DecidedItem, itemOf, type PackedItem, putItem } from './packed-items.ts'

/** A decided erasure: applying it to state needs to know where the visitor was indexed. */
export interface DecidedErasure extends RecordedErasure, ErasedNames {
  readonly indexed: readonly string[]
  /** What it takes with it of counters of addresses and accounts, as numbers; absent when nothing. */
  readonly counted?: readonly number[]
}

/** Visitors who are forgotten, each with the keys under which it was to be found. */
export interface DecidedExpiry extends Omit<Expiry, 'visitorIds'> {
  /** `rest`: its whole packed record, where that still tells whose its tokens are. */
  readonly visitors: readonly (readonly [visitorId: string, indexed: readonly string[], rest?: Uint8Array])[]
}

/** From here on the events of a visitor are another's. */
export interface DecidedAliasing extends Aliasing {
  /** The visitor's whole packed record. */
  readonly state: Uint8Array
}

/** From here on some visits of a record are a new visitor's. */
export interface DecidedSplit extends Omit<Splitting, 'parting'> {
  /** Both packed records. */
  readonly state: Uint8Array
  readonly toState: Uint8Array
  /** Keys under which the new visitor is found from now on, and those under which the first is not any more. */
  readonly toIndexed: readonly string[]
  readonly dropped: readonly string[]
}

/** From here on a record says nothing of somebody who was erased. */
export interface DecidedUnnaming extends Omit<Unnaming, 'erased'> {
  /** The whole packed record. */
  readonly state: Uint8Array
}

export interface EventsRecord {
  /** Source range in `identifications/p`, both ends included; covers skipped records (replays, dead ones) as well. */
  readonly from: number
  readonly to: number
  readonly items: readonly DecidedItem[]
  /** An erasure has a record of its own, without items. */
  readonly erasure?: DecidedErasure
  /** As an erasure has. */
  readonly aliasing?: DecidedAliasing
  /** As an erasure has. */
  readonly split?: DecidedSplit
  readonly annotation?: DecidedAnnotation
  /** As an erasure has. */
  readonly expiry?: DecidedExpiry
  /** As an erasure has. */
  readonly unnaming?: DecidedUnnaming
  /** JSONCompactEachRow lines, each with its newline. */
  readonly rows: Uint8Array
}

const FORMAT = 1
const FORMAT_ERASURE = 2
const FORMAT_ALIASING = 3
const FORMAT_ANNOTATION = 4
const FORMAT_SPLIT = 5
const FORMAT_EXPIRY = 6
const FORMAT_UNNAMING = 7
/** Set in the length of a header that carries something for the sink, so that it finds those without decoding the others. */
const ERASURE_BIT = 0x80000000
const ANNOTATION_BIT = 0x40000000
const SPLIT_BIT = 0x20000000
const LENGTH_BITS = 0x1fffffff
// Records without shared structures: each must be readable by itself, by any later build.
const packr = new Packr({ useRecords: false, encodeUndefinedAsNil: true })
const utf8 = new TextDecoder()

function commandOf({ erasure, aliasing, split, annotation, expiry, unnaming }: EventsRecord) {
  if (erasure !== undefined) return { format: FORMAT_ERASURE, command: erasure, bit: ERASURE_BIT }
  if (aliasing !== undefined) return { format: FORMAT_ALIASING, command: aliasing, bit: 0 }
  if (split !== undefined) return { format: FORMAT_SPLIT, command: split, bit: SPLIT_BIT }
  if (annotation !== undefined) return { format: FORMAT_ANNOTATION, command: annotation, bit: ANNOTATION_BIT }
  if (expiry !== undefined) return { format: FORMAT_EXPIRY, command: expiry, bit: 0 }
  if (unnaming !== undefined) return { format: FORMAT_UNNAMING, command: unnaming, bit: 0 }
  return { format: FORMAT, command: undefined, bit: 0 }
}

export function encodeEventsRecord(record: EventsRecord): Uint8Array {
  const { format, command, bit } = commandOf(record)
  const { items, rows } = record
  beginPacking()
  putArray(command === undefined ? 4 : 5)
  packNumber(format)
  packNumber(record.from)
  packNumber(record.to)
  putArray(items.length)
  for (const item of items) putItem(item)
  if (command !== undefined) putRaw(packr.pack(command))
  const length = packedLength()
  const bytes = new Uint8Array(4 + length + rows.length)
  new DataView(bytes.buffer).setUint32(0, length + bit)
  copyPacked(bytes, 4)
  bytes.set(rows, 4 + length)
  return bytes
}

const lengthOf = (bytes: Uint8Array): number =>
  new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength).getUint32(0)
const headerBytesOf = (bytes: Uint8Array): number => lengthOf(bytes) & LENGTH_BITS

type OfCommand = (command: unknown) => Partial<EventsRecord>
const COMMANDS: ReadonlyMap<number, OfCommand> = new Map<number, OfCommand>([
  [FORMAT, () => ({})],
  [FORMAT_ERASURE, (command) => ({ erasure: command as DecidedErasure })],
  [FORMAT_ALIASING, (command) => ({ aliasing: command as DecidedAliasing })],
  [FORMAT_EXPIRY, (command) => ({ expiry: command as DecidedExpiry })],
  [FORMAT_UNNAMING, (command) => ({ unnaming: command as DecidedUnnaming })],
  [FORMAT_SPLIT, (command) => ({ split: command as DecidedSplit })],
  [FORMAT_ANNOTATION, (command) => ({ annotation: command as DecidedAnnotation })],
])

/** Throws on bytes that are no such record. */
export function decodeEventsRecord(bytes: Uint8Array): EventsRecord {
  const headerBytes = headerBytesOf(bytes)
  const [format, from, to, packed, command] = packr.unpack(bytes.subarray(4, 4 + headerBytes)) as [
    number,
    number,
    number,
    PackedItem[],
    unknown,
  ]
  const ofCommand = COMMANDS.get(format)
  if (ofCommand === undefined) throw new Error(`events record format ${format} is not known to this build`)
  const items = packed.map(itemOf)
  return { from, to, items, ...ofCommand(command), rows: bytes.subarray(4 + headerBytes) }
}

/** The rows alone, without decoding the items. */
export function rowsOf(bytes: Uint8Array): Uint8Array {
  return bytes.subarray(4 + headerBytesOf(bytes))
}

/** Whether a record has something for the sink besides rows: an erasure, a split or an annotation. */
export const hasCommand = (bytes: Uint8Array): boolean => lengthOf(bytes) > LENGTH_BITS

/** The erasure of a record, without decoding the items of those that have none. */
export function erasureOf(bytes: Uint8Array): DecidedErasure | null {
  return lengthOf(bytes) >= ERASURE_BIT ? (decodeEventsRecord(bytes).erasure ?? null) : null
}

/** The same for a split. */
export function splitOf(bytes: Uint8Array): DecidedSplit | null {
  const isSplit = (lengthOf(bytes) & SPLIT_BIT) !== 0
  return isSplit ? (decodeEventsRecord(bytes).split ?? null) : null
}

/** The same for its annotation. */
export function annotationOf(bytes: Uint8Array): DecidedAnnotation | null {
  return (lengthOf(bytes) & ANNOTATION_BIT) === 0 ? null : (decodeEventsRecord(bytes).annotation ?? null)
}

/** The row of the item at `index`, parsed. */
export function rowAt(record: EventsRecord, index: number): readonly (string | number | boolean | readonly string[])[] {
  let start = 0
  for (let i = 0; i < index; i++) start += record.items[i]?.rowBytes ?? 0
  const end = start + (record.items[index]?.rowBytes ?? 0)
  return JSON.parse(utf8.decode(record.rows.subarray(start, end)))
}
