// Whether a split has come to everybody who is asked: the records of the new visitors, and the rows of their events.

import type { ClickHouse } from '../clickhouse/clickhouse.ts'
import type { Env } from '../domain/event.ts'
import { EVENTS_TABLE } from '../events/row.ts'
import type { Clock } from '../lib/clock.ts'
import { type PollPace, pollUntil, whenAvailable } from '../lib/poll.ts'
import { timeOf } from '../records/splits.ts'
import type { VisitorReads } from './visitors.ts'

export interface SplitProgressNeeds {
  readonly clickhouse: Pick<ClickHouse, 'query'>
  readonly visitors: Pick<VisitorReads, 'record'>
  readonly clock: Pick<Clock, 'monotonic' | 'sleep'>
}

export interface SplitDone {
  readonly workspace: string
  readonly env: Env
  readonly parts: readonly { readonly to: string; readonly requestIds: readonly string[] }[]
}

const PACE: PollPace = { forMs: 10_000, everyMs: 20, everyMsMax: 250 }

/** Resolves when every read shows the events as the new visitors'; false when that is not so in time: it still comes. */
export async function awaitSplit(needs: SplitProgressNeeds, split: SplitDone): Promise<boolean> {
  const done = whenAvailable(async () => (await isDone(needs, split)) || null)
  return (await pollUntil(needs.clock, PACE, done)) !== null
}

async function isDone({ clickhouse, visitors }: SplitProgressNeeds, { workspace, env, parts }: SplitDone) {
  for (const { to } of parts) if ((await visitors.record(workspace, env, to)) === null) return false
  const ids = parts.flatMap(({ requestIds }) => requestIds)
  const params: Record<string, unknown> = { workspace, env, moved: ids, owners: parts.map(({ to }) => to) }
  const at = ids.map((id, i) => {
    params[`at${i}`] = timeOf(id)
    return `fromUnixTimestamp64Milli({at${i}:Int64})`
  })
  const [row] = await clickhouse.query<{ rows: number }>(
    `SELECT count() AS rows FROM ${EVENTS_TABLE}
     WHERE workspace_id = {workspace:String} AND env = {env:String} AND ts IN (${at.join(', ')})
       AND request_id IN {moved:Array(String)} AND visitor_id IN {owners:Array(String)}`,
    params,
  )
  return row?.rows === ids.length
}
