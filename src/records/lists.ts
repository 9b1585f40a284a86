// Lists and their entries in the kv: everything of an environment in its scope, so that one commit changes it together.
// Entries lie one by one under their list, in the order of their text; what is due to expire is indexed by its time.

import type { Env } from '../domain/event.ts'
import { canonicalIp, rangesAround } from '../domain/ip.ts'
import { ENTRY_SOURCES, type EntrySource, foldListName, type List, type ListType } from '../domain/list.ts'
import type { Kv, KvKey } from '../kv/kv.ts'
import { must } from '../lib/must.ts'
import { scanAll, tenantScope } from './scopes.ts'

export type StoredList = List & {
  /** The seq of the last command that changed the list's entries, or made it. */
  readonly version: number
}

export const LIST = 'list'
export const listKey = (id: string): KvKey => [LIST, id]
/** By name in lower case. */
const LIST_NAME = 'list-name'
export const listNameKey = (name: string): KvKey => [LIST_NAME, foldListName(name)]
export interface NamedList {
  readonly id: string
  readonly type: ListType
}

export const LIST_ENTRY = 'list-entry'
export const entryKey = (listId: string, value: string): KvKey => [LIST_ENTRY, `${listId}/${value}`]
/** Ids sort by the time of expiry. */
export const LIST_DUE = 'list-due'
const TIME_DIGITS = 14
const timeText = (ms: number): string => String(ms).padStart(TIME_DIGITS, '0')
export const dueKey = (expiresAt: number, listId: string, value: string): KvKey => [
  LIST_DUE,
  `${timeText(expiresAt)}/${listId}/${value}`,
]
/** All ids of dueKey up to this moment sort before it. */
export const dueUpTo = (ms: number): string => timeText(ms + 1)
export interface Due {
  readonly expiresAt: number
  readonly listId: string
  readonly value: string
}
export function readDueEntryId(id: string): Due {
  const [time = '', listId = ''] = id.split('/', 2)
  return { expiresAt: Number(time), listId, value: id.slice(time.length + listId.length + 2) }
}
/** Lists that were deleted and whose entries are still to be removed; nobody can see those any more. */
export const LIST_GONE = 'list-gone'
export const listGoneKey = (id: string): KvKey => [LIST_GONE, id]

export interface StoredEntry {
  readonly addedAt: number
  /** null: never. */
  readonly expiresAt: number | null
  /** Seconds it was given when it was last added; null: for ever, or by a release that did not note them. */
  readonly ttl: number | null
  readonly source: EntrySource
  readonly ruleId: string | null
  readonly reason: string | null
}

/** As it is stored: short, because there are millions, and an array, because those are read fastest. */
export type PackedEntry = readonly [
  expiresAt: number,
  addedAt: number,
  source: number,
  ruleId: string | null,
  /** A text: the request that a rule decided, which earlier releases noted. */
  ttl: number | string | null,
  reason: string | null,
]

export const packEntry = ({ expiresAt, addedAt, ttl, source, ruleId, reason }: StoredEntry): PackedEntry => [
  expiresAt ?? 0,
  addedAt,
  ENTRY_SOURCES.indexOf(source),
  ruleId,
  ttl,
  reason,
]

export const entryExpiry = ([expiresAt]: PackedEntry): number | null => expiresAt || null

export function unpackEntry(packed: PackedEntry): StoredEntry {
  const [, addedAt, source, ruleId, ttl, reason] = packed
  return {
    addedAt,
    expiresAt: entryExpiry(packed),
    ttl: typeof ttl === 'number' ? ttl : null,
    source: must(ENTRY_SOURCES[source], 'a source of entries'),
    ruleId,
    reason,
  }
}

/** Whether an entry counts at a moment; one that is overdue may be stored a little longer. */
export const isAlive = (expiresAt: number | null, nowMs: number): boolean => expiresAt === null || expiresAt > nowMs

export async function readList(kv: Pick<Kv, 'get'>, workspace: string, env: Env, id: string) {
  const [entry] = await kv.get<StoredList>(tenantScope(workspace, env), [listKey(id)])
  return entry?.value ?? null
}

/** All lists of an environment, oldest first. */
export async function readLists(kv: Pick<Kv, 'scan'>, workspace: string, env: Env): Promise<StoredList[]> {
  const lists: StoredList[] = []
  for await (const { value } of scanAll<StoredList>(kv, tenantScope(workspace, env), LIST)) lists.push(value)
  return lists.sort((a, b) => a.createdAt - b.createdAt || (a.id < b.id ? -1 : 1))
}

/** Those of the names that are lists now, by name in lower case. */
export async function readListsNamed(
  kv: Pick<Kv, 'get'>,
  workspace: string,
  env: Env,
  names: readonly string[],
): Promise<ReadonlyMap<string, NamedList>> {
  const folded = [...new Set(names.map(foldListName))]
  if (folded.length === 0) return new Map()
  const entries = await kv.get<NamedList>(tenantScope(workspace, env), folded.map(listNameKey))
  return new Map(entries.flatMap((entry, i) => (entry === null ? [] : [[folded[i] as string, entry.value] as const])))
}

export interface ListMembership {
  /** The name of the list. */
  readonly list: string
  readonly entry: StoredEntry
}

/** The entries of lists that are a visitor, oldest list first. */
export async function membershipsOfVisitor(
  kv: Pick<Kv, 'get' | 'scan'>,
  workspace: string,
  env: Env,
  visitorId: string,
  nowMs: number,
): Promise<ListMembership[]> {
  const lists = (await readLists(kv, workspace, env)).filter(({ type }) => type === 'visitor')
  const keys = lists.map(({ id }) => entryKey(id, visitorId))
  const found = await kv.get<PackedEntry>(tenantScope(workspace, env), keys)
  return lists.flatMap(({ name }, i) => {
    const entry = found[i]
    const isOn = entry !== null && entry !== undefined && isAlive(entryExpiry(entry.value), nowMs)
    return isOn ? [{ list: name, entry: unpackEntry(entry.value) }] : []
  })
}

/** The names of the lists a visitor is on, oldest list first. */
export const listsOfVisitor = async (...question: Parameters<typeof membershipsOfVisitor>): Promise<string[]> =>
  (await membershipsOfVisitor(...question)).map(({ list }) => list)

/** Whether decisions find a value on a list: an address is also on one that holds a range around it. */
export async function isListed(
  kv: Pick<Kv, 'get'>,
  list: { readonly workspace: string; readonly env: Env; readonly id: string; readonly type: ListType },
  value: string,
  nowMs: number,
): Promise<boolean> {
  const isAddress = list.type === 'ip' && canonicalIp(value) === value
  const entries = await readListEntries(kv, list, isAddress ? rangesAround(value) : [value], nowMs)
  return entries.some((entry) => entry !== null)
}

/** Entries of a list by value: null for what is not on it, or has expired by `nowMs`. */
export async function readListEntries(
  kv: Pick<Kv, 'get'>,
  list: { readonly workspace: string; readonly env: Env; readonly id: string },
  values: readonly string[],
  nowMs: number,
): Promise<(StoredEntry | null)[]> {
  if (values.length === 0) return []
  const keys = values.map((value) => entryKey(list.id, value))
  const found = await kv.get<PackedEntry>(tenantScope(list.workspace, list.env), keys)
  return found.map((entry) => {
    if (entry === null) return null
    const stored = unpackEntry(entry.value)
    return isAlive(stored.expiresAt, nowMs) ? stored : null
  })
}
