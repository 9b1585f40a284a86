// Changes to the entries of one list, worked out one after the other over what is stored, then written as the difference.

import type { List } from '../domain/list.ts'
import type { KvKey, Put } from '../kv/kv.ts'
import type { AddedEntry, ExpiredEntry, ListChange } from '../records/list-deltas.ts'
import {
  dueKey,
  entryKey,
  isAlive,
  type PackedEntry,
  packEntry,
  type StoredEntry,
  type StoredList,
  unpackEntry,
} from '../records/lists.ts'
import type { Read } from './change.ts'

export interface Addition extends Pick<StoredEntry, 'source' | 'ruleId'> {
  readonly value: string
  /** The event by which a rule adds it; for those who are told, not stored. */
  readonly requestId: string | null
  /** Seconds; null: for ever; absent: as the list says. */
  readonly ttl?: number | null
  readonly reason?: string
}

export interface EntriesDraft {
  /** False when the list is full; an entry that is there already always finds room. */
  add(addition: Addition): boolean
  remove(value: string): void
  finish(seq: number): EntriesWritten
}

export interface EntriesWritten {
  readonly list: StoredList
  readonly put: readonly Put[]
  readonly drop: readonly KvKey[]
  readonly change: ListChange
  readonly added: number
  readonly removed: number
  /** How many were there before and are stored otherwise now: with another expiry or reason. */
  readonly refreshed: number
}

interface Place {
  /** As it is stored, even when overdue. */
  readonly stored: StoredEntry | null
  now: StoredEntry | null
  added: AddedEntry | null
  /** It was there, and not overdue, before this command. */
  readonly wasThere: boolean
}

/** Begins changes at `atMs` to `list`; `values` are all that will be named. What is overdue of them is taken off at once. */
export async function draftEntries(
  read: Read,
  scope: string,
  list: StoredList,
  values: Iterable<string>,
  { atMs, entriesMax }: { readonly atMs: number; readonly entriesMax: number },
): Promise<EntriesDraft> {
  const named = [...new Set(values)]
  const found = await read.get<PackedEntry>(
    scope,
    named.map((value) => entryKey(list.id, value)),
  )
  const expired: ExpiredEntry[] = []
  const places = new Map<string, Place>()
  let count = list.entryCount
  for (const [i, value] of named.entries()) {
    const bytes = found[i]?.value
    const stored = bytes === undefined ? null : unpackEntry(bytes)
    const wasThere = stored !== null && isAlive(stored.expiresAt, atMs)
    places.set(value, { stored, now: wasThere ? stored : null, added: null, wasThere })
    if (stored !== null && !wasThere) {
      expired.push({ value, addedAt: stored.addedAt, expiresAt: stored.expiresAt as number, ...ttlOf(stored, list) })
      count -= 1
    }
  }
  const placeOf = (value: string) => places.get(value) as Place

  return {
    add({ value, ttl = list.ttl, reason, source, ruleId, requestId }) {
      const place = placeOf(value)
      if (place.now === null && count >= entriesMax) return false
      const expiresAt = ttl === null ? null : atMs + ttl * 1_000
      if (place.now === null) count += 1
      place.now =
        place.now === null
          ? { addedAt: atMs, expiresAt, ttl, source, ruleId, reason: reason ?? null }
          : { ...place.now, expiresAt, ttl, reason: reason ?? place.now.reason }
      place.added = { value, expiresAt, isNew: !place.wasThere, source, ruleId, requestId }
      return true
    },
    remove(value) {
      const place = placeOf(value)
      if (place.now !== null) count -= 1
      place.now = null
      place.added = null
    },
    finish(seq) {
      const put: Put[] = []
      const drop: KvKey[] = []
      const added: AddedEntry[] = []
      const removed: string[] = []
      let refreshed = 0
      for (const [value, { stored, now, added: addition, wasThere }] of places) {
        const [before, after] = [stored?.expiresAt ?? null, now?.expiresAt ?? null]
        if (before !== null && before !== after) drop.push(dueKey(before, list.id, value))
        if (now === null && stored !== null) drop.push(entryKey(list.id, value))
        if (now === null && wasThere) removed.push(value)
        if (now === null || addition === null) continue
        added.push(addition)
        if (wasThere && stored !== null && !isSame(stored, now)) refreshed += 1
        put.push({ key: entryKey(list.id, value), value: packEntry(now) })
        if (after !== null) put.push({ key: dueKey(after, list.id, value), value: 0 })
      }
      return {
        list: { ...list, entryCount: count, updatedAt: Math.max(list.updatedAt, atMs), version: seq },
        put,
        drop,
        change: changeOf(list, { added, removed, expired }),
        added: added.filter(({ isNew }) => isNew).length,
        removed: removed.length,
        refreshed,
      }
    },
  }
}

function isSame(one: StoredEntry, other: StoredEntry): boolean {
  const packed = packEntry(other)
  return packEntry(one).every((part, i) => part === packed[i])
}

/** What an entry was given; of one that earlier releases stored what its list gives, as far as that is known. */
function ttlOf({ ttl }: StoredEntry, list: List): Pick<ExpiredEntry, 'ttl'> {
  const given = ttl ?? list.ttl
  return given === null ? {} : { ttl: given }
}

export const changeOf = (
  { id, name, type }: Pick<List, 'id' | 'name' | 'type'>,
  more: Partial<ListChange> = {},
): ListChange => ({ id, name, type, gone: false, added: [], removed: [], expired: [], ...more })
