// What is known of visits that are to be split off a record, and of those that stay: read from ClickHouse and the log before the
// order is made, since whoever carries it out has neither.

import type { ClickHouse } from '../clickhouse/clickhouse.ts'
import type { Env, StoredEvent, Verdict } from '../domain/event.ts'
import { canonicalIp } from '../domain/ip.ts'
import { decodeEventsRecord } from '../events/record.ts'
import { EVENTS_TABLE, fromRow, SELECT_COLUMNS } from '../events/row.ts'
import { goneWith, lookOfEvent, tracesOf, visitorOfEvents } from '../identity/parting.ts'
import type { VisitorState } from '../identity/visitor.ts'
import { packVisitor, unpackVisitor } from '../identity/visitor-record.ts'
import type { Clock } from '../lib/clock.ts'
import type { Log } from '../log/log.ts'
import type { Look, Parting } from '../records/splits.ts'
import { unpackHeldVisitor } from '../records/visitors.ts'
import type { VisitorReads } from './visitors.ts'

export interface PartingNeeds {
  readonly clickhouse: Pick<ClickHouse, 'query'>
  readonly log: Pick<Log, 'read' | 'last'>
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
const SUNK_MS_MAX = 3_000
const SUNK_POLL_MS = 100
const TRACES_MAX = 1_000
const GENERATIONS_MAX = 1_000
const HOLDER = "if(position(detail, '\"own\":') > 0, JSONExtractString(detail, 'own'), visitor_id)"

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
       groupUniqArray(${GENERATIONS_MAX})(greatest(1, JSONExtractUInt(detail, 'gen'))) AS generations,
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
  const newest = moved.at(-1)
  const wasLatest = newest !== undefined && record !== null && newest.timestamp >= record.lastSeenAt
  // Who looks like the newest of all visits takes the record's own look; of the other the newest visit is looked for.
  const look = wasLatest || newest === undefined ? null : await keptLook(needs, question, newest)
  const state = visitorOfEvents(to, moved, look)
  const gone = goneWith(
    tracesOf(moved.map(({ ip, linkedId, device }) => ({ address: ip.address, linkedId, device }))),
    tracesOf([
      ...traces.map(({ address, system, software, graphics }) => ({
        ...{ address: canonicalIp(address) ?? address, linkedId: null },
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
      state: Buffer.from(packVisitor(state)).toString('base64'),
      keys: (look ?? (newest === undefined ? null : lookOfEvent(newest)))?.keys ?? [],
      rest:
        rest === null
          ? null
          : {
              firstSeenAt: rest.first_at,
              lastSeenAt: rest.last_at,
              lastVerdict: rest.newest_verdict === 'none' ? null : rest.newest_verdict,
              generation: Math.max(1, ...rest.generations),
              look: wasLatest ? await restLook(needs, question, of, params) : null,
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
  const deadline = clock.monotonic() + SUNK_MS_MAX
  for (;;) {
    const record = await visitors.record(workspace, env, from)
    const [row] = await clickhouse.query<{ newest: number; visits: number }>(sql, params)
    const [newest, visits] = [row?.newest ?? 0, row?.visits ?? 0]
    if (record !== null && newest >= record.lastSeenAt && record.lastSeenAt >= newestMoved && visits >= moved.length) {
      return record
    }
    if (clock.monotonic() >= deadline) return null
    await clock.sleep(SUNK_POLL_MS)
  }
}

/** Fixed text and typed parameters, which it adds: events that count in the record, whatever name they carry. */
export function holderSql(ids: readonly string[], params: Record<string, unknown>): string {
  const any = ids.map((id, i) => {
    params[`visitor${i}`] = id
    return `(visitor_hash = cityHash64({visitor${i}:String}) AND visitor_id = {visitor${i}:String})`
  })
  return `workspace_id = {workspace:String} AND env = {env:String} AND (${any.join(' OR ')}) AND ${HOLDER} = {from:String}`
}

async function restLook(
  needs: PartingNeeds,
  question: PartingQuestion,
  of: string,
  params: Readonly<Record<string, unknown>>,
): Promise<Look | null> {
  const [row] = await needs.clickhouse.query<Record<string, unknown>>(
    `SELECT ${SELECT_COLUMNS} FROM ${EVENTS_TABLE} ${of} ORDER BY ts DESC, request_id DESC LIMIT 1`,
    params,
  )
  if (row === undefined) return null
  const event = fromRow(Object.values(row) as unknown as Parameters<typeof fromRow>[0])
  return (await keptLook(needs, question, event)) ?? lookOfEvent(event)
}

/** As it was decided, while the log has it: records of `events` are in the order of the identifications they cover. */
async function keptLook(
  { log, clickhouse }: PartingNeeds,
  { workspace, env }: PartingQuestion,
  { requestId, timestamp }: Pick<StoredEvent, 'requestId' | 'timestamp'>,
): Promise<Look | null> {
  const [place] = await clickhouse.query<{ home: number; seq: number }>(
    `SELECT log_partition AS home, log_seq AS seq FROM ${EVENTS_TABLE}
     WHERE workspace_id = {workspace:String} AND env = {env:String} AND ts = fromUnixTimestamp64Milli({at:Int64})
       AND request_id = {requestId:String}`,
    { workspace, env, at: timestamp, requestId },
  )
  if (place === undefined || place.seq === 0) return null
  let low = 0
  let high = await log.last('events', place.home)
  while (low < high) {
    const middle = Math.floor((low + high) / 2)
    const [found] = await log.read('events', place.home, middle, { recordsMax: 1, bytesMax: 1, waitMsMax: 0 })
    if (found === undefined) {
      high = middle
      continue
    }
    const record = decodeEventsRecord(found.bytes)
    if (record.from > place.seq) high = middle
    else if (record.to < place.seq) low = found.seq
    else {
      const item = record.items.find((one) => one.requestId === requestId)
      if (item === undefined || item.state.length === 0) return null
      const held = unpackHeldVisitor(item.state)
      const { profile } = unpackVisitor(held.state)
      return profile === null ? null : { profile, keys: held.keys }
    }
  }
  return null
}
