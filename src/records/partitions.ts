// Where a partition's state lies in the kv: one scope per partition, one collection per kind, workspace and environment
// first in every id.

import type { Env } from '../domain/event.ts'
import type { KvKey, Scope } from '../kv/kv.ts'
import { HOUR_MS } from '../lib/durations.ts'
import { seqId } from './scopes.ts'

export const partitionScope = (partition: number): Scope => `p/${partition}`

/** Read by id and never in order; what they hold grows with the visitors. */
export const UNSORTED_COLLECTIONS: readonly string[] = ['visitor', 'index', 'rulestat', 'erased', 'learned', 'velocity']

/** Guarded positions kept in a partition's scope. */
export const ENGINE_POSITION = 'events'
export const SINK_POSITION = 'sink'
export const DISPATCHER_POSITION = 'dispatcher'

/** Packed records of visitors. */
export const VISITOR = 'visitor' as const
export const visitorKey = (workspace: string, env: Env, visitorId: string): KvKey => [
  VISITOR,
  `${workspace}/${env}/${visitorId}`,
]
export const indexKey = (workspace: string, env: Env, key: string): KvKey => ['index', `${workspace}/${env}/${key}`]
/** Two counters and a time per rule and partition; the sum over partitions is the rule's statistic. */
export const ruleStatKeys = (id: string): { readonly live: KvKey; readonly monitor: KvKey; readonly last: KvKey } => ({
  live: ['rulestat', `${id}/live`],
  monitor: ['rulestat', `${id}/monitor`],
  last: ['rulestat', `${id}/last`],
})

/** What the partition counted of an address or an account, by a hash of it. */
export const VELOCITY = 'velocity' as const
/** A counter nobody added to for so long has nothing in any window. */
export const VELOCITY_KEPT_MS = 26 * HOUR_MS
/**
 * How long one is kept that is written now: at most that, and at least an hour less. It goes on the hour, so that one that is written
 * every minute is noted once an hour, where its writer does not know it to be there.
 */
export const velocityTtlMs = (nowMs: number): number => VELOCITY_KEPT_MS - (nowMs % HOUR_MS)

/** One that was written so recently is there still, whenever in its hour that was. */
export const VELOCITY_THERE_MS = 12 * HOUR_MS

/** Nonces decided up to an events seq; ids sort by it. */
export const NONCE = 'nonce'
/** `part`: which chunk of those that one checkpoint stores. */
export const nonceKey = (eventsSeq: number, part = 0): KvKey => [
  NONCE,
  part === 0 ? seqId(eventsSeq) : `${seqId(eventsSeq)}.${String(part).padStart(3, '0')}`,
]
export const SINK_MARK: KvKey = ['sink', 'mark']
/** The range that was last inserted by somebody else than who marked it, too. */
export const SINK_REPEATED: KvKey = ['sink', 'repeated']
/** The last identification decided as of the engine's position. */
export const DECIDED_TO: KvKey = ['engine', 'decidedTo']
