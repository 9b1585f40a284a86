// How scopes, collections and ids become the bytes that the embedded kv sorts by. Lengths come first, so that no
// character of one part can be taken for the border to the next.
import { checkKeyBytes, checkScope, textBytes } from './checks.ts'
import type { KvKey, Scope } from './kv.ts'

const RECORD_KIND = 0x10
const POSITION_KIND = 0x11
const EXPIRY_KIND = 0x12
const TIME_BYTES = 6

/** Above every id: no byte of UTF-8 is this large. */
const AFTER_ALL = Buffer.from([0xff])
const JUST_ABOVE = Buffer.from([0x00])

/** The bytes all keys of a collection begin with. */
export function collectionPrefix(scope: Scope, collection: string): Buffer {
  checkScope(scope)
  return prefix(RECORD_KIND, scope, collection)
}

/** The key of a record. `start` is its collection's prefix. */
function recordKey(start: Buffer, id: string): Buffer {
  const idBytes = textBytes(id)
  // The prefix carries five bytes that are ours: the kind and two lengths.
  checkKeyBytes(start.length - 5 + idBytes)
  const key = Buffer.allocUnsafe(start.length + idBytes)
  key.set(start)
  key.write(id, start.length)
  return key
}

/** Builds record keys of one scope, reusing the prefix while the collection stays the same. */
export function keyBuilder(scope: Scope): (key: KvKey) => Buffer {
  let collection: string | null = null
  let start: Buffer = AFTER_ALL
  return (key) => {
    if (key[0] !== collection) {
      start = collectionPrefix(scope, key[0])
      collection = key[0]
    }
    return recordKey(start, key[1])
  }
}

export function idOf(key: Buffer, start: Buffer): string {
  return key.toString('utf8', start.length)
}

/** Bounds for LMDB: `low` inclusive and `high` exclusive, or the other way round for a walk from high to low. */
export function rangeBounds(start: Buffer, after: string | undefined, upTo: string | undefined, reverse: boolean) {
  const low = after === undefined || after === '' ? start : recordKey(start, after)
  const high = upTo === undefined ? Buffer.concat([start, AFTER_ALL]) : recordKey(start, upTo)
  if (reverse) return { start: high, end: low }
  return { start: Buffer.concat([low, JUST_ABOVE]), end: Buffer.concat([high, JUST_ABOVE]) }
}

export function positionKey(scope: Scope, source: string): Buffer {
  checkScope(scope)
  return prefix(POSITION_KIND, scope, source)
}

/** Sorts records by the time they are to be removed. */
export function expiryKey(dueAt: number, record: Buffer): Buffer {
  const key = Buffer.allocUnsafe(1 + TIME_BYTES + record.length)
  key[0] = EXPIRY_KIND
  key.writeUIntBE(dueAt, 1, TIME_BYTES)
  key.set(record, 1 + TIME_BYTES)
  return key
}

/** Bounds of everything that is due up to `now`. */
export function expiredBounds(now: number) {
  const end = Buffer.allocUnsafe(1 + TIME_BYTES)
  end[0] = EXPIRY_KIND
  end.writeUIntBE(now + 1, 1, TIME_BYTES)
  return { start: Buffer.from([EXPIRY_KIND]), end }
}

export const isExpiryKey = (key: Buffer): boolean => key[0] === EXPIRY_KIND

export function parseExpiryKey(key: Buffer): { readonly dueAt: number; readonly record: Buffer } {
  return { dueAt: key.readUIntBE(1, TIME_BYTES), record: Buffer.from(key.subarray(1 + TIME_BYTES)) }
}

function prefix(kind: number, scope: string, name: string): Buffer {
  const scopeBytes = textBytes(scope)
  const nameBytes = textBytes(name)
  checkKeyBytes(scopeBytes + nameBytes)
  const bytes = Buffer.allocUnsafe(5 + scopeBytes + nameBytes)
  bytes[0] = kind
  bytes.writeUInt16BE(scopeBytes, 1)
  bytes.write(scope, 3)
  bytes.writeUInt16BE(nameBytes, 3 + scopeBytes)
  bytes.write(name, 5 + scopeBytes)
  return bytes
}
