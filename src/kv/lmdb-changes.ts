// What the commits of one transaction have changed, as the later ones of it must find it: LMDB shows them the transaction before.

import type { Prepared } from './kv.ts'
import { eachPut } from './lmdb-commit.ts'
import { NEVER, type RecordHeader } from './record.ts'

/** New values of counters, by their keys as text. */
export type Sums = ReadonlyMap<string, readonly [key: Buffer, sum: number]>

export interface Changes {
  /** What was written with versions from the one behind `before` on, in the order puts, drops, sums. */
  add(prepared: Prepared, sums: Sums, before: number): void
  drop(key: Uint8Array): void
  /** null: it is gone; undefined: nobody changed it. */
  of(key: Uint8Array): RecordHeader | null | undefined
  /** Another transaction begins. */
  clear(): void
}

/** Map keys compare by value, buffers do not. */
export const textOf = (key: Uint8Array): string => Buffer.prototype.latin1Slice.call(key, 0, key.length)

export function createChanges(): Changes {
  const changed = new Map<string, RecordHeader | null>()
  /** Not in the map yet: checkpoints change thousands of entries, and seldom share their transaction with a commit that asks. */
  let added: (() => void)[] = []

  function note({ guard, put, drop }: Prepared, sums: Sums, before: number): void {
    let version = before
    const written = (key: Uint8Array, expiresAt: number, counter: number | null) => {
      version += 1
      changed.set(textOf(key), { version, expiresAt, counter })
    }
    if (guard) changed.set(textOf(guard.key), { version: 0, expiresAt: NEVER, counter: guard.next })
    eachPut(put, (key, _record, expiresAt) => written(key, expiresAt, null))
    for (const key of drop) changed.set(textOf(key), null)
    for (const [key, sum] of sums.values()) written(key, NEVER, sum)
  }

  function catchUp(): void {
    if (added.length === 0) return
    for (const one of added) one()
    added = []
  }

  return {
    add: (prepared, sums, before) => void added.push(() => note(prepared, sums, before)),
    drop(key) {
      catchUp()
      changed.set(textOf(key), null)
    },
    of(key) {
      catchUp()
      return changed.size === 0 ? undefined : changed.get(textOf(key))
    },
    clear() {
      changed.clear()
      added = []
    },
  }
}
