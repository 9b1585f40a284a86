// How far erasures have come, for whoever asked for one: what it consists of, when ClickHouse stopped showing the visitor, and when
// everything deleted was last removed from disks. None of it names the visitor.

import type { Env } from '../domain/event.ts'
import type { Kv, KvKey, Put } from '../kv/kv.ts'
import type { Seq } from '../log/log.ts'
import type { RecordedErasure } from './erasures.ts'
import { partitionScope } from './partitions.ts'
import { SYSTEM, tenantScope } from './scopes.ts'

/** The erasure of one id: a visitor's own, or that of another one merged into it. */
export interface ErasurePart {
  readonly erasureId: string
  readonly partition: number
}

export interface RequestedErasure {
  /** Milliseconds. */
  readonly at: number
  readonly parts: readonly ErasurePart[]
}

/** When ClickHouse stopped showing the visitor, and up to which record of `events` the log may still hold what was decided before. */
export interface ExecutedErasure {
  readonly at: number
  readonly seq: Seq
  /** Whose it is and when it was asked for: all that is known of a request when the kv was lost. */
  readonly asked?: Pick<RecordedErasure, 'workspace' | 'env' | 'at'>
  /** Whom it erased, as `erasedId` makes it; absent in what earlier releases noted. */
  readonly erased?: string
}

/** What is noted of an erasure: not the id, which must not outlive it. */
export type ErasureOf = Pick<RecordedErasure, 'erasureId' | 'workspace' | 'env' | 'at'> & {
  /** As `erasedId` makes it. */
  readonly erased: string
}

/** The last time ClickHouse rewrote its parts without what was hidden. Milliseconds. */
export interface Purge {
  readonly startedAt: number
  readonly finishedAt: number
  /** Parts and patches that were replaced then, and that ClickHouse may still keep: names. */
  readonly left?: readonly string[]
  /** When none of them was on a disk any more; null: not yet. */
  readonly cleanAt?: number | null
}

/** The last time the embedded stores were rewritten without what had been deleted. */
export interface Rewrite {
  /** Milliseconds. */
  readonly startedAt: number
  /** Of each partition of `events` the oldest record that was left. */
  readonly oldest: readonly Seq[]
}

const requestedKey = (erasureId: string): KvKey => ['erasure', erasureId]
const EXECUTED = 'erasure-done'
/** By whom it erased: a visitor may be erased twice, and the log names it until it is past the last. */
const EXECUTED_LAST = 'erasure-last'
const NEWEST: KvKey = ['erasure-newest', 'executed']
const PURGE: KvKey = ['purge', 'events']
const REWRITE: KvKey = ['purge', 'stores']

/** Under the id of the first part all of them, and each of the others by itself. */
export async function noteRequested(
  kv: Pick<Kv, 'commit'>,
  workspace: string,
  env: Env,
  { at, parts }: RequestedErasure,
): Promise<void> {
  const put = parts.map(
    (part, i): Put => ({
      key: requestedKey(part.erasureId),
      value: { at, parts: i === 0 ? parts : [part] } satisfies RequestedErasure,
    }),
  )
  await kv.commit([{ scope: tenantScope(workspace, env), put }])
}

export async function readRequested(
  kv: Pick<Kv, 'get'>,
  workspace: string,
  env: Env,
  erasureId: string,
): Promise<RequestedErasure | null> {
  const [entry] = await kv.get<RequestedErasure>(tenantScope(workspace, env), [requestedKey(erasureId)])
  return entry?.value ?? null
}

/** What the sink stores with its step past erasures. */
export const executedPuts = (erasures: readonly ErasureOf[], executed: Pick<ExecutedErasure, 'at' | 'seq'>): Put[] =>
  erasures.length === 0
    ? []
    : [
        ...erasures.flatMap(({ erasureId, workspace, env, at, erased }): Put[] => [
          { key: [EXECUTED, erasureId], value: { ...executed, asked: { workspace, env, at }, erased } },
          { key: [EXECUTED_LAST, erased], value: executed },
        ]),
        { key: NEWEST, value: executed },
      ]

/** The last that the sink has executed in a partition. */
export async function readNewestErasure(kv: Pick<Kv, 'get'>, partition: number): Promise<ExecutedErasure | null> {
  const [entry] = await kv.get<ExecutedErasure>(partitionScope(partition), [NEWEST])
  return entry?.value ?? null
}

/** How far this erasure has come, or the last one of the same visitor. */
export async function readExecuted(
  kv: Pick<Kv, 'get'>,
  { partition, erasureId }: ErasurePart,
): Promise<ExecutedErasure | null> {
  const scope = partitionScope(partition)
  const [own] = await kv.get<ExecutedErasure>(scope, [[EXECUTED, erasureId]])
  if (own?.value.erased === undefined) return own?.value ?? null
  const [last] = await kv.get<ExecutedErasure>(scope, [[EXECUTED_LAST, own.value.erased]])
  return { ...own.value, ...last?.value }
}

export async function notePurge(kv: Pick<Kv, 'commit'>, purge: Purge): Promise<void> {
  await kv.commit([{ scope: SYSTEM, put: [{ key: PURGE, value: purge }] }])
}

export async function readPurge(kv: Pick<Kv, 'get'>): Promise<Purge | null> {
  const [entry] = await kv.get<Purge>(SYSTEM, [PURGE])
  return entry?.value ?? null
}

export async function noteRewrite(kv: Pick<Kv, 'commit'>, rewrite: Rewrite): Promise<void> {
  await kv.commit([{ scope: SYSTEM, put: [{ key: REWRITE, value: rewrite }] }])
}

export async function readRewrite(kv: Pick<Kv, 'get'>): Promise<Rewrite | null> {
  const [entry] = await kv.get<Rewrite>(SYSTEM, [REWRITE])
  return entry?.value ?? null
}
