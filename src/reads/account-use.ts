// Whether any event of a visitor's record has an account: read from ClickHouse, and from what was said of events since, once it has the
// latest visit.

import type { ClickHouse } from '../clickhouse/clickhouse.ts'
import type { Env } from '../domain/event.ts'
import { EVENTS_TABLE } from '../events/row.ts'
import type { Kv } from '../kv/kv.ts'
import type { Clock } from '../lib/clock.ts'
import { type PollPace, pollUntil } from '../lib/poll.ts'
import { listRelinking } from '../records/annotations.ts'
import { holderSql } from './parting.ts'
import type { VisitorReads } from './visitors.ts'

export interface AccountUseNeeds {
  readonly clickhouse: Pick<ClickHouse, 'query'>
  readonly kv: Pick<Kv, 'scan'>
  readonly visitors: Pick<VisitorReads, 'record' | 'idsOf'>
  readonly clock: Pick<Clock, 'monotonic' | 'sleep'>
  readonly partitions: number
}

export interface AccountQuestion {
  readonly workspace: string
  readonly env: Env
  /** Whose record is asked about. */
  readonly from: string
  readonly account: string
  /** An event that is not counted; null: all are. */
  readonly except: string | null
}

export interface AccountUse {
  readonly isUsed: boolean
  /** Of the latest visit that was looked at, milliseconds. */
  readonly lastSeenAt: number
}

/** Visits that came a moment ago are waited for. */
const SUNK_PACE: PollPace = { forMs: 8_000, everyMs: 100 }

/** null: there is no such record, or ClickHouse has its latest visit not in time. Fails with Unavailable when it cannot answer. */
export async function readAccountUse(
  { clickhouse, kv, visitors, clock, partitions }: AccountUseNeeds,
  { workspace, env, from, account, except }: AccountQuestion,
): Promise<AccountUse | null> {
  const ids = [...new Set([from, ...(await visitors.idsOf(workspace, env, from))])]
  const found = await pollUntil<AccountUse | 'nobody'>(clock, SUNK_PACE, async () => {
    const record = await visitors.record(workspace, env, from)
    if (record === null) return 'nobody'
    const said = await listRelinking(kv, partitions, workspace, env)
    if (except !== null) said.set(except, null)
    const params: Record<string, unknown> = { workspace, env, from, account, said: [...said.keys()] }
    const [row] = await clickhouse.query<{ newest: number; used: number; corrected: readonly string[] }>(
      `SELECT toUnixTimestamp64Milli(max(ts)) AS newest,
         countIf(linked_id = {account:String} AND evaluation_error = '' AND request_id NOT IN {said:Array(String)}) AS used,
         groupArrayIf(request_id, request_id IN {said:Array(String)}) AS corrected
       FROM ${EVENTS_TABLE} WHERE ${holderSql(ids, params)}`,
      params,
    )
    if (row !== undefined && row.newest >= record.lastSeenAt) {
      const isUsed = row.used > 0 || row.corrected.some((requestId) => said.get(requestId) === account)
      return { isUsed, lastSeenAt: record.lastSeenAt }
    }
    return null
  })
  return found === 'nobody' ? null : found
}
