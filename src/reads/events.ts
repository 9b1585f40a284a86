// Questions about events: one by id, wherever it is on its way to ClickHouse, and pages of them, newest first.

import type { Env, StoredEvent, Verdict } from '../domain/event.ts'
import { requestTime } from '../domain/ids.ts'
import { decodeEventsRecord, rowAt } from '../events/record.ts'
import { EVENTS_TABLE, fromRow, SELECT_COLUMNS } from '../events/row.ts'
import type { Kv } from '../kv/kv.ts'
import { Unavailable } from '../lib/failures.ts'
import type { Log } from '../log/log.ts'
import { annotated, listAnnotating } from '../records/annotations.ts'
import { listErasing } from '../records/erasures.ts'
import type { EventLocator, EventPlace, Original } from '../records/event-locator.ts'
import { partitionScope, SINK_POSITION } from '../records/partitions.ts'
import { type EventRowsNeeds, openEventRows, type PageQuestion } from './event-rows.ts'
import { openOwned } from './owned.ts'
import { withoutErasing } from './unerased.ts'

export interface EventReadsNeeds extends EventRowsNeeds {
  readonly log: Pick<Log, 'at'>
  readonly sight: EventLocator
  readonly kv: Pick<Kv, 'get' | 'scan' | 'position'>
  /** No other process decides: what partitions that are taken over may have decided is known within seconds. Default false. */
  readonly isAlone?: boolean
}

/** What lists show of an event: few columns, because columns are what a list costs. */
export interface ReadSummary
  extends Pick<StoredEvent, 'requestId' | 'visitorId' | 'confidence' | 'verdict' | 'timestamp'> {
  readonly bot: boolean
  readonly vpn: boolean
}

export interface EventsPage<E> {
  readonly events: readonly E[]
  readonly hasMore: boolean
}

interface SummaryRow {
  readonly request_id: string
  readonly visitor_id: string
  readonly scaled_confidence: number
  readonly verdict_name: Verdict | 'none'
  readonly at: number
  readonly bot: boolean
  readonly vpn: boolean
}

const SUMMARY_COLUMNS =
  'request_id, visitor_id, confidence AS scaled_confidence, verdict AS verdict_name, toUnixTimestamp64Milli(ts) AS at, sig_bot AS bot, sig_vpn AS vpn'

const toSummary = (row: SummaryRow): ReadSummary => ({
  requestId: row.request_id,
  visitorId: row.visitor_id,
  confidence: row.scaled_confidence / 10_000,
  verdict: row.verdict_name === 'none' ? null : row.verdict_name,
  timestamp: row.at,
  bot: row.bot,
  vpn: row.vpn,
})

type Cells = Parameters<typeof fromRow>[0]

const TENANT = 'workspace_id = {workspace:String} AND env = {env:String}'

/** An event and the partition that decided it. */
export interface PlacedRow {
  readonly event: StoredEvent
  readonly partition: number
}

/** What became of an accepted identification whose answer was lost on its way. */
export type Fate = StoredEvent | Original | null

export interface EventReads {
  /** null: it is not decided yet, or that cannot be told. */
  fateOf(workspace: string, env: Env, requestId: string): Promise<Fate>
  /** `pending`: accepted, not decided yet. null: there is no such event. Throws Unavailable when that cannot be told. */
  byId(workspace: string, env: Env, requestId: string): Promise<StoredEvent | 'pending' | null>
  /** The same with the partition that decided it. */
  find(workspace: string, env: Env, requestId: string): Promise<PlacedRow | 'pending' | null>
  /** Newest first. */
  page(...question: PageQuestion): Promise<EventsPage<ReadSummary>>
  /** The same with all that is stored of each event. */
  whole(...question: PageQuestion): Promise<EventsPage<StoredEvent>>
}

export function openEventReads(needs: EventReadsNeeds): EventReads {
  const { clickhouse, log } = needs
  const rows = openEventRows(needs)
  const owned = openOwned(needs)
  const everyPartition = Array.from({ length: needs.partitions }, (_, partition) => partition)

  async function at(
    place: EventPlace | null,
    workspace: string,
    env: Env,
    requestId: string,
  ): Promise<StoredEvent | null> {
    if (place === null) return null
    const found = await log.at('events', place.partition, place.seq)
    if (found === null) return null
    const record = decodeEventsRecord(found.bytes)
    const item = record.items[place.index]
    if (item?.requestId !== requestId || item.workspace !== workspace || item.env !== env) return null
    return fromRow(rowAt(record, place.index))
  }

  /**
   * The same as it is before ClickHouse has it. What was said of it since is announced until the sink has passed it, so when
   * that has happened the row must be asked.
   */
  async function fresh(
    place: EventPlace | null,
    workspace: string,
    env: Env,
    requestId: string,
  ): Promise<(PlacedRow & { readonly isSunk: boolean }) | null> {
    const event = await at(place, workspace, env, requestId)
    if (event === null || place === null) return null
    const { partition, seq } = place
    const sunk = await needs.kv.position(partitionScope(partition), SINK_POSITION)
    return { event, partition, isSunk: sunk !== null && sunk >= seq }
  }

  async function stored(workspace: string, env: Env, requestId: string, ts: number): Promise<PlacedRow | null> {
    const [row] = await clickhouse.query<Record<string, unknown>>(
      `SELECT ${SELECT_COLUMNS} FROM ${EVENTS_TABLE}
       WHERE ${TENANT} AND ts = fromUnixTimestamp64Milli({ts:Int64}) AND request_id = {id:String} LIMIT 1`,
      { workspace, env, ts, id: requestId },
    )
    if (row === undefined) return null
    return { event: fromRow(Object.values(row) as unknown as Cells), partition: Number(row.log_partition) }
  }

  async function unlessErased<P extends Pick<PlacedRow, 'event'>>(decided: P): Promise<P | null> {
    const event = await owned(decided.event)
    return event === null ? null : { ...decided, event }
  }

  async function find(workspace: string, env: Env, requestId: string): Promise<PlacedRow | 'pending' | null> {
    const ts = requestTime(requestId)
    if (ts === null || ts < rows.oldest(workspace)) return null
    const scope = `${workspace}/${env}`
    const { place, pending, original, complete } = await needs.sight(scope, requestId)
    const saidIn = (some: readonly number[]) => listAnnotating(needs.kv, some, workspace, env, requestId)
    let said = place === null ? [] : await saidIn([place.partition])
    const shown = ({ event, partition }: PlacedRow) => unlessErased({ event: annotated(event, said), partition })
    const early = await fresh(place, workspace, env, requestId)
    if (early !== null && !early.isSunk) return shown(early)
    if (early === null && !pending && original !== null) {
      return original.conflict ? null : find(workspace, env, original.requestId)
    }
    if (early === null) said = await saidIn(everyPartition)
    const found = await stored(workspace, env, requestId, ts)
    if (found !== null) return shown(found)
    // Refused by ClickHouse, or erased meanwhile.
    if (early !== null) return shown(early)
    // Alone, while partitions are taken over it may be decided, and who accepted it may not have heard of that.
    if (pending && (complete || needs.isAlone !== true)) return 'pending'
    // It may have been decided, or have reached ClickHouse, while we were asking.
    const again = await needs.sight(scope, requestId)
    const late = await fresh(again.place, workspace, env, requestId)
    if (late !== null) return shown(late)
    if (!complete) throw new Unavailable('events are being taken over; this one may be among them')
    return null
  }

  const reads: EventReads = {
    find,

    async byId(workspace, env, requestId) {
      const found = await find(workspace, env, requestId)
      return found === null || found === 'pending' ? found : found.event
    },

    async fateOf(workspace, env, requestId) {
      const { place, original } = await needs.sight(`${workspace}/${env}`, requestId, true)
      if (original !== null) return original
      const event = await at(place, workspace, env, requestId)
      const ts = requestTime(requestId)
      const found = event ?? (ts === null ? null : ((await stored(workspace, env, requestId, ts))?.event ?? null))
      return found === null ? null : ((await unlessErased({ event: found }))?.event ?? null)
    },

    async page(...question) {
      const found = await rows.page<SummaryRow>(SUMMARY_COLUMNS, ...question)
      return { events: found.rows.map(toSummary), hasMore: found.hasMore }
    },

    async whole(...question) {
      const [workspace, env] = question
      // Before the rows: whoever is erased meanwhile may be in them.
      const erasing = new Set(await listErasing(needs.kv, needs.partitions, workspace, env))
      const found = await rows.page<Record<string, unknown>>(SELECT_COLUMNS, ...question)
      return {
        events: found.rows.map((row) => withoutErasing(fromRow(Object.values(row) as unknown as Cells), erasing)),
        hasMore: found.hasMore,
      }
    },
  }
  return reads
}
