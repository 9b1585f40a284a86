// What happened to the lists of an environment, command by command: the newest changes stay in the kv for whoever follows,
// which are the processes that decide and whoever tells customers of entries. Each names the one before it, so that a
// follower who was away for too long notices.

import type { Env } from '../domain/event.ts'
import type { EntrySource, ListType } from '../domain/list.ts'
import type { Kv, KvKey } from '../kv/kv.ts'
import { seqId, tenantScope } from './scopes.ts'

/** Counts and positions of the lists of an environment. */
export const LISTS: KvKey = ['meta', 'lists']
export interface ListsMeta {
  readonly lists: number
  /** The seq of the newest delta; 0 before the first. */
  readonly last: number
  readonly deltas: number
}
export const NO_LISTS: ListsMeta = { lists: 0, last: 0, deltas: 0 }

export interface AddedEntry {
  readonly value: string
  readonly expiresAt: number | null
  /** It was not on the list before. */
  readonly isNew: boolean
  readonly source: EntrySource
  readonly ruleId: string | null
  readonly requestId: string | null
}

export interface ExpiredEntry {
  readonly value: string
  readonly addedAt: number
  readonly expiresAt: number
  /** Seconds it was given when it was last added; absent in what earlier releases noted. */
  readonly ttl?: number
}

/** What one command did to one list, which is as it was made unless it is gone. */
export interface ListChange {
  readonly id: string
  readonly name: string
  readonly type: ListType
  readonly gone: boolean
  readonly added: readonly AddedEntry[]
  readonly removed: readonly string[]
  readonly expired: readonly ExpiredEntry[]
}

export interface ListDelta {
  /** Of the command in `changes`. */
  readonly seq: number
  /** Of the delta before it. */
  readonly previous: number
  readonly at: number
  readonly changes: readonly ListChange[]
}

/** The seq of the last delta that subscribers were told of; missing before the first. */
export const LISTS_TOLD: KvKey = ['meta', 'lists-told']

export const LIST_DELTA = 'list-delta'
export const DELTAS_KEPT = 1_000
/** Those that subscribers were not told of yet are kept longer. */
export const DELTAS_UNTOLD_MAX = 100_000
export const deltaKey = (seq: number): KvKey => [LIST_DELTA, seqId(seq)]
const DELTAS_PER_PAGE = 50

export async function readListsMeta(kv: Pick<Kv, 'get'>, workspace: string, env: Env): Promise<ListsMeta> {
  const [entry] = await kv.get<ListsMeta>(tenantScope(workspace, env), [LISTS])
  return entry?.value ?? NO_LISTS
}

/** The next deltas after `seq`, at least one where `upTo` is later; null when the one that follows is not kept any more. */
export async function readDeltas(
  kv: Pick<Kv, 'scan'>,
  workspace: string,
  env: Env,
  seq: number,
  upTo: number,
): Promise<ListDelta[] | null> {
  const range = { after: seqId(seq), upTo: seqId(upTo), limit: DELTAS_PER_PAGE }
  const deltas = (await kv.scan<ListDelta>(tenantScope(workspace, env), LIST_DELTA, range)).map(({ value }) => value)
  let previous = seq
  for (const delta of deltas) {
    if (delta.previous !== previous) return null
    previous = delta.seq
  }
  return deltas.length === 0 && seq < upTo ? null : deltas
}
