// The audit log in the kv: who changed what, when, from what into what. The owner of `changes` writes an entry with every change it
// applies, so the log is as complete as the configuration and is rebuilt together with it. Entries are kept for good,
// but those about a visitor go with it.

import type { Env } from '../domain/event.ts'
import type { Key, Kv, Put, Scope } from '../kv/kv.ts'
import { SEQ_DIGITS, scanAll, seqId, tenantScope, under } from './scopes.ts'

/** Kinds of objects whose changes are kept. */
export const AUDITED = ['rule', 'list', 'visitor', 'webhook', 'alert', 'key', 'workspace', 'event', 'erasure'] as const
export type Audited = (typeof AUDITED)[number]

/** What a change says of itself. Objects are stored whole: what must not be read back is left out when they are presented. */
export interface AuditDraft {
  readonly resource: Audited
  readonly id: string
  /** create, update, delete … */
  readonly action: string
  /** The object before and after; null when there was or is none. */
  readonly before: unknown
  readonly after: unknown
  /** The visitor that another object is of: the entry goes with it. */
  readonly about?: string
}

export interface AuditEntry extends AuditDraft {
  /** Milliseconds, by the clock of whoever asked for the change. */
  readonly at: number
  /** The id of a key, or the name of a part of the service. */
  readonly actor: string
  /** The place of the change in `changes`; a rule's version. */
  readonly seq: number
}

const AUDIT = 'audit'
/** Entries by kind, and by object: ids end with that of the entry. */
const AUDIT_IN = 'audit-in'
const AUDIT_OF = 'audit-of'
export const AUDIT_COLLECTIONS: readonly string[] = [AUDIT, AUDIT_IN, AUDIT_OF]

/** Of an entry about a visitor that is of another object: where else it lies. */
type Elsewhere = Pick<AuditDraft, 'resource' | 'id'>

/** The records of an entry. A command changes at most one object that is audited. */
export function auditPuts({ about, ...entry }: AuditEntry): Put[] {
  const id = seqId(entry.seq)
  const elsewhere: Elsewhere = { resource: entry.resource, id: entry.id }
  return [
    ...(about === undefined ? [] : [{ key: [AUDIT_OF, `visitor/${about}/${id}`] as Key, value: elsewhere }]),
    { key: [AUDIT, id], value: entry },
    { key: [AUDIT_IN, `${entry.resource}/${id}`], value: true },
    { key: [AUDIT_OF, `${entry.resource}/${entry.id}/${id}`], value: true },
  ]
}

export interface AuditFilter {
  readonly resource?: Audited
  /** Only together with `resource`. */
  readonly id?: string
}

export interface AuditPage {
  readonly entries: readonly AuditEntry[]
  readonly hasMore: boolean
}

const places = ({ resource, id }: AuditFilter): readonly [collection: string, prefix: string] => {
  if (resource === undefined) return [AUDIT, '']
  return id === undefined ? [AUDIT_IN, `${resource}/`] : [AUDIT_OF, `${resource}/${id}/`]
}

/** Newest first; `before` is the seq of the last entry of the previous page. */
export async function readAudit(
  kv: Pick<Kv, 'get' | 'scan'>,
  workspace: string,
  env: Env,
  filter: AuditFilter,
  limit: number,
  before: number | null,
): Promise<AuditPage> {
  const scope = tenantScope(workspace, env)
  const [collection, prefix] = places(filter)
  const upTo = before === null ? '9'.repeat(SEQ_DIGITS) : seqId(before - 1)
  const found = await kv.scan(scope, collection, {
    after: `${prefix}${seqId(0)}`,
    upTo: `${prefix}${upTo}`,
    limit: limit + 1,
    reverse: true,
  })
  const keys: Key[] = found.slice(0, limit).map(({ key }) => [AUDIT, key[1].slice(-SEQ_DIGITS)])
  const entries = keys.length === 0 ? [] : await kv.get<AuditEntry>(scope, keys)
  return {
    entries: entries.flatMap((entry) => (entry === null ? [] : [entry.value])),
    hasMore: found.length > limit,
  }
}

/** The places of all changes of an object, oldest first. */
export async function readAuditSeqs(
  kv: Pick<Kv, 'scan'>,
  workspace: string,
  env: Env,
  resource: Audited,
  id: string,
): Promise<number[]> {
  const seqs: number[] = []
  for await (const { key } of scanAll(kv, tenantScope(workspace, env), AUDIT_OF, under(`${resource}/${id}`))) {
    seqs.push(Number(key[1].slice(-SEQ_DIGITS)))
  }
  return seqs
}

/** The entry of one change of one object; null when that change was of another one, or there was none. */
export async function readAuditEntry(
  kv: Pick<Kv, 'get'>,
  workspace: string,
  env: Env,
  { resource, id, seq }: { readonly resource: Audited; readonly id: string; readonly seq: number },
): Promise<AuditEntry | null> {
  const [entry] = await kv.get<AuditEntry>(tenantScope(workspace, env), [[AUDIT, seqId(seq)]])
  return entry && entry.value.resource === resource && entry.value.id === id ? entry.value : null
}

/** Everything the log keeps of one object: an erased visitor leaves it. */
export async function auditKeysOf(kv: Pick<Kv, 'scan'>, scope: Scope, resource: Audited, id: string): Promise<Key[]> {
  const keys: Key[] = []
  for await (const { key, value } of scanAll<true | Elsewhere>(kv, scope, AUDIT_OF, under(`${resource}/${id}`))) {
    const seq = key[1].slice(-SEQ_DIGITS)
    const own = value === true ? { resource, id } : value
    keys.push([AUDIT, seq], [AUDIT_IN, `${own.resource}/${seq}`], key)
    if (value !== true) keys.push([AUDIT_OF, `${own.resource}/${own.id}/${seq}`])
  }
  return keys
}
