// Lists as a thread that decides sees them: for each a table in shared memory and, in the thread's own, what changed since that
// table was made. News come with the next step, so no decision sees half of a change.

import type { Env } from '../domain/event.ts'
import { foldListName, type ListType } from '../domain/list.ts'
import { DIGEST_WORDS } from '../lib/digest.ts'
import { type DigestTable, makeDigestTable, openDigestTable, type TableMemory } from '../lib/digest-table.ts'
import type { ListMember } from '../rules/predicate.ts'
import { createListKeys, type ListKeys } from './list-keys.ts'

/** Changed entries: a digest and the second it expires in, four numbers each; GONE for what was taken off. */
export interface PackedChanges {
  readonly words: Int32Array
  /** Lengths of networks among them. */
  readonly lengths: readonly number[]
}
export const CHANGE_WORDS = DIGEST_WORDS + 1

export interface ListBase {
  readonly memory: TableMemory
  readonly lengths: readonly number[]
}

/** What a thread does not know of a list yet. */
export interface ListPart {
  readonly id: string
  readonly name: string
  readonly type: ListType
  /** A new table; the changes that follow are all since it was made. */
  readonly base?: ListBase
  readonly changes: readonly PackedChanges[]
}

/** What a thread does not know of an environment's lists yet. */
export interface ListNews {
  readonly workspace: string
  readonly env: Env
  /** Secret, and one for the life of a process. */
  readonly key: readonly number[]
  readonly parts: readonly ListPart[]
  /** All lists there are, when one has gone. */
  readonly ids: readonly string[] | null
}

export interface ListViews {
  /** Takes in what is new. Until the next call entries expire by the time of this one. */
  take(news: readonly ListNews[]): void
  member(workspace: string, env: string): ListMember
}

interface View {
  name: string
  type: ListType
  base: DigestTable
  /** null: nothing has changed. */
  changes: DigestTable | null
  readonly lengths: Set<number>
}

interface Tenant {
  readonly keys: ListKeys
  readonly byId: Map<string, View>
  byName: Map<string, View>
}

/** `now`: milliseconds since the epoch. */
export function createListViews(now: () => number): ListViews {
  const tenants = new Map<string, Tenant>()
  let seconds = 0

  function take({ workspace, env, key, parts, ids }: ListNews): void {
    const name = `${workspace}/${env}`
    const tenant = tenants.get(name) ?? { keys: createListKeys(key), byId: new Map(), byName: new Map() }
    tenants.set(name, tenant)
    if (ids !== null) {
      const staying = new Set(ids)
      for (const id of tenant.byId.keys()) if (!staying.has(id)) tenant.byId.delete(id)
    }
    const isOther = ids !== null || parts.some(({ id, base }) => base !== undefined || !tenant.byId.has(id))
    for (const part of parts) takePart(tenant, part)
    if (isOther) tenant.byName = new Map([...tenant.byId.values()].map((view) => [foldListName(view.name), view]))
  }

  function isMember({ keys, byName }: Tenant, list: string, value: string): boolean | null {
    const view = byName.get(list)
    if (view === undefined) return null
    if (view.type !== 'ip') {
      keys.text(value)
      return holds(view, keys.words, seconds)
    }
    if (!keys.address(value)) return false
    for (const length of view.lengths) {
      if (keys.network(length) && holds(view, keys.words, seconds)) return true
    }
    return false
  }

  return {
    take(news) {
      seconds = now() / 1_000
      for (const one of news) take(one)
    },
    member(workspace, env) {
      const name = `${workspace}/${env}`
      let tenant: Tenant | undefined
      return (list, value) => {
        tenant ??= tenants.get(name)
        return tenant === undefined ? null : isMember(tenant, list, value)
      }
    },
  }
}

function takePart(tenant: Tenant, { id, name, type, base, changes }: ListPart): void {
  let view = tenant.byId.get(id)
  if (base !== undefined || view === undefined) {
    const table = base === undefined ? makeDigestTable(0) : openDigestTable(base.memory)
    view = { name, type, base: table, changes: null, lengths: new Set(base?.lengths) }
    tenant.byId.set(id, view)
  }
  for (const { words, lengths } of changes) {
    for (const length of lengths) view.lengths.add(length)
    for (let at = 0; at < words.length; at += CHANGE_WORDS) {
      view.changes = upsertChange(view.changes ?? makeDigestTable(0), words, at)
    }
  }
}

/** Sets an entry in a table, or in one of twice the size where it is full. */
export function upsert(table: DigestTable, a: number, b: number, c: number, expiresAt: number): DigestTable {
  if (table.set(a, b, c, expiresAt)) return table
  const larger = makeDigestTable(2 * table.size())
  table.each(0, table.places(), (x, y, z, at) => void larger.set(x, y, z, at))
  larger.set(a, b, c, expiresAt)
  return larger
}

/** The same for the entry packed at a place of changes. */
export const upsertChange = (table: DigestTable, words: Int32Array, at: number): DigestTable =>
  upsert(table, words[at] as number, words[at + 1] as number, words[at + 2] as number, words[at + 3] as number)

function holds({ base, changes }: View, words: Int32Array, seconds: number): boolean {
  const a = words[0] as number
  const b = words[1] as number
  const c = words[2] as number
  const changed = changes === null ? 0 : changes.find(a, b, c)
  return (changed === 0 ? base.find(a, b, c) : changed) > seconds
}
