// The bytes of one stored record: kind, version, expiry, then the value. Values themselves are the same bytes everywhere.
import { Packr } from 'msgpackr'
import { Unreadable } from '../lib/failures.ts'
import { VALUE_BYTES_MAX, type Version } from './kv.ts'

const PACKED = 0
const RAW = 1
export const COUNTER = 2
const VERSION_AT = 1
const EXPIRY_AT = 7
const VALUE_AT = 13
const UINT48_BYTES = 6

/** No expiry. */
export const NEVER = 0

export interface RecordHeader {
  readonly version: Version
  /** Milliseconds since the Unix epoch, or NEVER. */
  readonly expiresAt: number
  /** The value of a counter; null for any other record. */
  readonly counter: number | null
}

// Without shared structures every record can be read on its own, by any process and after any restore.
const packr = new Packr({ useRecords: false, copyBuffers: true })

/** A value as bytes, and what kind of bytes they are. */
export function encodeBody(value: unknown): { readonly kind: number; readonly body: Uint8Array } {
  const raw = value instanceof Uint8Array
  const body = raw ? value : packr.pack(value)
  if (body.length > VALUE_BYTES_MAX) {
    throw new RangeError(`a value takes up to ${VALUE_BYTES_MAX} bytes, not ${body.length}`)
  }
  return { kind: raw ? RAW : PACKED, body }
}

/** A fresh value that shares no memory with `bytes`, of which it is the part from `start` to `end`. */
export function decodeBody(kind: number, bytes: Uint8Array, start: number, end: number): unknown {
  if (kind === PACKED) return packr.unpack(bytes, { start, end })
  if (kind !== RAW) throw new Unreadable(`a stored record of unknown kind ${kind}`)
  const value = new Uint8Array(end - start)
  value.set(new Uint8Array(bytes.buffer, bytes.byteOffset + start, end - start))
  return value
}

/** Encodes a value with room for its version, which `setVersion` fills in. */
export function encodeValue(value: unknown, expiresAt: number): Buffer {
  const { kind, body } = encodeBody(value)
  const bytes = Buffer.allocUnsafe(VALUE_AT + body.length)
  bytes[0] = kind
  bytes.writeUIntBE(expiresAt, EXPIRY_AT, UINT48_BYTES)
  bytes.set(body, VALUE_AT)
  return bytes
}

export function encodeCounter(value: number): Buffer {
  const bytes = Buffer.allocUnsafe(VALUE_AT + 8)
  bytes[0] = COUNTER
  bytes.writeUIntBE(NEVER, EXPIRY_AT, UINT48_BYTES)
  bytes.writeDoubleBE(value, VALUE_AT)
  return bytes
}

export function setVersion(bytes: Buffer, version: Version): void {
  bytes.writeUIntBE(version, VERSION_AT, UINT48_BYTES)
}

/** `bytes` may be a shared buffer that the next read overwrites. */
export function decodeHeader(bytes: Uint8Array): RecordHeader {
  return {
    version: uint48(bytes, VERSION_AT),
    expiresAt: uint48(bytes, EXPIRY_AT),
    counter: bytes[0] === COUNTER ? readCounter(bytes) : null,
  }
}

/** `length` because a shared buffer may be longer than the record. */
export function decodeValue(bytes: Uint8Array, length: number): unknown {
  return bytes[0] === COUNTER ? readCounter(bytes) : decodeBody(bytes[0] as number, bytes, VALUE_AT, length)
}

function readCounter(bytes: Uint8Array): number {
  return new DataView(bytes.buffer, bytes.byteOffset + VALUE_AT, 8).getFloat64(0)
}

function uint48(bytes: Uint8Array, at: number): number {
  const high = ((bytes[at] as number) << 8) | (bytes[at + 1] as number)
  const low =
    (((bytes[at + 2] as number) << 24) |
      ((bytes[at + 3] as number) << 16) |
      ((bytes[at + 4] as number) << 8) |
      (bytes[at + 5] as number)) >>>
    0
  return high * 0x100000000 + low
}
