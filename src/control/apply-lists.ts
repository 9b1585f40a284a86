// Commands about lists. Each keeps the record, its name and the counts in step, and leaves a delta for whoever follows.

import type { Env } from '../domain/event.ts'
import type { Key, Put, Scope } from '../kv/kv.ts'
import { must } from '../lib/must.ts'
import { aliasKeysOf } from '../records/aliases.ts'
import { type AuditDraft, auditKeysOf } from '../records/audit.ts'
import type { EntriesOutcome } from '../records/commands.ts'
import type { ListCommandData } from '../records/list-commands.ts'
import {
  DELTAS_KEPT,
  DELTAS_UNTOLD_MAX,
  deltaKey,
  LIST_DELTA,
  LISTS,
  LISTS_TOLD,
  type ListChange,
  type ListDelta,
  type ListsMeta,
  NO_LISTS,
} from '../records/list-deltas.ts'
import {
  entryKey,
  isAlive,
  listGoneKey,
  listKey,
  listNameKey,
  type NamedList,
  type StoredEntry,
  type StoredList,
} from '../records/lists.ts'
import { tenantScope } from '../records/scopes.ts'
import { splitFromKey, splitKey } from '../records/splits.ts'
import { readWorkspace } from '../records/workspaces.ts'
import { type Change, type CommandOf, type Read, refuse } from './apply.ts'
import { countsOf } from './apply-notes.ts'
import { forgetAlone, forgetVisitor } from './apply-visitors.ts'
import { growingKey } from './audit-effects.ts'
import { changeOf, draftEntries, type EntriesWritten } from './list-entries.ts'
import { listedAs, membershipsOf, visitorLists } from './memberships.ts'

type ListCommand = CommandOf<keyof ListCommandData | 'visitor.merge'>

/** Deltas dropped at once, so that most commands need not look for the oldest. */
const DELTAS_DROPPED = 50

interface Tenant {
  readonly workspace: string
  readonly env: Env
  readonly scope: Scope
}

export const tenantOf = (command: ListCommand): Tenant => {
  const env = must(command.env, 'an environment')
  return { workspace: command.workspace, env, scope: tenantScope(command.workspace, env) }
}

export async function applyListCreate(command: CommandOf<'list.create'>, seq: number, read: Read): Promise<Change> {
  const { id, name, type, description, ttl, maxima } = command.data
  const tenant = tenantOf(command)
  if ((await readWorkspace(read, tenant.workspace)) === null) return refuse(seq, 'not_found')
  const [meta, named, known] = await read.get(tenant.scope, [LISTS, listNameKey(name), listKey(id)])
  // Ids are drawn for each request: this one was repeated because nobody knew what had become of it.
  if (known) return { outcome: { ok: true, seq, at: command.at, list: known.value as StoredList }, effects: [] }
  if (named) return refuse(seq, 'conflict', `A list named ${name} exists already.`, 'name')
  if (((meta?.value as ListsMeta | undefined) ?? NO_LISTS).lists >= maxima.listsMax) {
    return refuse(seq, 'resource_limit_reached', `An environment may have at most ${maxima.listsMax} lists.`)
  }
  const times = { createdAt: command.at, updatedAt: command.at }
  const list: StoredList = { id, name, type, description, ttl, entryCount: 0, ...times, version: seq }
  const put = [{ key: listNameKey(name), value: { id, type } satisfies NamedList }]
  const audit = auditOf(null, list)
  return changed(command, seq, read, {
    lists: [list],
    put,
    changes: [changeOf(list)],
    made: 1,
    outcome: { list },
    audit,
  })
}

export async function applyListUpdate(command: CommandOf<'list.update'>, seq: number, read: Read): Promise<Change> {
  const { id, changes } = command.data
  const old = await readStored(read, tenantOf(command), id)
  if (old === null) return refuse(seq, 'not_found')
  const list: StoredList = { ...old, ...changes, updatedAt: Math.max(old.updatedAt, command.at) }
  return changed(command, seq, read, { lists: [list], changes: [], outcome: { list }, audit: auditOf(old, list) })
}

/** Its entries are out of sight from now on; removing what may be millions of them is left to a job. */
export async function applyListDelete(command: CommandOf<'list.delete'>, seq: number, read: Read): Promise<Change> {
  const list = await readStored(read, tenantOf(command), command.data.id)
  if (list === null) return refuse(seq, 'not_found')
  return changed(command, seq, read, {
    lists: [],
    put: [{ key: listGoneKey(list.id), value: { at: command.at } }],
    drop: [listKey(list.id), listNameKey(list.name), growingKey(list.id)],
    changes: [changeOf(list, { gone: true })],
    made: -1,
    outcome: { list },
    audit: auditOf(list, null),
  })
}

export async function applyListEntries(command: CommandOf<'list.entries'>, seq: number, read: Read): Promise<Change> {
  const { id, add, remove, source, entriesMax } = command.data
  const tenant = tenantOf(command)
  const list = await readStored(read, tenant, id)
  if (list === null) return refuse(seq, 'not_found')
  const values = [...remove, ...add.map(({ value }) => value)]
  const as = await listedAs(read, tenant.scope, list.type, values)
  const draft = await draftEntries(read, tenant.scope, list, values.map(as), { atMs: command.at, entriesMax })
  for (const value of remove) draft.remove(as(value))
  for (const entry of add) {
    if (draft.add({ ...entry, value: as(entry.value), source, ruleId: null, requestId: null })) continue
    return refuse(seq, 'resource_limit_reached', `A list may have at most ${entriesMax} entries.`)
  }
  const finished = draft.finish(seq)
  const { added, removed } = finished
  const audit = countsOf(id, { id, added, removed, source })
  return { ...(await written(command, seq, read, [finished])), ...(added + removed === 0 ? {} : { audit }) }
}

export async function applyListExpire(command: CommandOf<'list.expire'>, seq: number, read: Read): Promise<Change> {
  const { id, entries } = command.data
  const tenant = tenantOf(command)
  const list = await readStored(read, tenant, id)
  if (list === null) return refuse(seq, 'not_found')
  const values = entries.map(({ value }) => value)
  const draft = await draftEntries(read, tenant.scope, list, values, { atMs: command.at, entriesMax: 0 })
  return written(command, seq, read, [draft.finish(seq)])
}

export async function applyListForget(command: CommandOf<'list.forget'>, seq: number, read: Read): Promise<Change> {
  const { visitorId, survivor, former = [] } = command.data
  const { workspace, env, scope } = tenantOf(command)
  if ((await readWorkspace(read, workspace)) === null) return refuse(seq, 'not_found')
  const lists = await visitorLists(read, scope)
  const [alias, merged, made, parted, ...held] = await read.get(scope, [
    ...aliasKeysOf(visitorId),
    splitKey(visitorId),
    splitFromKey(visitorId),
    ...lists.map(({ id }) => entryKey(id, visitorId)),
  ])
  // Nearly everybody: then there is nothing else to look for.
  const alone = !alias && !merged && !made && !parted
  const at = { workspace, env, atMs: command.at }
  const { put, drop, orders, aliases } = alone
    ? forgetAlone(at, visitorId)
    : await forgetVisitor(read, at, command.data)
  const audited = alone ? await auditKeysOf(read, scope, 'visitor', visitorId) : []
  // Rules may have put its survivors on lists for visits of this one since they were forgotten themselves.
  const ids = [visitorId, ...aliases, ...(survivor === undefined ? [] : [survivor]), ...former]
  const on =
    alone && survivor === undefined
      ? lists.filter((_, i) => held[i] !== null)
      : (await membershipsOf(read, scope, lists, ids)).map(({ list }) => list)
  const finished: EntriesWritten[] = []
  for (const list of on) {
    const draft = await draftEntries(read, scope, list, ids, { atMs: command.at, entriesMax: 0 })
    for (const id of ids) draft.remove(id)
    finished.push(draft.finish(seq))
  }
  return { ...(await written(command, seq, read, finished, { put, drop: [...drop, ...audited] })), orders }
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
  return written(command, seq, read, finished)
}

export async function readStored(read: Read, { scope }: Tenant, id: string): Promise<StoredList | null> {
  const [entry] = await read.get<StoredList>(scope, [listKey(id)])
  return entry?.value ?? null
}

export function written(
  command: ListCommand,
  seq: number,
  read: Read,
  finished: readonly EntriesWritten[],
  {
    skipped = 0,
    put = [],
    drop = [],
  }: { readonly skipped?: number; readonly put?: readonly Put[]; readonly drop?: readonly Key[] } = {},
): Promise<Change> {
  const [only] = finished
  const sum = (of: (one: EntriesWritten) => number) => finished.reduce((total, one) => total + of(one), 0)
  const entries: EntriesOutcome = { added: sum(({ added }) => added), removed: sum(({ removed }) => removed), skipped }
  const changes = finished
    .map(({ change }) => change)
    .filter(({ added, removed, expired }) => added.length + removed.length + expired.length > 0)
  return changed(command, seq, read, {
    lists: finished.map(({ list }) => list),
    put: [...finished.flatMap((one) => one.put), ...put],
    drop: [...finished.flatMap((one) => one.drop), ...drop],
    changes,
    outcome: { entries, ...(only === undefined || finished.length > 1 ? {} : { list: only.list }) },
  })
}

interface Written {
  readonly lists: readonly StoredList[]
  readonly put?: readonly Put[]
  readonly drop?: readonly Key[]
  /** Empty: followers need not know. */
  readonly changes: readonly ListChange[]
  /** How many lists there are more. */
  readonly made?: number
  readonly outcome: { readonly list?: StoredList; readonly entries?: EntriesOutcome }
  /** Of the list itself: entries say where they are from, and must be gone when they are. */
  readonly audit?: AuditDraft
}

function auditOf(before: StoredList | null, after: StoredList | null): AuditDraft {
  const { id } = must(after ?? before, 'a list')
  const action = before === null ? 'create' : after === null ? 'delete' : 'update'
  return { resource: 'list', id, action, before, after }
}

async function changed(command: ListCommand, seq: number, read: Read, what: Written): Promise<Change> {
  const { workspace, env, scope } = tenantOf(command)
  const put: Put[] = [...(what.put ?? []), ...what.lists.map((list) => ({ key: listKey(list.id), value: list }))]
  const drop: Key[] = [...(what.drop ?? [])]
  if (what.changes.length > 0) {
    const [entry] = await read.get<ListsMeta>(scope, [LISTS])
    const meta = entry?.value ?? NO_LISTS
    const old = await oldDeltas(read, scope, meta)
    const delta: ListDelta = { seq, previous: meta.last, at: command.at, changes: what.changes }
    const next: ListsMeta = {
      lists: meta.lists + (what.made ?? 0),
      last: seq,
      deltas: meta.deltas + 1 - old.length,
    }
    put.push({ key: deltaKey(seq), value: delta }, { key: LISTS, value: next })
    drop.push(...old)
  }
  return {
    outcome: { ok: true, seq, at: command.at, ...what.outcome },
    effects: [{ scope, put, drop }],
    lists: what.changes.length > 0 ? [{ workspace, env }] : [],
    ...(what.audit === undefined ? {} : { audit: what.audit }),
  }
}

async function oldDeltas(read: Read, scope: Scope, { deltas }: ListsMeta): Promise<Key[]> {
  if (deltas < DELTAS_KEPT + DELTAS_DROPPED) return []
  const oldest = await read.scan<ListDelta>(scope, LIST_DELTA, { limit: DELTAS_DROPPED })
  const [told] = await read.get<number>(scope, [LISTS_TOLD])
  const isFree = (seq: number) => !told || seq <= told.value || deltas >= DELTAS_UNTOLD_MAX
  return oldest.filter(({ value }) => isFree(value.seq)).map(({ key }) => key)
}
