// What the commits of one transaction have changed, as the later ones of it must find it: LMDB shows them the transaction before.

import type { Prepared } from './kv.ts'
import { eachPut } from './lmdb-commit.ts'
import { decodeHeader, NEVER, type RecordHeader } from './record.ts'

/** A counter, as it was written. */
export type WrittenCounter = readonly [key: Buffer, record: Buffer]

export interface Changes {
  /** A commit whose records were written, so that they have their versions: puts, then drops, then counters. */
  add(prepared: Prepared, counters: readonly WrittenCounter[]): void
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

  const note = (key: Uint8Array, record: Uint8Array) => void changed.set(textOf(key), decodeHeader(record))

  function noteCommit({ guard, put, drop }: Prepared, counters: readonly WrittenCounter[]): void {
    if (guard) changed.set(textOf(guard.key), { version: 0, expiresAt: NEVER, counter: guard.next })
    eachPut(put, note)
    for (const key of drop) changed.set(textOf(key), null)
    for (const [key, record] of counters) note(key, record)
  }

  function catchUp(): void {
    if (added.length === 0) return
    for (const one of added) one()
    added = []
  }

  return {
    add: (prepared, counters) => void added.push(() => noteCommit(prepared, counters)),
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
