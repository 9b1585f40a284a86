// How far an erasure has come, store by store.

import type { Env } from '../domain/event.ts'
import type { Kv } from '../kv/kv.ts'
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
import { DISPATCHER_POSITION, partitionScope } from '../records/partitions.ts'

/**
 * `done`: nothing is left. `hidden`: no read shows it. `deleted`: no query of the store finds it, but its bytes may be on disk.
 * `pending`: not removed yet, and shown to nobody.
 */
export type StoreStatus = 'done' | 'hidden' | 'deleted' | 'pending'

export interface ErasureProgress {
  /** Milliseconds. */
  readonly requestedAt: number
  readonly stores: readonly { readonly store: string; readonly status: StoreStatus }[]
}

export interface ErasureReadsNeeds {
  /** Where they can be compacted their bytes are on disks that a rewrite cleans. */
  readonly kv: Pick<Kv, 'get' | 'position' | 'compact'>
  readonly log: Pick<Log, 'read' | 'last' | 'compact'>
  readonly partitions: number
}

/** null: there is no such erasure. */
export type ReadErasure = (workspace: string, env: Env, erasureId: string) => Promise<ErasureProgress | null>

const OLDEST = { recordsMax: 1, bytesMax: 1, waitMsMax: 0 }

export function openErasureReads({ kv, log, partitions }: ErasureReadsNeeds): ReadErasure {
  const everyPartition = Array.from({ length: partitions }, (_, partition) => partition)

  /** What the owners of partitions have left of a request that is not known any more. */
  async function executedAlone(workspace: string, env: Env, erasureId: string): Promise<RequestedErasure | null> {
    const found = await Promise.all(everyPartition.map((partition) => readExecuted(kv, { partition, erasureId })))
    const partition = found.findIndex((one) => one?.asked?.workspace === workspace && one.asked.env === env)
    const asked = found[partition]?.asked
    return asked === undefined ? null : { at: asked.at, parts: [{ erasureId, partition }] }
  }

  async function eventsStatus(executed: readonly (ExecutedErasure | null)[]): Promise<StoreStatus> {
    const purge = await readPurge(kv)
    if (executed.some((one) => one === null)) return 'hidden'
    return purge !== null && executed.every((one) => one !== null && one.at < purge.startedAt) ? 'done' : 'deleted'
  }

  /** What was dropped before the erasure was executed. */
  function droppedStatus(executed: readonly (ExecutedErasure | null)[], rewrite: Rewrite | null): StoreStatus {
    if (kv.compact === undefined) return 'done'
    return rewrite !== null && executed.every((one) => one !== null && one.at < rewrite.startedAt) ? 'done' : 'deleted'
  }

  /** Followers of `events` may store what they have read of the visitor until they are past the erasure. */
  async function isFollowed({ partition }: ErasurePart, executed: ExecutedErasure | null): Promise<boolean> {
    if (executed === null) return false
    const position = await kv.position(partitionScope(partition), DISPATCHER_POSITION)
    return position !== null && position >= executed.seq
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
    if ((oldest?.seq ?? (await log.last('events', partition)) + 1) <= executed.seq) return 'pending'
    return log.compact === undefined ? 'done' : 'deleted'
  }

  return async (workspace, env, erasureId) => {
    const requested =
      (await readRequested(kv, workspace, env, erasureId)) ?? (await executedAlone(workspace, env, erasureId))
    if (requested === null) return null
    const { parts } = requested
    const executed = await Promise.all(parts.map((part) => readExecuted(kv, part)))
    const rewrite = await readRewrite(kv)
    const dropped = droppedStatus(executed, rewrite)
    const followed = await Promise.all(parts.map((part, i) => isFollowed(part, executed[i] ?? null)))
    const logged = await Promise.all(parts.map((part, i) => logStatus(part, executed[i] ?? null, rewrite)))
    return {
      requestedAt: requested.at,
      stores: [
        // Dropped before the answer to the DELETE.
        { store: 'profile', status: dropped },
        { store: 'lists', status: dropped },
        { store: 'webhooks', status: followed.every((one) => one) ? dropped : 'pending' },
        { store: 'events', status: await eventsStatus(executed) },
        { store: 'log', status: slowest(logged) },
      ],
    }
  }
}

const slowest = (all: readonly StoreStatus[]): StoreStatus =>
  (['pending', 'hidden', 'deleted'] as const).find((status) => all.includes(status)) ?? 'done'
