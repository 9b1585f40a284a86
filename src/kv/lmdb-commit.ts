// One commit as the keys and records of LMDB, and the bytes it changes there: made on whatever thread asks for the commit, and
// written by the one that has the environment.

import { diskBytes } from '../lib/lmdb.ts'
import { beginPacking, putRaw, takePacked } from '../lib/packing.ts'
import { checkCommit, checkTtl } from './checks.ts'
import { keyBuilder, positionKey } from './keys.ts'
import type { Commit, KvKey, Prepared, Put } from './kv.ts'
import { encodeValue, NEVER } from './record.ts'

/** Visitors are changed here and there: every changed record costs a page. */
export const PAGE_BYTES = 4_096
export const NUMBER_BYTES = 8

/** Before a key and its record: their lengths, and whether it is a renewal. */
const RECORD_LENGTH_AT = 2
const IS_RENEWAL_AT = 6
const FRONT_BYTES = 7
const front = Buffer.alloc(FRONT_BYTES)

function layOut(build: (key: KvKey) => Buffer, puts: readonly Put[], now: number): Pick<Prepared, 'put' | 'bytes'> {
  let bytes = 0
  beginPacking()
  for (const { key, value, ttlMs, isRenewal } of puts) {
    const expiresAt = ttlMs === undefined ? NEVER : now + checkTtl(ttlMs)
    const built = build(key)
    const record = encodeValue(value, expiresAt)
    front.writeUInt16BE(built.length, 0)
    front.writeUInt32BE(record.length, RECORD_LENGTH_AT)
    front[IS_RENEWAL_AT] = isRenewal === true ? 1 : 0
    putRaw(front)
    putRaw(built)
    putRaw(record)
    bytes += diskBytes(built.length, record.length, PAGE_BYTES)
  }
  return { put: takePacked(), bytes }
}

/** Calls `take` with each key and its record, which are parts of `put`, and `Put.isRenewal`. */
export function eachPut(put: Uint8Array, take: (key: Buffer, record: Buffer, isRenewal: boolean) => void): void {
  const from = Buffer.from(put.buffer, put.byteOffset, put.byteLength)
  for (let at = 0; at < from.length; ) {
    const recordAt = at + FRONT_BYTES + from.readUInt16BE(at)
    const end = recordAt + from.readUInt32BE(at + RECORD_LENGTH_AT)
    take(from.subarray(at + FRONT_BYTES, recordAt), from.subarray(recordAt, end), from[at + IS_RENEWAL_AT] === 1)
    at = end
  }
}

function prepareCommit(commit: Commit, now: number): Prepared {
  const { scope, guard, check = [], put = [], drop = [], add = [] } = commit
  checkCommit(commit)
  const build = keyBuilder(scope)
  const puts = layOut(build, put, now)
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

/** Throws RangeError where one of them is a commit that no kv takes. `nowMs`: when times to live begin. */
export const prepareCommits = (commits: readonly Commit[], nowMs: number): Prepared[] =>
  commits.map((commit) => prepareCommit(commit, nowMs))
