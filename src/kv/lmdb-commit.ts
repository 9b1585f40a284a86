// One commit as the keys and records of LMDB, and the bytes it changes there: made on whatever thread asks for the commit, and
// written by the one that has the environment.

import { setImmediate } from 'node:timers/promises'
import { diskBytes } from '../lib/lmdb.ts'
import { beginPacking, putRaw, takePacked } from '../lib/packing.ts'
import { checkCommit, checkKeys, checkTtl } from './checks.ts'
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

/** A thread lays out so many at a time: about two milliseconds. */
const PUTS_AT_ONCE = 500

interface LaidOut {
  readonly bytes: number
  readonly put: Uint8Array
  readonly count: number
}

/** Lays out the next of them. */
function layOut(build: (key: KvKey) => Buffer, puts: Iterator<Put>, now: number): LaidOut {
  let bytes = 0
  let count = 0
  beginPacking()
  while (count < PUTS_AT_ONCE) {
    const { done, value: one } = puts.next()
    if (done === true) break
    count++
    const { key, value, ttlMs, isRenewal } = one
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
  return { put: takePacked(), bytes, count }
}

/** Calls `take` with each key and its record, which are views of `parts`, and `Put.isRenewal`. */
export function eachPut(parts: Prepared['put'], take: (key: Buffer, record: Buffer, isRenewal: boolean) => void): void {
  for (const part of parts) {
    const from = Buffer.from(part.buffer, part.byteOffset, part.byteLength)
    for (let at = 0; at < from.length; ) {
      const recordAt = at + FRONT_BYTES + from.readUInt16BE(at)
      const end = recordAt + from.readUInt32BE(at + RECORD_LENGTH_AT)
      take(from.subarray(at + FRONT_BYTES, recordAt), from.subarray(recordAt, end), from[at + IS_RENEWAL_AT] === 1)
      at = end
    }
  }
}

/** Stops wherever enough was done at once. */
function* preparing(commits: readonly Commit[], nowMs: number): Generator<undefined, Prepared[]> {
  const prepared: Prepared[] = []
  for (const commit of commits) {
    const { scope, guard, check = [], put = [], drop = [], add = [] } = commit
    checkCommit(commit)
    const build = keyBuilder(scope)
    const added = add.map(([key, by]) => [build(key), by] as const)
    let bytes = added.reduce((sum, [key]) => sum + diskBytes(key.length, NUMBER_BYTES, PAGE_BYTES), 0)
    const parts: Uint8Array[] = []
    const puts = put[Symbol.iterator]()
    for (let count = 0, isMore = true; isMore; ) {
      if (count > 0) yield
      const laidOut = layOut(build, puts, nowMs)
      count += laidOut.count
      checkKeys(commit, count)
      isMore = laidOut.count === PUTS_AT_ONCE
      bytes += laidOut.bytes
      if (laidOut.count > 0) parts.push(laidOut.put)
    }
    prepared.push({
      bytes,
      guard: guard ? { key: positionKey(scope, guard.source), expect: guard.expect, next: guard.next } : null,
      check: check.map(([key, expected]) => [build(key), expected] as const),
      put: parts,
      drop: drop.map(build),
      add: added,
    })
  }
  return prepared
}

/** Throws RangeError where one of them is a commit that no kv takes. `nowMs`: when times to live begin. */
export function prepareCommits(commits: readonly Commit[], nowMs: number): Prepared[] {
  const steps = preparing(commits, nowMs)
  for (;;) {
    const { done, value } = steps.next()
    if (done === true) return value
  }
}

/** The same in steps, between which others have the thread. */
export async function prepareInTurns(commits: readonly Commit[], nowMs: number): Promise<Prepared[]> {
  const steps = preparing(commits, nowMs)
  for (;;) {
    const { done, value } = steps.next()
    if (done === true) return value
    await setImmediate()
  }
}
