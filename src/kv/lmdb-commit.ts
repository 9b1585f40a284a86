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

/** The lengths of a key and of its record, which stand behind them. */
const RECORD_LENGTH_AT = 2
const LENGTHS_BYTES = 6
const lengths = Buffer.alloc(LENGTHS_BYTES)

function layOut(build: (key: KvKey) => Buffer, puts: readonly Put[], now: number): Pick<Prepared, 'put' | 'bytes'> {
  let bytes = 0
  beginPacking()
  for (const { key, value, ttlMs } of puts) {
    const expiresAt = ttlMs === undefined ? NEVER : now + checkTtl(ttlMs)
    const built = build(key)
    const record = encodeValue(value, expiresAt)
    lengths.writeUInt16BE(built.length, 0)
    lengths.writeUInt32BE(record.length, RECORD_LENGTH_AT)
    putRaw(lengths)
    putRaw(built)
    putRaw(record)
    bytes += diskBytes(built.length, record.length, PAGE_BYTES)
  }
  return { put: takePacked(), bytes }
}

/** Calls `take` with each key and its record, which are parts of `put`. */
export function eachPut(put: Uint8Array, take: (key: Buffer, record: Buffer) => void): void {
  const from = Buffer.from(put.buffer, put.byteOffset, put.byteLength)
  for (let at = 0; at < from.length; ) {
    const recordAt = at + LENGTHS_BYTES + from.readUInt16BE(at)
    const end = recordAt + from.readUInt32BE(at + RECORD_LENGTH_AT)
    take(from.subarray(at + LENGTHS_BYTES, recordAt), from.subarray(recordAt, end))
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
