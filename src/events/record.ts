// A record of the `events` topic: decisions of one contiguous range of identifications, with all that is needed to apply
// them to state again (architecture §4, R1) and, behind the header, the rows as ClickHouse will read them.

import { Packr } from 'msgpackr'
import type { Env } from '../domain/event.ts'
import type { KeyKind } from '../domain/workspace.ts'
import type { DecidedEffect } from '../records/effects.ts'
import type { Erasure } from '../records/erasures.ts'

/** What applying one decision to state needs. Rows are found by `rowBytes`, in order. */
export interface DecidedItem {
  /** Seq of the identification in `identifications/p`. */
  readonly seq: number
  readonly requestId: string
  readonly workspace: string
  readonly env: Env
  readonly visitorId: string
  /** The visitor's whole packed state after this event. */
  readonly state: Uint8Array
  /** Match-index keys under which the visitor is to be found from now on. */
  readonly indexed: readonly string[]
  /** [ruleId, 1 when live, 0 when monitored] of every rule that matched. */
  readonly matches: readonly (readonly [string, number])[]
  /** 53-bit hash of (workspace, env, nonce), 0 without a nonce; 48-bit hash of the body. */
  readonly nonceHash: number
  readonly bodyHash: number
  readonly acceptedAt: number
  readonly keyKind: KeyKind
  readonly replyTo: string
  readonly rowBytes: number
  /** Side effects of the deciding rule. Webhook and slack are notifications for whoever delivers them. */
  readonly effects?: readonly DecidedEffect[]
}

/** A decided erasure: applying it to state needs to know where the visitor was indexed. */
export interface DecidedErasure extends Erasure {
  readonly indexed: readonly string[]
}

export interface EventsRecord {
  /** Source range in `identifications/p`, both ends included; covers skipped records (replays, dead ones) as well. */
  readonly from: number
  readonly to: number
  readonly items: readonly DecidedItem[]
  /** An erasure has a record of its own, without items. */
  readonly erasure?: DecidedErasure
  /** JSONCompactEachRow lines, each with its newline. */
  readonly rows: Uint8Array
}

const FORMAT = 1
const FORMAT_ERASURE = 2
/** Set in the length of a header that carries an erasure, so that the sink finds those without decoding the others. */
const ERASURE_BIT = 0x80000000
// Records without shared structures: each must be readable by itself, by any later build.
const packr = new Packr({ useRecords: false, encodeUndefinedAsNil: true })
const utf8 = new TextDecoder()

export function encodeEventsRecord(record: EventsRecord): Uint8Array {
  const { erasure } = record
  const header = packr.pack([
    erasure === undefined ? FORMAT : FORMAT_ERASURE,
    record.from,
    record.to,
    record.items.map((i) => [
      i.seq,
      i.requestId,
      i.workspace,
      i.env,
      i.visitorId,
      i.state,
      i.indexed,
      i.matches,
      i.nonceHash,
      i.bodyHash,
      i.acceptedAt,
      i.keyKind,
      i.replyTo,
      i.rowBytes,
      ...(i.effects === undefined || i.effects.length === 0 ? [] : [i.effects]),
    ]),
    ...(erasure === undefined ? [] : [erasure]),
  ])
  const bytes = new Uint8Array(4 + header.length + record.rows.length)
  new DataView(bytes.buffer).setUint32(0, header.length + (erasure === undefined ? 0 : ERASURE_BIT))
  bytes.set(header, 4)
  bytes.set(record.rows, 4 + header.length)
  return bytes
}

type PackedItem = [
  number,
  string,
  string,
  Env,
  string,
  Uint8Array,
  string[],
  [string, number][],
  number,
  number,
  number,
  KeyKind,
  string,
  number,
  (readonly DecidedEffect[])?,
]

const lengthOf = (bytes: Uint8Array): number =>
  new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength).getUint32(0)
const headerBytesOf = (bytes: Uint8Array): number => lengthOf(bytes) & ~ERASURE_BIT

/** Throws on bytes that are no such record. */
export function decodeEventsRecord(bytes: Uint8Array): EventsRecord {
  const headerBytes = headerBytesOf(bytes)
  const [format, from, to, packed, erasure] = packr.unpack(bytes.subarray(4, 4 + headerBytes)) as [
    number,
    number,
    number,
    PackedItem[],
    DecidedErasure | undefined,
  ]
  if (format !== FORMAT && format !== FORMAT_ERASURE)
    throw new Error(`events record format ${format} is not known to this build`)
  const items = packed.map((i) => ({
    seq: i[0],
    requestId: i[1],
    workspace: i[2],
    env: i[3],
    visitorId: i[4],
    state: i[5],
    indexed: i[6],
    matches: i[7],
    nonceHash: i[8],
    bodyHash: i[9],
    acceptedAt: i[10],
    keyKind: i[11],
    replyTo: i[12],
    rowBytes: i[13],
    ...(i[14] === undefined ? {} : { effects: i[14] }),
  }))
  return { from, to, items, ...(erasure && { erasure }), rows: bytes.subarray(4 + headerBytes) }
}

/** The rows alone, without decoding the items. */
export function rowsOf(bytes: Uint8Array): Uint8Array {
  return bytes.subarray(4 + headerBytesOf(bytes))
}

/** The erasure of a record, without decoding the items of those that have none. */
export function erasureOf(bytes: Uint8Array): DecidedErasure | null {
  return lengthOf(bytes) >= ERASURE_BIT ? (decodeEventsRecord(bytes).erasure ?? null) : null
}

/** The row of the item at `index`, parsed. */
export function rowAt(record: EventsRecord, index: number): readonly (string | number | boolean | readonly string[])[] {
  let start = 0
  for (let i = 0; i < index; i++) start += record.items[i]?.rowBytes ?? 0
  const end = start + (record.items[index]?.rowBytes ?? 0)
  return JSON.parse(utf8.decode(record.rows.subarray(start, end)))
}
