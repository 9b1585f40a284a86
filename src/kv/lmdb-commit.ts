// One commit as the keys and records of LMDB, and the bytes it changes there.

import { diskBytes } from '../lib/lmdb.ts'
import { checkCommit, checkTtl } from './checks.ts'
import { keyBuilder, positionKey } from './keys.ts'
import type { Commit, Version } from './kv.ts'
import { encodeValue, NEVER } from './record.ts'

/** Visitors are changed here and there: every changed record costs a page. */
export const PAGE_BYTES = 4_096
export const NUMBER_BYTES = 8

export interface Prepared {
  readonly bytes: number
  readonly guard: { readonly key: Buffer; readonly expect: number | null; readonly next: number } | null
  readonly check: readonly (readonly [Buffer, Version | null])[]
  readonly put: readonly (readonly [key: Buffer, record: Buffer, expiresAt: number])[]
  readonly drop: readonly Buffer[]
  readonly add: readonly (readonly [Buffer, number])[]
}

export function prepareCommit(commit: Commit, now: number): Prepared {
  const { scope, guard, check = [], put = [], drop = [], add = [] } = commit
  checkCommit(commit)
  const build = keyBuilder(scope)
  let bytes = 0
  const prepared = {
    guard: guard ? { key: positionKey(scope, guard.source), expect: guard.expect, next: guard.next } : null,
    check: check.map(([key, expected]) => [build(key), expected] as const),
    put: put.map(({ key, value, ttlMs }) => {
      const expiresAt = ttlMs === undefined ? NEVER : now + checkTtl(ttlMs)
      const record = encodeValue(value, expiresAt)
      const built = build(key)
      bytes += diskBytes(built.length, record.length, PAGE_BYTES)
      return [built, record, expiresAt] as const
    }),
    drop: drop.map(build),
    add: add.map(([key, by]) => {
      const built = build(key)
      bytes += diskBytes(built.length, NUMBER_BYTES, PAGE_BYTES)
      return [built, by] as const
    }),
  }
  return { ...prepared, bytes }
}
