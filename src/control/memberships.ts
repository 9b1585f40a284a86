// Which lists visitors are on, under which id, and what a merge makes of it.

import type { ListType } from '../domain/list.ts'
import type { Scope } from '../kv/kv.ts'
import { aliasKey } from '../records/aliases.ts'
import {
  entryKey,
  isAlive,
  LIST,
  type PackedEntry,
  type StoredEntry,
  type StoredList,
  unpackEntry,
} from '../records/lists.ts'
import { scanAll } from '../records/scopes.ts'
import type { Change, CommandOf, Read } from './change.ts'
import { forgottenOf } from './corrections.ts'
import { type Tenant, tenantOf, writtenEntries } from './list-changes.ts'
import { draftEntries, type EntriesWritten } from './list-entries.ts'

export interface OwnedMembership {
  readonly list: StoredList
  readonly entries: readonly (StoredEntry | null)[]
}

export async function visitorLists(read: Read, scope: Scope): Promise<StoredList[]> {
  const lists: StoredList[] = []
  for await (const { value } of scanAll<StoredList>(read, scope, LIST)) {
    if (value.type === 'visitor') lists.push(value)
  }
  return lists
}

const KEYS_PER_GET = 1_000

/** Of what is to be put on the list the visitors that were erased: nobody is listed under such an id again. */
export const erasedOf = async (
  read: Read,
  tenant: Tenant,
  type: ListType,
  values: readonly string[],
): Promise<ReadonlySet<string>> => (type === 'visitor' ? forgottenOf(read, tenant, values) : new Set())

/** How values stand on a list of `type`: whoever was merged into another is on it, and off it, as the survivor. */
export async function listedAs(
  read: Read,
  scope: Scope,
  type: ListType,
  values: readonly string[],
): Promise<(value: string) => string> {
  if (type !== 'visitor') return (value) => value
  const named = [...new Set(values)]
  const survivors = new Map<string, string>()
  for (let from = 0; from < named.length; from += KEYS_PER_GET) {
    const some = named.slice(from, from + KEYS_PER_GET)
    const found = await read.get<string>(scope, some.map(aliasKey))
    found.forEach((entry, i) => {
      if (entry !== null) survivors.set(some[i] as string, entry.value)
    })
  }
  return (value) => survivors.get(value) ?? value
}

/** Lists that any of the visitors is on, overdue entries included. */
export async function membershipsOf(
  read: Read,
  scope: Scope,
  lists: readonly StoredList[],
  ids: readonly string[],
): Promise<OwnedMembership[]> {
  const found: OwnedMembership[] = []
  const listsPerGet = Math.max(1, Math.floor(KEYS_PER_GET / ids.length))
  for (let from = 0; from < lists.length; from += listsPerGet) {
    const some = lists.slice(from, from + listsPerGet)
    const held = await read.get<PackedEntry>(
      scope,
      some.flatMap((list) => ids.map((id) => entryKey(list.id, id))),
    )
    some.forEach((list, i) => {
      const entries = held
        .slice(i * ids.length, (i + 1) * ids.length)
        .map((entry) => (entry === null ? null : unpackEntry(entry.value)))
      if (entries.some((entry) => entry !== null)) found.push({ list, entries })
    })
  }
  return found
}

/** What visitors are on, the survivor is on instead; where both are, for as long as the longer of them. */
export async function moveMemberships(
  command: CommandOf<'visitor.merge'>,
  seq: number,
  read: Read,
  from: readonly string[],
  survivor: string,
): Promise<Change> {
  const { scope } = tenantOf(command)
  const atMs = command.at
  const finished: EntriesWritten[] = []
  const ids = [survivor, ...from]
  for (const { list, entries } of await membershipsOf(read, scope, await visitorLists(read, scope), ids)) {
    const draft = await draftEntries(read, scope, list, ids, { atMs, entriesMax: command.data.entriesMax })
    const until = (entry: StoredEntry | null | undefined) =>
      entry == null || !isAlive(entry.expiresAt, atMs) ? 0 : (entry.expiresAt ?? Number.MAX_SAFE_INTEGER)
    const [own, ...others] = entries
    const longest = others.reduce((best, entry) => (until(entry) > until(best) ? entry : best), null)
    for (const id of from) draft.remove(id)
    if (longest != null && until(longest) > until(own)) {
      const { expiresAt, source, ruleId, reason } = longest
      const ttl = expiresAt === null ? null : Math.max(1, Math.ceil((expiresAt - atMs) / 1_000))
      draft.add({ value: survivor, ttl, source, ruleId, requestId: null, ...(reason === null ? {} : { reason }) })
    }
    finished.push(draft.finish(seq))
  }
  return writtenEntries(command, seq, read, finished)
}
