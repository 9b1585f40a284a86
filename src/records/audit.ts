// The audit log in the kv: who changed what, when, from what into what. The owner of `changes` writes an entry with every change it
// applies, so the log is as complete as the configuration and is rebuilt together with it. Entries are kept for good,
// but those about a visitor go with it.

import type { Env } from '../domain/event.ts'
import type { Kv, KvKey, Put, Scope } from '../kv/kv.ts'
import { must } from '../lib/must.ts'
import { AUDIT_PART, openChangeReader, type PackedChange, packChange, type ReadChange } from './audit-parts.ts'
import { SEQ_DIGITS, scanAll, seqId, tenantScope, under } from './scopes.ts'

/** Kinds of objects whose changes are kept. */
export const AUDITED = [
  'rule',
  'list',
  'visitor',
  'webhook',
  'alert',
  'key',
  'workspace',
  'event',
  'erasure',
  'person',
] as const
export type Audited = (typeof AUDITED)[number]

/** What a change says of itself. Objects are given whole: what must not be read back is left out when they are presented. */
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

export interface StoredAuditEntry extends AuditDraft {
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
export const AUDIT_COLLECTIONS: readonly string[] = [AUDIT, AUDIT_IN, AUDIT_OF, AUDIT_PART]
/** Read at once: some were stored with both objects whole, each as long as a request may be. */
const ENTRIES_PER_READ = 4

/** An entry as it is stored; those of earlier versions hold their objects themselves. */
type StoredAudit = Omit<StoredAuditEntry, 'before' | 'after'> & { readonly change: PackedChange }

/** Of an entry about a visitor that is of another object: where else it lies. */
type Elsewhere = Pick<AuditDraft, 'resource' | 'id'>

/** The records of an entry. A command changes at most one object that is audited. */
export function auditPuts({ about, ...entry }: StoredAuditEntry): Put[] {
  const id = seqId(entry.seq)
  const { before, after, ...rest } = entry
  const object = objectOf(entry)
  const { packed, parts } = packChange({ before, after }, object)
  const elsewhere: Elsewhere = { resource: entry.resource, id: entry.id }
  return [
    ...parts,
    ...(about === undefined ? [] : [{ key: [AUDIT_OF, `visitor/${about}/${id}`] as KvKey, value: elsewhere }]),
    { key: [AUDIT, id], value: { ...rest, change: packed } satisfies StoredAudit },
    { key: [AUDIT_IN, `${entry.resource}/${id}`], value: true },
    { key: [AUDIT_OF, `${object}/${id}`], value: true },
  ]
}

const objectOf = ({ resource, id }: Pick<AuditDraft, 'resource' | 'id'>): string => `${resource}/${id}`

async function whole(stored: StoredAudit | StoredAuditEntry, read: ReadChange): Promise<StoredAuditEntry> {
  if (!('change' in stored)) return stored
  const { change, ...rest } = stored
  return { ...rest, ...(await read(change, objectOf(rest))) }
}

export interface AuditFilter {
  readonly resource?: Audited
  /** Only together with `resource`. */
  readonly id?: string
}

/** Takes one entry; false: the page ends with it. */
export type TakeEntry = (entry: StoredAuditEntry) => boolean | Promise<boolean>

const places = ({ resource, id }: AuditFilter): readonly [collection: string, prefix: string] => {
  if (resource === undefined) return [AUDIT, '']
  return id === undefined ? [AUDIT_IN, `${resource}/`] : [AUDIT_OF, `${resource}/${id}/`]
}

/**
 * Gives entries one by one, newest first, at most `limit`; `before` is the seq of the last entry of the previous page. Resolves with the
 * seq of the last one when there are more.
 */
export async function readAudit(
  kv: Pick<Kv, 'get' | 'scan'>,
  workspace: string,
  env: Env,
  filter: AuditFilter,
  limit: number,
  before: number | null,
  take: TakeEntry,
): Promise<number | null> {
  const scope = tenantScope(workspace, env)
  const [collection, prefix] = places(filter)
  const read = openChangeReader(kv, scope)
  let last = before
  let left = limit
  for (let atOnce = ENTRIES_PER_READ; left > 0; ) {
    const found = await kv.scan<StoredAudit | StoredAuditEntry | true>(scope, collection, {
      after: `${prefix}${seqId(0)}`,
      upTo: `${prefix}${last === null ? '9'.repeat(SEQ_DIGITS) : seqId(last - 1)}`,
      limit: Math.min(atOnce, left) + 1,
      reverse: true,
    })
    const some = found.slice(0, Math.min(atOnce, left))
    const entries =
      collection === AUDIT ? some : await kv.get<StoredAudit | StoredAuditEntry>(scope, some.map(entryKey))
    for (const [i, entry] of entries.entries()) {
      last = seqOf(must(some[i], 'a key for every entry').key)
      left--
      const goesOn = entry === null || (await take(await whole(entry.value as StoredAudit | StoredAuditEntry, read)))
      if (!goesOn) return i === found.length - 1 ? null : last
    }
    if (found.length === some.length) return null
    if (entries.every((entry) => entry !== null && 'change' in (entry.value as object))) atOnce *= 4
  }
  return last
}

const seqOf = (key: KvKey): number => Number(key[1].slice(-SEQ_DIGITS))
const entryKey = ({ key }: { readonly key: KvKey }): KvKey => [AUDIT, key[1].slice(-SEQ_DIGITS)]

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
): Promise<StoredAuditEntry | null> {
  const scope = tenantScope(workspace, env)
  const [entry] = await kv.get<StoredAudit | StoredAuditEntry>(scope, [[AUDIT, seqId(seq)]])
  if (!entry || entry.value.resource !== resource || entry.value.id !== id) return null
  return whole(entry.value, openChangeReader(kv, scope))
}

/** Everything the log keeps of one object: an erased visitor leaves it. */
export async function auditKeysOf(kv: Pick<Kv, 'scan'>, scope: Scope, resource: Audited, id: string): Promise<KvKey[]> {
  const keys: KvKey[] = []
  for await (const { key, value } of scanAll<true | Elsewhere>(kv, scope, AUDIT_OF, under(`${resource}/${id}`))) {
    const seq = key[1].slice(-SEQ_DIGITS)
    const own = value === true ? { resource, id } : value
    keys.push([AUDIT, seq], [AUDIT_IN, `${own.resource}/${seq}`], key)
    if (value === true) continue
    keys.push([AUDIT_OF, `${objectOf(own)}/${seq}`])
    for await (const part of scanAll(kv, scope, AUDIT_PART, under(objectOf(own)))) keys.push(part.key)
  }
  for await (const { key } of scanAll(kv, scope, AUDIT_PART, under(`${resource}/${id}`))) keys.push(key)
  return keys
}
