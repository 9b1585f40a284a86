// Commands about lists. Each keeps the record, its name and the counts in step, and leaves a delta for whoever follows.

import type { KvKey } from '../kv/kv.ts'
import { must } from '../lib/must.ts'
import { aliasKeysOf } from '../records/aliases.ts'
import { type AuditDraft, auditKeysOf } from '../records/audit.ts'
import { LISTS, type ListsMeta, NO_LISTS } from '../records/list-deltas.ts'
import { entryKey, listGoneKey, listKey, listNameKey, type NamedList, type StoredList } from '../records/lists.ts'
import { splitFromKey, splitKey } from '../records/splits.ts'
import { readWorkspace } from '../records/workspaces.ts'
import { applyForgetting, forgetAlone } from './apply-visitors.ts'
import { countsOf, growingKey } from './audit-effects.ts'
import { type Change, type CommandOf, type Read, refuse } from './change.ts'
import { changed, readStored, tenantOf, writtenEntries } from './list-changes.ts'
import { changeOf, draftEntries, type EntriesWritten } from './list-entries.ts'
import { erasedOf, listedAs, membershipsOf, visitorLists } from './memberships.ts'

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
  const additions = add.map(({ value }) => value)
  const values = [...remove, ...additions]
  const erased = await erasedOf(read, tenant, list.type, additions)
  const as = await listedAs(read, tenant.scope, list.type, values)
  const draft = await draftEntries(read, tenant.scope, list, [...values.map(as), ...remove], {
    atMs: command.at,
    entriesMax,
  })
  // Whom the engine found to be another is on lists as before.
  for (const value of remove) for (const one of new Set([value, as(value)])) draft.remove(one)
  let skipped = 0
  for (const entry of add) {
    if (erased.has(entry.value)) {
      skipped += 1
      continue
    }
    if (draft.add({ ...entry, value: as(entry.value), source, ruleId: null, requestId: null })) continue
    return refuse(seq, 'resource_limit_reached', `A list may have at most ${entriesMax} entries.`)
  }
  const finished = draft.finish(seq)
  const { added, removed, refreshed } = finished
  const audit = countsOf(id, { id, added, removed, refreshed, source })
  const written = await writtenEntries(command, seq, read, [finished], { skipped })
  return { ...written, ...(added + removed + refreshed === 0 ? {} : { audit }) }
}

export async function applyListExpire(command: CommandOf<'list.expire'>, seq: number, read: Read): Promise<Change> {
  const { id, entries } = command.data
  const tenant = tenantOf(command)
  const list = await readStored(read, tenant, id)
  if (list === null) return refuse(seq, 'not_found')
  const values = entries.map(({ value }) => value)
  const draft = await draftEntries(read, tenant.scope, list, values, { atMs: command.at, entriesMax: 0 })
  return writtenEntries(command, seq, read, [draft.finish(seq)])
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
    : await applyForgetting(read, at, command.data)
  // No entry about somebody who is forgotten is written any more, and there may be any number of them.
  const audited: KvKey[] = []
  for (const id of [visitorId, ...aliases]) {
    for (const key of await auditKeysOf(read, scope, 'visitor', id)) audited.push(key)
  }
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
  const written = await writtenEntries(command, seq, read, finished, { put, drop })
  return { ...written, orders, early: { scope, drop: audited } }
}

function auditOf(before: StoredList | null, after: StoredList | null): AuditDraft {
  const { id } = must(after ?? before, 'a list')
  const action = before === null ? 'create' : after === null ? 'delete' : 'update'
  return { resource: 'list', id, action, before, after }
}
