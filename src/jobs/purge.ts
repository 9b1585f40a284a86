// Removes from disks what was deleted: in ClickHouse's tables, where until then a patch only hides it, and in the embedded stores.
// Events and full addresses that a workspace keeps for a shorter time than the deployment are deleted first.

import type { ClickHouse } from '../clickhouse/clickhouse.ts'
import type { Workspace } from '../domain/workspace.ts'
import { EVENTS_TABLE } from '../events/row.ts'
import type { Clock } from '../lib/clock.ts'
import { dueInMs } from '../lib/due.ts'
import { DAY_MS } from '../lib/durations.ts'
import { Full, Unavailable } from '../lib/failures.ts'
import { notePurge, type Purge, readPurge } from '../records/erasure-progress.ts'
import { listWorkspaces } from '../records/workspaces.ts'
import { HIDE, hideAgain } from '../sink/erase.ts'
import { dropStagedVisits } from '../sink/staged-visits.ts'
import { applyPatches, areLeft } from './replaced-parts.ts'
import { type RewriteNeeds, rewriteStores } from './rewrite.ts'

export interface PurgeNeeds extends RewriteNeeds {
  readonly clickhouse: Pick<ClickHouse, 'command' | 'patch' | 'query'>
  /** Name of the ClickHouse cluster whose replicas hold the tables; empty: a single server. */
  readonly cluster: string
  readonly clock: Clock
  /** Between the beginnings of two runs. */
  readonly everyMs: number
  readonly retention: { readonly eventsDays: number; readonly fullIpDays: number }
  readonly onError: (error: unknown) => void
}

const LOOK_MS_MAX = 60_000
/** A deployment that has just started has other things to do. */
const FIRST_MS = 600_000
/** ClickHouse may have been away for so long when an erasure was to be executed. */
const LATE_MS = 2 * DAY_MS
const ROUNDS_MAX = 5
/** What is kept of an address: /24 of IPv4 (as it is mapped into IPv6), /48 of IPv6. */
const NETWORK = `if(startsWith(IPv6NumToString(ip), '::ffff:'),
  tupleElement(IPv6CIDRToRange(ip, 120), 1), tupleElement(IPv6CIDRToRange(ip, 48), 1))`

/** Runs until `signal` aborts. When the last run was is stored, so whoever takes over keeps the pace. */
export async function runPurge(needs: PurgeNeeds, signal: AbortSignal): Promise<void> {
  const { kv, clock, everyMs, onError } = needs
  const firstAt = clock.now() + Math.min(FIRST_MS, everyMs)
  const attempt = async (work: () => Promise<void>) => {
    try {
      if (!signal.aborted) await work()
    } catch (error) {
      if (error instanceof Full || !(error instanceof Unavailable)) onError(error)
    }
  }
  while (!signal.aborted) {
    let waitMs = Math.min(LOOK_MS_MAX, everyMs)
    await attempt(async () => {
      const last = await readPurge(kv)
      if (last !== null) await lookForReplaced(needs, last)
      const dueMs = last === null ? firstAt - clock.now() : dueInMs(last.startedAt, everyMs, clock.now())
      if (dueMs <= 0) await purge(needs, signal)
      else waitMs = Math.min(waitMs, dueMs)
    })
    // Noted apart: what one of the two could not finish neither holds up the other nor has it repeated.
    if (clock.now() >= firstAt) await attempt(() => rewriteStores(needs, signal))
    await clock.sleep(waitMs, signal)
  }
}

async function purge(needs: PurgeNeeds, signal: AbortSignal): Promise<void> {
  const { kv, clickhouse, clock, retention } = needs
  const startedAt = clock.now()
  // On embedded storage nobody else has the folder, so what a rebuild has left is nobody's; on servers one may be at work.
  await dropStagedVisits(clickhouse, kv.compact === undefined ? startedAt - DAY_MS : startedAt)
  for (const workspace of await listWorkspaces(kv)) {
    if (signal.aborted) return
    await shorten(clickhouse, workspace, retention, startedAt)
  }
  const since = Math.min(startedAt, (await readPurge(kv))?.startedAt ?? startedAt) - LATE_MS
  const left = new Set<string>()
  for (let round = 0; round < ROUNDS_MAX; round++) {
    for (const name of await applyPatches(needs, signal)) left.add(name)
    if (signal.aborted) return
    if ((await hideAgain(clickhouse, since)) > 0) continue
    const finishedAt = clock.now()
    await notePurge(kv, { startedAt, finishedAt, left: [...left], cleanAt: left.size === 0 ? finishedAt : null })
    return
  }
  throw new Error(`erased visitors are still in ClickHouse after ${ROUNDS_MAX} rounds of a purge`)
}

/** Notes when nothing is left of what the last purge replaced. */
async function lookForReplaced(needs: PurgeNeeds, last: Purge): Promise<void> {
  const { left, cleanAt } = last
  // Earlier releases did not note what they had replaced; the next purge does.
  if (left === undefined || cleanAt !== null || (await areLeft(needs, left))) return
  await notePurge(needs.kv, { ...last, left: [], cleanAt: needs.clock.now() })
}

async function shorten(
  clickhouse: Pick<ClickHouse, 'patch'>,
  { id: workspace, settings }: Workspace,
  { eventsDays, fullIpDays }: PurgeNeeds['retention'],
  nowMs: number,
): Promise<void> {
  const before = (days: number) => ({ workspace, before: nowMs - days * DAY_MS })
  const old = 'workspace_id = {workspace:String} AND ts < fromUnixTimestamp64Milli({before:Int64})'
  const keepsEvents = settings.retention?.eventsDays ?? eventsDays
  if (keepsEvents < eventsDays) {
    await clickhouse.patch(EVENTS_TABLE, `DELETE FROM ${EVENTS_TABLE} WHERE ${old} ${HIDE}`, before(keepsEvents))
  }
  const keepsIps = Math.min(settings.retention?.fullIpDays ?? fullIpDays, fullIpDays)
  if (keepsIps < Math.min(keepsEvents, eventsDays)) {
    await clickhouse.patch(
      EVENTS_TABLE,
      `UPDATE ${EVENTS_TABLE} SET ip = ${NETWORK} WHERE ${old} AND ip != ${NETWORK}`,
      before(keepsIps),
    )
  }
}
