// How far an erasure has come, store by store.

import type { Env } from '../domain/event.ts'
import type { Kv } from '../kv/kv.ts'
import type { Clock } from '../lib/clock.ts'
import type { Log } from '../log/log.ts'
import {
  type ErasurePart,
  type ExecutedErasure,
  type RequestedErasure,
  type Rewrite,
  readExecuted,
  readPurge,
  readRequested,
  readRewrite,
} from '../records/erasure-progress.ts'
import { LIST_DELTA, LISTS_TOLD, type ListDelta } from '../records/list-deltas.ts'
import { DISPATCHER_POSITION, partitionScope } from '../records/partitions.ts'
import { seqId, tenantScope } from '../records/scopes.ts'

/** `done`: no byte of it is left in the store. `pending`: bytes are, though no read shows them. */
export type StoreStatus = 'done' | 'pending'

export interface StoreProgress {
  readonly store: string
  readonly status: StoreStatus
  /** Milliseconds; null when it is done. */
  readonly expectedBy: number | null
}

export interface ErasureProgress {
  /** Milliseconds. */
  readonly requestedAt: number
  readonly stores: readonly StoreProgress[]
}

export interface ErasureReadsNeeds {
  /** Where they can be compacted their bytes are on disks that a rewrite cleans. */
  readonly kv: Pick<Kv, 'get' | 'scan' | 'position' | 'compact'>
  readonly log: Pick<Log, 'read' | 'last' | 'compact'>
  readonly clock: Pick<Clock, 'now'>
  readonly partitions: number
}

/** null: there is no such erasure. */
export type ReadErasure = (workspace: string, env: Env, erasureId: string) => Promise<ErasureProgress | null>

/** By then everything is gone, unless a store was away. */
const PROMISED_MS = 86_400_000
const OLDEST = { recordsMax: 1, bytesMax: 1, waitMsMax: 0 }

export function openErasureReads({ kv, log, clock, partitions }: ErasureReadsNeeds): ReadErasure {
  const everyPartition = Array.from({ length: partitions }, (_, partition) => partition)

  /** What the owners of partitions have left of a request that is not known any more. */
  async function executedAlone(workspace: string, env: Env, erasureId: string): Promise<RequestedErasure | null> {
    const found = await Promise.all(everyPartition.map((partition) => readExecuted(kv, { partition, erasureId })))
    const partition = found.findIndex((one) => one?.asked?.workspace === workspace && one.asked.env === env)
    const asked = found[partition]?.asked
    return asked === undefined ? null : { at: asked.at, parts: [{ erasureId, partition }] }
  }

  /** A moment that is still to come was noted by a clock that was ahead: it may lie before what came later. */
  const areBefore = (executed: readonly (ExecutedErasure | null)[], moment: number): boolean =>
    moment <= clock.now() && executed.every((one) => one !== null && one.at < moment)

  async function eventsStatus(executed: readonly (ExecutedErasure | null)[]): Promise<StoreStatus> {
    const purge = await readPurge(kv)
    const isClean = typeof purge?.cleanAt === 'number'
    return isClean && areBefore(executed, purge.startedAt) ? 'done' : 'pending'
  }

  /** What was dropped before the erasure was executed. */
  const droppedStatus = (executed: readonly (ExecutedErasure | null)[], rewrite: Rewrite | null): StoreStatus =>
    kv.compact === undefined || (rewrite !== null && areBefore(executed, rewrite.startedAt)) ? 'done' : 'pending'

  /** Followers of `events` may store what they have read of the visitor until they are past the erasure. */
  async function isFollowed({ partition }: ErasurePart, executed: ExecutedErasure | null): Promise<boolean> {
    if (executed === null) return false
    const position = await kv.position(partitionScope(partition), DISPATCHER_POSITION)
    return position !== null && position >= executed.seq
  }

  /** The same of those who follow lists: they are past it when what they have not told yet came later. */
  async function areListsFollowed(
    workspace: string,
    env: Env,
    executed: readonly (ExecutedErasure | null)[],
  ): Promise<boolean> {
    const scope = tenantScope(workspace, env)
    const [told] = await kv.get<number>(scope, [LISTS_TOLD])
    const [next] = await kv.scan<ListDelta>(scope, LIST_DELTA, { after: seqId(told?.value ?? 0), limit: 1 })
    return next === undefined || executed.every((one) => one !== null && one.at < next.value.at)
  }

  /** Whether everything decided before the erasure, and the erasure itself, has left the log. */
  async function logStatus(
    { partition }: ErasurePart,
    executed: ExecutedErasure | null,
    rewrite: Rewrite | null,
  ): Promise<StoreStatus> {
    if (executed === null) return 'pending'
    if (rewrite !== null && (rewrite.oldest[partition] ?? 0) > executed.seq) return 'done'
    const [oldest] = await log.read('events', partition, 0, OLDEST)
    const isTrimmed = (oldest?.seq ?? (await log.last('events', partition)) + 1) > executed.seq
    return isTrimmed && log.compact === undefined ? 'done' : 'pending'
  }

  return async (workspace, env, erasureId) => {
    const requested =
      (await readRequested(kv, workspace, env, erasureId)) ?? (await executedAlone(workspace, env, erasureId))
    if (requested === null) return null
    const { parts } = requested
    const executed = await Promise.all(parts.map((part) => readExecuted(kv, part)))
    const rewrite = await readRewrite(kv)
    const dropped = droppedStatus(executed, rewrite)
    const followed = await Promise.all([
      areListsFollowed(workspace, env, executed),
      ...parts.map((part, i) => isFollowed(part, executed[i] ?? null)),
    ])
    const logged = await Promise.all(parts.map((part, i) => logStatus(part, executed[i] ?? null, rewrite)))
    const statuses: readonly (readonly [string, StoreStatus])[] = [
      // Dropped before the answer to the DELETE.
      ['profile', dropped],
      ['lists', dropped],
      ['webhooks', followed.every((one) => one) ? dropped : 'pending'],
      ['events', await eventsStatus(executed)],
      ['log', logged.every((one) => one === 'done') ? 'done' : 'pending'],
    ]
    const expectedBy = requested.at + PROMISED_MS
    return {
      requestedAt: requested.at,
      stores: statuses.map(([store, status]) => ({ store, status, expectedBy: status === 'done' ? null : expectedBy })),
    }
  }
}
