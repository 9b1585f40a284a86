// Removes the bytes of erased visitors from the embedded stores, which only write over what they freed when they need its pages.
// Nothing happens unless a visitor was erased since the last time.

import type { Kv } from '../kv/kv.ts'
import type { Clock } from '../lib/clock.ts'
import { dueInMs } from '../lib/due.ts'
import { type PollPace, pollUntil } from '../lib/poll.ts'
import type { Log, Seq } from '../log/log.ts'
import {
  type ExecutedErasure,
  noteRewrite,
  type Rewrite,
  readNewestErasure,
  readRewrite,
} from '../records/erasure-progress.ts'
import { CHANGES_READER, SYSTEM } from '../records/scopes.ts'
import { forgetIds } from './forget-ids.ts'

export interface RewriteNeeds {
  readonly kv: Pick<Kv, 'get' | 'scan' | 'position' | 'commit' | 'compact'>
  readonly log: Pick<Log, 'read' | 'last' | 'replace' | 'compact'>
  readonly clock: Pick<Clock, 'now' | 'monotonic' | 'sleep'>
  readonly partitions: number
  /** Between the beginnings of two. */
  readonly everyMs: number
}

/** Commands are applied as they come; one that waits for longer waits for whoever owns `changes` next. */
const APPLIED_PACE: PollPace = { forMs: 10_000, everyMs: 10, everyMsMax: 200 }
const OLDEST = { recordsMax: 1, bytesMax: 1, waitMsMax: 0 }

/** Resolves at once where the stores are servers. Fails with Full when a disk has no room for it, or Unavailable. */
export async function rewriteStores(needs: RewriteNeeds, signal: AbortSignal): Promise<void> {
  const { kv, log, clock, partitions, everyMs } = needs
  if (kv.compact === undefined || log.compact === undefined) return
  const noted = await readRewrite(kv)
  if (noted !== null && dueInMs(noted.startedAt, everyMs, clock.now()) > 0) return
  // Which erasures came before a moment that is still to come cannot be told.
  const last = noted !== null && noted.startedAt > clock.now() ? null : noted
  const every = Array.from({ length: partitions }, (_, partition) => partition)
  const newest = await Promise.all(every.map((partition) => readNewestErasure(kv, partition)))
  if (!isDue(newest, last)) return
  const startedAt = clock.now()
  const oldest = await Promise.all(every.map((partition) => oldestLeft(log, partition)))
  // An erasure leaves a command that names the visitor, and only of those that were applied a name is taken.
  if (!(await isApplied(needs, await log.last('changes', 0), signal))) return
  await forgetIds(needs, signal)
  if (signal.aborted) return
  await kv.compact()
  if (signal.aborted) return
  await log.compact()
  await noteRewrite(kv, { startedAt, oldest })
}

/** An erasure that came too late for the last rewrite, or whose records were in the log then. */
const isDue = (newest: readonly (ExecutedErasure | null)[], last: Rewrite | null): boolean =>
  newest.some(
    (erasure, partition) =>
      erasure !== null &&
      (last === null || erasure.at >= last.startedAt || erasure.seq >= (last.oldest[partition] ?? 0)),
  )

async function isApplied({ kv, clock }: RewriteNeeds, upTo: Seq, signal: AbortSignal): Promise<boolean> {
  const ask = async () => ((await kv.position(SYSTEM, CHANGES_READER)) ?? 0) >= upTo || null
  return (await pollUntil(clock, APPLIED_PACE, ask, signal)) ?? false
}

async function oldestLeft(log: Pick<Log, 'read' | 'last'>, partition: number): Promise<Seq> {
  const [oldest] = await log.read('events', partition, 0, OLDEST)
  return oldest?.seq ?? (await log.last('events', partition)) + 1
}
