// What rules did to a list, in the audit log: one entry per list and hour, whose counts grow, so that an attack that a rule answers with
// an entry per event does not fill a log that is kept for good.

import type { KvKey, Put, Scope } from '../kv/kv.ts'
import { type AuditDraft, auditPuts } from '../records/audit.ts'
import type { Read } from './change.ts'
import type { EntriesWritten } from './list-entries.ts'

const ENTRIES = { resource: 'list', action: 'entries', before: null } as const
/** Of a list's entries counts alone: an entry may be a person, and must be gone when it is gone. */
export const countsOf = (id: string, after: object): AuditDraft => ({ ...ENTRIES, id, after })

/** Of a list, the entry that still grows. */
const GROWING = 'list-effects-audit'
const GROWS_MS = 3_600_000
export const growingKey = (listId: string): KvKey => [GROWING, listId]

interface Growing {
  readonly seq: number
  readonly at: number
  readonly added: number
  readonly removed: number
  /** Absent: of an earlier version, which did not count them. */
  readonly refreshed?: number
}

/** The records of the entry as it is after one more command, whose only list this is. */
export async function auditEffects(
  read: Read,
  scope: Scope,
  { list: { id }, added, removed, refreshed }: EntriesWritten,
  { at, actor, seq }: { readonly at: number; readonly actor: string; readonly seq: number },
): Promise<Put[]> {
  if (added + removed + refreshed === 0) return []
  const key = growingKey(id)
  const [entry] = await read.get<Growing>(scope, [key])
  const last = entry?.value
  const before = last !== undefined && at - last.at < GROWS_MS ? last : { seq, at, added: 0, removed: 0 }
  const counts = {
    added: before.added + added,
    removed: before.removed + removed,
    refreshed: (before.refreshed ?? 0) + refreshed,
  }
  const now: Growing = { seq: before.seq, at: before.at, ...counts }
  const after = { id, ...counts, source: 'rule' }
  return [{ key, value: now }, ...auditPuts({ ...countsOf(id, after), at: now.at, actor, seq: now.seq })]
}
