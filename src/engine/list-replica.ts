// One list in the memory of a thread that decides: a table that is never written once it is shared, the changes since, and
// the making of the next table beside the decisions, a slice at a time.

import type { ListType } from '../domain/list.ts'
import type { Clock } from '../lib/clock.ts'
import { type DigestTable, GONE, makeDigestTable, NEVER_EXPIRES } from '../lib/digest-table.ts'
import { type ListKeys, NO_LENGTH } from './list-keys.ts'
import { CHANGE_WORDS, type ListBase, type PackedChanges, upsert, upsertChange } from './list-views.ts'

export interface EntryState {
  readonly value: string
  /** Milliseconds; null: never; 'gone': it is not on the list. */
  readonly expiresAt: number | null | 'gone'
}

export interface ListReplica {
  readonly id: string
  readonly name: string
  readonly type: ListType
  /** Changes with every new table. */
  generation(): number
  base(): ListBase
  /** Since the table was made. */
  changes(): readonly PackedChanges[]
  /** All of it is seen at once. */
  apply(entries: readonly EntryState[]): void
  /** Makes a new table out of the old and the changes when those have become many. */
  tidy(): Promise<void>
}

/** Changes are looked at before the table, and each thread keeps its own: they stay few. */
const CHANGES_MIN = 4_096
const CHANGES_SHARE = 0.05
/** A slice takes about two milliseconds. */
const SLICE_PLACES = 20_000
const ROOM_SHARE = 1.1

export interface NewReplica {
  readonly id: string
  readonly name: string
  readonly type: ListType
  readonly keys: ListKeys
  /** Never the same number twice. */
  readonly nextGeneration: () => number
  readonly clock: Pick<Clock, 'now' | 'sleep'>
}

/** A list while its entries are read for the first time. */
export interface ReplicaLoad {
  add(entries: readonly EntryState[]): void
  finish(): ListReplica
}

const secondsOf = ({ expiresAt }: EntryState): number =>
  expiresAt === null ? NEVER_EXPIRES : expiresAt === 'gone' ? GONE : Math.ceil(expiresAt / 1_000)

export function loadReplica(about: NewReplica, entryCount: number): ReplicaLoad {
  const { type, keys } = about
  const lengths = new Set<number>()
  let table = makeDigestTable(Math.ceil(entryCount * ROOM_SHARE))
  return {
    add(entries) {
      for (const entry of entries) {
        const length = keys.entry(type, entry.value)
        if (length !== NO_LENGTH) lengths.add(length)
        const { words } = keys
        table = upsert(table, words[0] as number, words[1] as number, words[2] as number, secondsOf(entry))
      }
    },
    finish: () => openReplica(about, table, lengths),
  }
}

function openReplica(
  { id, name, type, keys, clock, nextGeneration }: NewReplica,
  loaded: DigestTable,
  found: Set<number>,
): ListReplica {
  let table = loaded
  let base: ListBase = { memory: table.memory, lengths: [...found] }
  const lengths = found
  let generation = nextGeneration()
  let changes: PackedChanges[] = []
  let changed = 0
  let tidying = false

  function pack(entries: readonly EntryState[]): PackedChanges {
    const words = new Int32Array(entries.length * CHANGE_WORDS)
    const networks = new Set<number>()
    for (const [i, entry] of entries.entries()) {
      const length = keys.entry(type, entry.value)
      if (length !== NO_LENGTH) networks.add(length)
      words.set(keys.words, i * CHANGE_WORDS)
      words[i * CHANGE_WORDS + 3] = secondsOf(entry)
    }
    for (const length of networks) lengths.add(length)
    return { words, lengths: [...networks] }
  }

  const isMany = () => changed > Math.max(CHANGES_MIN, table.size() * CHANGES_SHARE)

  async function makeNext(): Promise<void> {
    const taken = changes.length
    const latest = latestOf(changes)
    const nowSeconds = clock.now() / 1_000
    let next = makeDigestTable(Math.ceil((table.size() + latest.size()) * ROOM_SHARE))
    // What has changed or is over is not carried along, so what goes over is never set twice.
    const carry = (a: number, b: number, c: number, expiresAt: number) => {
      if (expiresAt > nowSeconds) next = upsert(next, a, b, c, expiresAt)
    }
    for (let from = 0; from < table.places(); from += SLICE_PLACES) {
      table.each(from, Math.min(from + SLICE_PLACES, table.places()), (a, b, c, expiresAt) => {
        if (latest.find(a, b, c) === 0) carry(a, b, c, expiresAt)
      })
      await clock.sleep(0)
    }
    latest.each(0, latest.places(), carry)
    table = next
    base = { memory: table.memory, lengths: [...lengths] }
    changes = changes.slice(taken)
    changed = changes.reduce((sum, { words }) => sum + words.length / CHANGE_WORDS, 0)
    generation = nextGeneration()
  }

  return {
    id,
    name,
    type,
    generation: () => generation,
    base: () => base,
    changes: () => changes,
    apply(entries) {
      if (entries.length === 0) return
      changes.push(pack(entries))
      changed += entries.length
    },
    async tidy() {
      if (tidying) return
      tidying = true
      try {
        while (isMany()) await makeNext()
      } finally {
        tidying = false
      }
    },
  }
}

function latestOf(changes: readonly PackedChanges[]): DigestTable {
  let latest = makeDigestTable(changes.reduce((sum, { words }) => sum + words.length / CHANGE_WORDS, 0))
  for (const { words } of changes) {
    for (let at = 0; at < words.length; at += CHANGE_WORDS) {
      latest = upsertChange(latest, words, at)
    }
  }
  return latest
}
