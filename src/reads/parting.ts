// What is known of visits that are to be split off a record, and of those that stay: read from ClickHouse before the order is made,
// since the owner of the partition, who carries it out, cannot ask it.

import type { ClickHouse } from '../clickhouse/clickhouse.ts'
import type { Env, StoredEvent, Verdict } from '../domain/event.ts'
import { canonicalIp } from '../domain/ip.ts'
import { GENERATION, HOLDER } from '../events/detail-sql.ts'
import { EVENTS_TABLE } from '../events/row.ts'
import { goneWith, tracesOf, visitorOfEvents } from '../identity/parting.ts'
import type { VisitorState } from '../identity/visitor.ts'
import { packVisitor } from '../identity/visitor-record.ts'
import type { Clock } from '../lib/clock.ts'
import { type PollPace, pollUntil } from '../lib/poll.ts'
import type { Parting } from '../records/splits.ts'
import type { VisitorReads } from './visitors.ts'

export interface PartingNeeds {
  readonly clickhouse: Pick<ClickHouse, 'query'>
  readonly visitors: Pick<VisitorReads, 'record'>
  readonly clock: Pick<Clock, 'monotonic' | 'sleep'>
}

export interface PartingQuestion {
  readonly workspace: string
  readonly env: Env
  /** Whose record holds the visits. */
  readonly from: string
  /** The ids under which its events may be. */
  readonly ids: readonly string[]
  readonly to: string
  /** Oldest first. */
  readonly moved: readonly StoredEvent[]
}

export interface PartingAnswer {
  readonly parting: Parting
  /** Of tokens that only the moved visits have. */
  readonly generations: readonly number[]
}

/** Visits that came a moment ago are waited for; after that the record keeps what it cannot be told apart. */
const SUNK_PACE: PollPace = { forMs: 3_000, everyMs: 100 }
const TRACES_MAX = 1_000
const GENERATIONS_MAX = 1_000

interface RestRow {
  readonly visits: number
  readonly first_at: number
  readonly last_at: number
  readonly newest_verdict: Verdict | 'none'
  readonly generations: readonly number[]
  readonly accounts: readonly string[]
}
interface TraceRow {
  readonly address: string
  readonly system: string
  readonly software: string
  readonly graphics: string
}

/** Fails with Unavailable when ClickHouse cannot answer. */
export async function readParting(needs: PartingNeeds, question: PartingQuestion): Promise<PartingAnswer> {
  const { clickhouse } = needs
  const { workspace, env, from, ids, to, moved } = question
  const record = await awaitSunk(needs, question)
  const params: Record<string, unknown> = { workspace, env, from, requestIds: moved.map(({ requestId }) => requestId) }
  const of = `WHERE ${holderSql(ids, params)} AND request_id NOT IN {requestIds:Array(String)} AND evaluation_error = ''`
  const accounts = [...new Set(moved.flatMap(({ linkedId }) => linkedId ?? []))]
  const [row] = await clickhouse.query<RestRow>(
    `SELECT count() AS visits, toUnixTimestamp64Milli(min(ts)) AS first_at, toUnixTimestamp64Milli(max(ts)) AS last_at,
       argMax(verdict, (ts, request_id)) AS newest_verdict,
       groupUniqArray(${GENERATIONS_MAX})(${GENERATION}) AS generations,
       groupUniqArrayIf(linked_id, linked_id IN {accounts:Array(String)}) AS accounts
     FROM ${EVENTS_TABLE} ${of}`,
    { ...params, accounts },
  )
  const traces = await clickhouse.query<TraceRow>(
    `SELECT toString(ip) AS address, platform AS system, browser AS software, gpu AS graphics FROM ${EVENTS_TABLE} ${of}
     GROUP BY ip, platform, browser, gpu ORDER BY max(ts) DESC LIMIT ${TRACES_MAX}`,
    params,
  )
  const rest = row === undefined || row.visits === 0 ? null : row
  const gone = goneWith(
    tracesOf(moved.map(({ ip, linkedId, device }) => ({ address: ip.address, linkedId, device }))),
    tracesOf([
      ...traces.map(({ address, system, software, graphics }) => ({
        address: canonicalIp(address) ?? address,
        linkedId: null,
        device: { platform: system, browser: software, gpu: graphics === '' ? null : graphics },
      })),
      ...(row?.accounts ?? []).map((linkedId) => ({ address: '', linkedId, device: NO_DEVICE })),
    ]),
  )
  const kept = new Set(rest?.generations ?? [])
  const generations = new Set(moved.map(({ identity }) => identity.generation).filter((one) => !kept.has(one)))
  return {
    generations: [...generations],
    parting: {
      totalVisits: record?.totalVisits ?? -1,
      state: Buffer.from(packVisitor(visitorOfEvents(to, moved))).toString('base64'),
      rest:
        rest === null
          ? null
          : {
              firstSeenAt: rest.first_at,
              lastSeenAt: rest.last_at,
              lastVerdict: rest.newest_verdict === 'none' ? null : rest.newest_verdict,
              generation: Math.max(1, ...rest.generations),
            },
      gone,
    },
  }
}

const NO_DEVICE = { platform: '', browser: '', gpu: null }

/** The record when ClickHouse has its latest visit; null when it has not in time, or there is no such record. */
async function awaitSunk(
  { clickhouse, visitors, clock }: PartingNeeds,
  { workspace, env, from, ids, moved }: PartingQuestion,
): Promise<VisitorState | null> {
  const params: Record<string, unknown> = { workspace, env, from }
  const sql = `SELECT toUnixTimestamp64Milli(max(ts)) AS newest, count() AS visits FROM ${EVENTS_TABLE} WHERE ${holderSql(ids, params)}`
  const newestMoved = moved.at(-1)?.timestamp ?? 0
  return pollUntil(clock, SUNK_PACE, async () => {
    const record = await visitors.record(workspace, env, from)
    const [row] = await clickhouse.query<{ newest: number; visits: number }>(sql, params)
    const [newest, visits] = [row?.newest ?? 0, row?.visits ?? 0]
    const isSunk =
      record !== null && newest >= record.lastSeenAt && record.lastSeenAt >= newestMoved && visits >= moved.length
    return isSunk ? record : null
  })
}

/** Fixed text and typed parameters, which it adds: events that count in the record, whatever name they carry. */
export function holderSql(ids: readonly string[], params: Record<string, unknown>): string {
  const any = ids.map((id, i) => {
    params[`visitor${i}`] = id
    return `(visitor_hash = cityHash64({visitor${i}:String}) AND visitor_id = {visitor${i}:String})`
  })
  return `workspace_id = {workspace:String} AND env = {env:String} AND (${any.join(' OR ')}) AND ${HOLDER} = {from:String}`
}
