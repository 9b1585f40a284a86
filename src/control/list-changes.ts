// What every command about lists writes: the lists with their counts, and a delta for whoever follows.

import type { Env } from '../domain/event.ts'
import type { KvKey, Put, Scope } from '../kv/kv.ts'
import { must } from '../lib/must.ts'
import type { AuditDraft } from '../records/audit.ts'
import type { EntriesOutcome } from '../records/commands.ts'
import type { LIST_COMMANDS } from '../records/list-commands.ts'
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
import { listKey, type StoredList } from '../records/lists.ts'
import { tenantScope } from '../records/scopes.ts'
import type { Change, CommandOf, Read } from './change.ts'
import type { EntriesWritten } from './list-entries.ts'

export type ListCommand = CommandOf<keyof typeof LIST_COMMANDS | 'visitor.merge'>

/** Deltas dropped at once, so that most commands need not look for the oldest. */
const DELTAS_DROPPED = 50

export interface Tenant {
  readonly workspace: string
  readonly env: Env
  readonly scope: Scope
}

export const tenantOf = (command: ListCommand): Tenant => {
  const env = must(command.env, 'an environment')
  return { workspace: command.workspace, env, scope: tenantScope(command.workspace, env) }
}

export async function readStored(read: Read, { scope }: Tenant, id: string): Promise<StoredList | null> {
  const [entry] = await read.get<StoredList>(scope, [listKey(id)])
  return entry?.value ?? null
}

export function writtenEntries(
  command: ListCommand,
  seq: number,
  read: Read,
  finished: readonly EntriesWritten[],
  {
    skipped = 0,
    put = [],
    drop = [],
  }: { readonly skipped?: number; readonly put?: readonly Put[]; readonly drop?: readonly KvKey[] } = {},
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
  readonly drop?: readonly KvKey[]
  /** Empty: followers need not know. */
  readonly changes: readonly ListChange[]
  /** How many lists there are more. */
  readonly made?: number
  readonly outcome: { readonly list?: StoredList; readonly entries?: EntriesOutcome }
  /** Of the list itself: entries say where they are from, and must be gone when they are. */
  readonly audit?: AuditDraft
}

export async function changed(command: ListCommand, seq: number, read: Read, what: Written): Promise<Change> {
  const { workspace, env, scope } = tenantOf(command)
  const put: Put[] = [...(what.put ?? []), ...what.lists.map((list) => ({ key: listKey(list.id), value: list }))]
  const drop: KvKey[] = [...(what.drop ?? [])]
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

async function oldDeltas(read: Read, scope: Scope, { deltas }: ListsMeta): Promise<KvKey[]> {
  if (deltas < DELTAS_KEPT + DELTAS_DROPPED) return []
  const oldest = await read.scan<ListDelta>(scope, LIST_DELTA, { limit: DELTAS_DROPPED })
  const [told] = await read.get<number>(scope, [LISTS_TOLD])
  const isFree = (seq: number) => !told || seq <= told.value || deltas >= DELTAS_UNTOLD_MAX
  return oldest.filter(({ value }) => isFree(value.seq)).map(({ key }) => key)
}
