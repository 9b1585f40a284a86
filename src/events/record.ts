// A record of the `events` topic: decisions of one contiguous range of identifications, with all that is needed to apply
// them to state again (architecture §4, R1) and, behind the header, the rows as ClickHouse will read them.

import { Packr } from 'msgpackr'
import type { Env } from '../domain/event.ts'
import type { KeyKind } from '../domain/workspace.ts'

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
}

export interface EventsRecord {
  /** Source range in `identifications/p`, both ends included; covers skipped records (replays, dead ones) as well. */
  readonly from: number
  readonly to: number
  readonly items: readonly DecidedItem[]
  /** JSONCompactEachRow lines, each with its newline. */
  readonly rows: Uint8Array
}

const FORMAT = 1
// Records without shared structures: each must be readable by itself, by any later build.
const packr = new Packr({ useRecords: false, encodeUndefinedAsNil: true })
const utf8 = new TextDecoder()

export function encodeEventsRecord(record: EventsRecord): Uint8Array {
  const header = packr.pack([
    FORMAT,
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
    ]),
  ])
  const bytes = new Uint8Array(4 + header.length + record.rows.length)
  new DataView(bytes.buffer).setUint32(0, header.length)
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
]

/** Throws on bytes that are no such record. */
export function decodeEventsRecord(bytes: Uint8Array): EventsRecord {
  const headerBytes = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength).getUint32(0)
  const [format, from, to, packed] = packr.unpack(bytes.subarray(4, 4 + headerBytes)) as [
    number,
    number,
    number,
    PackedItem[],
  ]
  if (format !== FORMAT) throw new Error(`events record format ${format} is not known to this build`)
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
  }))
  return { from, to, items, rows: bytes.subarray(4 + headerBytes) }
}

/** The rows alone, without decoding the items. */
export function rowsOf(bytes: Uint8Array): Uint8Array {
  const headerBytes = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength).getUint32(0)
  return bytes.subarray(4 + headerBytes)
}

/** The row of the item at `index`, parsed. */
export function rowAt(record: EventsRecord, index: number): readonly (string | number | boolean | readonly string[])[] {
  let start = 0
  for (let i = 0; i < index; i++) start += record.items[i]?.rowBytes ?? 0
  const end = start + (record.items[index]?.rowBytes ?? 0)
  return JSON.parse(utf8.decode(record.rows.subarray(start, end)))
}
