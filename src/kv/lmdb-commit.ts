// One commit as the keys and records of LMDB, and the bytes it changes there: made on whatever thread asks for the commit, and
// written by the one that has the environment.

import { diskBytes } from '../lib/lmdb.ts'
import { checkCommit, checkTtl } from './checks.ts'
import { keyBuilder, keyWriter, positionKey } from './keys.ts'
import type { Commit, Prepared, Put, Scope } from './kv.ts'
import { encodeBody, NEVER, recordBytes, writeRecord } from './record.ts'

/** Visitors are changed here and there: every changed record costs a page. */
export const PAGE_BYTES = 4_096
export const NUMBER_BYTES = 8

const RECORD_LENGTH_AT = 2
const EXPIRES_AT = 6
const KEY_AT = 12
const TIME_BYTES = 6
const SCRATCH_BYTES = 64 * 1024
/** A checkpoint leaves room for the next one; what is larger than most goes again. */
const SCRATCH_BYTES_MAX = 4 * 1024 * 1024
const NO_PUTS = new Uint8Array(0)

let scratch = Buffer.allocUnsafeSlow(SCRATCH_BYTES)

function scratchOf(bytes: number): Buffer {
  if (bytes <= scratch.length) return scratch
  const larger = Buffer.allocUnsafeSlow(Math.max(bytes, 2 * scratch.length))
  larger.set(scratch)
  scratch = larger
  return scratch
}

/** Each as its key's length, its record's, and when it expires, then both, with room in the record for its version. */
function layOut(scope: Scope, puts: readonly Put[], now: number): { readonly put: Uint8Array; readonly bytes: number } {
  if (puts.length === 0) return { put: NO_PUTS, bytes: 0 }
  const keys = keyWriter(scope)
  let used = 0
  let onDisk = 0
  for (const { key, value, ttlMs } of puts) {
    const expiresAt = ttlMs === undefined ? NEVER : now + checkTtl(ttlMs)
    const body = encodeBody(value)
    const keyBytes = keys.lengthOf(key)
    const length = recordBytes(body)
    const to = scratchOf(used + KEY_AT + keyBytes + length)
    to.writeUInt16BE(keyBytes, used)
    to.writeUInt32BE(length, used + RECORD_LENGTH_AT)
    to.writeUIntBE(expiresAt, used + EXPIRES_AT, TIME_BYTES)
    keys.write(to, used + KEY_AT)
    writeRecord(to, used + KEY_AT + keyBytes, body, expiresAt)
    used += KEY_AT + keyBytes + length
    onDisk += diskBytes(keyBytes, length, PAGE_BYTES)
  }
  const put = new Uint8Array(scratch.subarray(0, used))
  if (scratch.length > SCRATCH_BYTES_MAX) scratch = Buffer.allocUnsafeSlow(SCRATCH_BYTES)
  return { put, bytes: onDisk }
}

/** Calls `take` with each key, its record, and when it expires or NEVER; both are parts of `put`. */
export function eachPut(put: Uint8Array, take: (key: Buffer, record: Buffer, expiresAt: number) => void): void {
  const from = Buffer.from(put.buffer, put.byteOffset, put.byteLength)
  for (let at = 0; at < from.length; ) {
    const recordAt = at + KEY_AT + from.readUInt16BE(at)
    const end = recordAt + from.readUInt32BE(at + RECORD_LENGTH_AT)
    const expiresAt = from.readUIntBE(at + EXPIRES_AT, TIME_BYTES)
    take(from.subarray(at + KEY_AT, recordAt), from.subarray(recordAt, end), expiresAt)
    at = end
  }
}

/** Throws RangeError for a commit that no kv takes. */
export function prepareCommit(commit: Commit, now: number): Prepared {
  const { scope, guard, check = [], put = [], drop = [], add = [] } = commit
  checkCommit(commit)
  const build = keyBuilder(scope)
  const puts = layOut(scope, put, now)
  const added = add.map(([key, by]) => [build(key), by] as const)
  return {
    bytes: added.reduce((sum, [key]) => sum + diskBytes(key.length, NUMBER_BYTES, PAGE_BYTES), puts.bytes),
    guard: guard ? { key: positionKey(scope, guard.source), expect: guard.expect, next: guard.next } : null,
    check: check.map(([key, expected]) => [build(key), expected] as const),
    put: puts.put,
    drop: drop.map(build),
    add: added,
  }
}
