// Has visitors forgotten whom nobody saw for as long as they are kept, with their places in the match index: not those on a list, nor
// those of whom an event that is kept has a label. The owner of their partition, who alone writes its state, decides it.

import type { ClickHouse } from '../clickhouse/clickhouse.ts'
import type { Env } from '../domain/event.ts'
import { homePartition } from '../domain/ids.ts'
import type { Workspace } from '../domain/workspace.ts'
import { isExpired } from '../engine/visitor-commands.ts'
import { EVENTS_TABLE } from '../events/row.ts'
import { unpackVisitor } from '../identity/visitor-record.ts'
import type { Kv } from '../kv/kv.ts'
import type { Clock } from '../lib/clock.ts'
import { DAY_MS } from '../lib/durations.ts'
import type { Log } from '../log/log.ts'
import { groupOf } from '../records/aliases.ts'
import { listLabelling } from '../records/annotations.ts'
import { EXPIRING_MAX } from '../records/expiry.ts'
import { encodeExpiry } from '../records/identification.ts'
import { listsOfVisitor } from '../records/lists.ts'
import { partitionScope, visitorKey } from '../records/partitions.ts'
import { unpackHeldVisitor } from '../records/visitors.ts'
import { listWorkspaces } from '../records/workspaces.ts'

export interface ExpireNeeds {
  readonly kv: Pick<Kv, 'get' | 'scan' | 'walk'>
  readonly log: Pick<Log, 'append'>
  readonly clickhouse: Pick<ClickHouse, 'query'>
  readonly clock: Clock
  readonly partitions: number
  /** Of a workspace; undefined: one that is gone. */
  readonly visitorsDays: (workspace: Workspace | undefined) => number
}

/** At most so many visitors are looked at before each pause. */
const VISITORS_AT_ONCE = 500
const PAUSE_MS = 250

interface Tenant {
  readonly workspace: string
  readonly env: Env
}

/** Resolves with how many were looked at when every visitor of the partition was. Twice equals once. */
export async function expireVisitors(needs: ExpireNeeds, partition: number, signal: AbortSignal): Promise<number> {
  const { kv, clock, visitorsDays } = needs
  const workspaces = new Map((await listWorkspaces(kv)).map((one) => [one.id, one]))
  const before = (workspace: string) => clock.now() - visitorsDays(workspaces.get(workspace)) * DAY_MS
  const waiting = new Map<string, string[]>()
  let looked = 0
  for await (const { key, value } of kv.walk<Uint8Array>(partitionScope(partition), 'visitor')) {
    if (++looked % VISITORS_AT_ONCE === 0) await clock.sleep(PAUSE_MS, signal)
    if (signal.aborted) return looked
    const [workspace = '', env, visitorId = ''] = key[1].split('/')
    const held = unpackHeldVisitor(value)
    if (!isExpired(held, before(workspace))) continue
    const tenant = { workspace, env: env as Env }
    // Merged visitors are one: as long as any of them is seen, all are.
    if (held.survivor !== null && !(await isFamilyExpired(needs, tenant, visitorId, before(workspace)))) continue
    const name = `${workspace}/${env}`
    const ids = waiting.get(name) ?? []
    waiting.set(name, ids)
    if (ids.push(visitorId) < EXPIRING_MAX) continue
    waiting.delete(name)
    await forget(needs, partition, tenant, ids, before(workspace))
  }
  for (const [name, ids] of waiting) {
    const [workspace = '', env] = name.split('/')
    if (!signal.aborted) await forget(needs, partition, { workspace, env: env as Env }, ids, before(workspace))
  }
  return looked
}

async function isFamilyExpired(
  { kv, partitions }: ExpireNeeds,
  { workspace, env }: Tenant,
  visitorId: string,
  before: number,
): Promise<boolean> {
  for (const id of await groupOf(kv, workspace, env, visitorId)) {
    const scope = partitionScope(homePartition(id, partitions))
    const [entry] = await kv.get<Uint8Array>(scope, [visitorKey(workspace, env, id)])
    if (entry && unpackVisitor(unpackHeldVisitor(entry.value).state).lastSeenAt >= before) return false
  }
  return true
}

async function forget(
  { kv, log, clickhouse, clock, partitions }: ExpireNeeds,
  partition: number,
  { workspace, env }: Tenant,
  ids: readonly string[],
  before: number,
): Promise<void> {
  const families = await Promise.all(ids.map((id) => groupOf(kv, workspace, env, id)))
  const labelling = await listLabelling(kv, partitions, workspace, env)
  const labelled = await clickhouse.query<{ id: string }>(
    `SELECT DISTINCT visitor_id AS id FROM ${EVENTS_TABLE}
     WHERE workspace_id = {workspace:String} AND env = {env:String}
       AND (label != 'none' OR request_id IN {labelling:Array(String)})
       AND visitor_hash IN (SELECT cityHash64(arrayJoin({ids:Array(String)}))) AND visitor_id IN {ids:Array(String)}`,
    { workspace, env, ids: families.flat(), labelling },
    { background: true },
  )
  const kept = new Set(labelled.map(({ id }) => id))
  const lists = await Promise.all(families.map(([id]) => listsOfVisitor(kv, workspace, env, id, clock.now())))
  const visitorIds = ids.filter((_, i) => !families[i]?.some((id) => kept.has(id)) && lists[i]?.length === 0)
  if (visitorIds.length === 0) return
  await log.append('identifications', partition, [encodeExpiry({ workspace, env, visitorIds, before })])
}
