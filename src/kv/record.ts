// The bytes of one stored record: kind, version, expiry, then the value.
import { Packr } from 'msgpackr'
import { VALUE_BYTES_MAX, type Version } from './kv.ts'

const PACKED = 0
const RAW = 1
const COUNTER = 2
const VERSION_AT = 1
const EXPIRY_AT = 7
const VALUE_AT = 13
const UINT48_BYTES = 6

/** No expiry. */
export const NEVER = 0

export interface Header {
  readonly version: Version
  /** Milliseconds since the Unix epoch, or NEVER. */
  readonly expiresAt: number
  /** The value of a counter; null for any other record. */
  readonly counter: number | null
}

// Without shared structures every record can be read on its own, by any process and after any restore.
const packr = new Packr({ useRecords: false, copyBuffers: true })

/** Encodes a value with room for its version, which `setVersion` fills in. */
export function encodeValue(value: unknown, expiresAt: number): Buffer {
  const raw = value instanceof Uint8Array
  const body = raw ? value : packr.pack(value)
  if (body.length > VALUE_BYTES_MAX) {
    throw new RangeError(`a value takes up to ${VALUE_BYTES_MAX} bytes, not ${body.length}`)
  }
  const bytes = Buffer.allocUnsafe(VALUE_AT + body.length)
  bytes[0] = raw ? RAW : PACKED
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
export function decodeHeader(bytes: Uint8Array): Header {
  return {
    version: uint48(bytes, VERSION_AT),
    expiresAt: uint48(bytes, EXPIRY_AT),
    counter: bytes[0] === COUNTER ? readCounter(bytes) : null,
  }
}

/** A fresh value that shares no memory with `bytes`; `length` because a shared buffer may be longer than the record. */
export function decodeValue(bytes: Uint8Array, length: number): unknown {
  if (bytes[0] === COUNTER) return readCounter(bytes)
  if (bytes[0] === PACKED) return packr.unpack(bytes, { start: VALUE_AT, end: length })
  const value = new Uint8Array(length - VALUE_AT)
  value.set(new Uint8Array(bytes.buffer, bytes.byteOffset + VALUE_AT, length - VALUE_AT))
  return value
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
