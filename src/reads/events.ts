// Questions about events: one by id, wherever it is on its way to ClickHouse, and pages of them, newest first.

import type { ClickHouse } from '../clickhouse/clickhouse.ts'
import type { Env, SignalName, StoredEvent, Verdict } from '../domain/event.ts'
import { homePartition, requestTime } from '../domain/ids.ts'
import { decodeEventsRecord, rowAt } from '../events/record.ts'
import { EVENTS_TABLE, fromRow, SELECT_COLUMNS } from '../events/row.ts'
import type { Kv } from '../kv/kv.ts'
import type { Clock } from '../lib/clock.ts'
import { Unavailable } from '../lib/failures.ts'
import type { Log } from '../log/log.ts'
import { listErasing, readTombstone } from '../records/erasures.ts'
import type { Original, Place, Sight } from '../records/sighting.ts'

export interface EventReadsNeeds {
  readonly clickhouse: Pick<ClickHouse, 'query'>
  readonly log: Pick<Log, 'at'>
  readonly sight: Sight
  readonly kv: Pick<Kv, 'get' | 'scan' | 'position'>
  readonly partitions: number
  readonly clock: Pick<Clock, 'now'>
  /** Older events do not exist for anyone, whether ClickHouse has dropped them yet or not. */
  readonly retentionDays: number
}

export interface EventFilter {
  readonly visitorId?: string
  /** Milliseconds; `after` is inclusive, `before` exclusive. */
  readonly before?: number
  readonly after?: number
  readonly verdict?: Verdict
  readonly bot?: boolean
  readonly linkedId?: string
  readonly country?: string
  readonly platform?: string
  readonly ruleId?: string
  readonly signal?: SignalName
}

/** What lists show of an event: few columns, because columns are what a list costs. */
export interface EventSummary
  extends Pick<StoredEvent, 'requestId' | 'visitorId' | 'confidence' | 'verdict' | 'timestamp'> {
  readonly bot: boolean
  readonly vpn: boolean
}

export interface Page {
  readonly events: readonly EventSummary[]
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
const DAY_MS = 86_400_000

const toSummary = (row: SummaryRow): EventSummary => ({
  requestId: row.request_id,
  visitorId: row.visitor_id,
  confidence: row.scaled_confidence / 10_000,
  verdict: row.verdict_name === 'none' ? null : row.verdict_name,
  timestamp: row.at,
  bot: row.bot,
  vpn: row.vpn,
})

type Cells = Parameters<typeof fromRow>[0]

const SIGNAL_COLUMNS: Readonly<Record<SignalName, string>> = {
  bot: 'sig_bot',
  vpn: 'sig_vpn',
  incognito: 'sig_incognito',
  tampered: 'sig_tampered',
  emulator: 'sig_emulator',
  proxy: 'sig_proxy',
  tor: 'sig_tor',
  rootedDevice: 'sig_rooted_device',
  clonedApp: 'sig_cloned_app',
}

const TENANT = 'workspace_id = {workspace:String} AND env = {env:String}'

/** Fixed text and typed parameters: no byte of a value ever becomes SQL. */
function where(filter: EventFilter): { sql: string; params: Record<string, unknown> } {
  const terms: string[] = []
  const params: Record<string, unknown> = {}
  const add = (term: string, name: string, value: unknown) => {
    terms.push(term)
    params[name] = value
  }
  const { visitorId, before, after, verdict, bot, linkedId, country, platform, ruleId, signal } = filter
  if (visitorId !== undefined) {
    add('visitor_hash = cityHash64({visitor:String}) AND visitor_id = {visitor:String}', 'visitor', visitorId)
  }
  if (before !== undefined) add('ts < fromUnixTimestamp64Milli({before:Int64})', 'before', before)
  if (after !== undefined) add('ts >= fromUnixTimestamp64Milli({after:Int64})', 'after', after)
  if (verdict !== undefined) add('verdict = {verdict:String}', 'verdict', verdict)
  if (bot !== undefined) add('sig_bot = {bot:Bool}', 'bot', bot)
  if (linkedId !== undefined) {
    add('linked_hash = cityHash64({linked:String}) AND linked_id = {linked:String}', 'linked', linkedId)
  }
  if (country !== undefined) add('country = {country:String}', 'country', country)
  if (platform !== undefined) add('platform = {platform:String}', 'platform', platform)
  if (ruleId !== undefined) add('has(matched_rules, {rule:String})', 'rule', ruleId)
  if (signal !== undefined) terms.push(SIGNAL_COLUMNS[signal])
  return { sql: terms.map((term) => ` AND ${term}`).join(''), params }
}

/** What became of an accepted identification whose answer was lost on its way. */
export type Fate = StoredEvent | Original | null

export interface EventReads {
  /** null: it is not decided yet, or that cannot be told. */
  fateOf(workspace: string, env: Env, requestId: string): Promise<Fate>
  /** `pending`: accepted, not decided yet. null: there is no such event. Throws Unavailable when that cannot be told. */
  byId(workspace: string, env: Env, requestId: string): Promise<StoredEvent | 'pending' | null>
  /** Newest first; `from` is the last item of the previous page. */
  page(
    workspace: string,
    env: Env,
    filter: EventFilter,
    limit: number,
    from: { readonly ts: number; readonly requestId: string } | null,
  ): Promise<Page>
}

export function openEventReads(needs: EventReadsNeeds): EventReads {
  const { clickhouse, log, clock } = needs
  const oldest = () => clock.now() - needs.retentionDays * DAY_MS

  async function at(place: Place | null, workspace: string, env: Env, requestId: string): Promise<StoredEvent | null> {
    if (place === null) return null
    const found = await log.at('events', place.partition, place.seq)
    if (found === null) return null
    const record = decodeEventsRecord(found.bytes)
    const item = record.items[place.index]
    if (item?.requestId !== requestId || item.workspace !== workspace || item.env !== env) return null
    return fromRow(rowAt(record, place.index))
  }

  async function stored(workspace: string, env: Env, requestId: string, ts: number): Promise<StoredEvent | null> {
    const [row] = await clickhouse.query<Record<string, unknown>>(
      `SELECT ${SELECT_COLUMNS} FROM ${EVENTS_TABLE}
       WHERE ${TENANT} AND ts = fromUnixTimestamp64Milli({ts:Int64}) AND request_id = {id:String} LIMIT 1`,
      { workspace, env, ts, id: requestId },
    )
    return row === undefined ? null : fromRow(Object.values(row) as unknown as Cells)
  }

  /** null for an event of a visitor who was erased: it may still be in the log, or in ClickHouse for a moment. */
  async function unlessErased(event: StoredEvent): Promise<StoredEvent | null> {
    const { workspace, env, visitorId } = event
    const home = homePartition(visitorId, needs.partitions)
    return (await readTombstone(needs.kv, home, workspace, env, visitorId)) === null ? event : null
  }

  const reads: EventReads = {
    async byId(workspace, env, requestId) {
      const ts = requestTime(requestId)
      if (ts === null || ts < oldest()) return null
      const scope = `${workspace}/${env}`
      const { place, pending, original, complete } = await needs.sight(scope, requestId)
      const early = await at(place, workspace, env, requestId)
      if (early !== null) return unlessErased(early)
      if (pending) return 'pending'
      if (original !== null) return original.conflict ? null : reads.byId(workspace, env, original.requestId)
      const found = await stored(workspace, env, requestId, ts)
      if (found !== null) return unlessErased(found)
      // It may have been decided, or have reached ClickHouse, while we were asking.
      const again = await needs.sight(scope, requestId)
      const late = await at(again.place, workspace, env, requestId)
      if (late !== null) return unlessErased(late)
      if (!complete) throw new Unavailable('events are being taken over; this one may be among them')
      return null
    },

    async fateOf(workspace, env, requestId) {
      const { place, original } = await needs.sight(`${workspace}/${env}`, requestId, true)
      if (original !== null) return original
      const event = await at(place, workspace, env, requestId)
      const ts = requestTime(requestId)
      const found = event ?? (ts === null ? null : await stored(workspace, env, requestId, ts))
      return found === null ? null : unlessErased(found)
    },

    async page(workspace, env, filter, limit, from) {
      const { sql, params } = where(filter)
      // The bound on ts alone is redundant and what prunes the parts.
      const after =
        from === null
          ? ''
          : ' AND ts <= fromUnixTimestamp64Milli({cts:Int64}) AND (ts, request_id) < (fromUnixTimestamp64Milli({cts:Int64}), {cid:String})'
      const erasing = await listErasing(needs.kv, needs.partitions, workspace, env)
      const unerased = erasing.length === 0 ? '' : ' AND visitor_id NOT IN {erasing:Array(String)}'
      const rows = await clickhouse.query<SummaryRow>(
        `SELECT ${SUMMARY_COLUMNS} FROM ${EVENTS_TABLE}
         WHERE ${TENANT} AND ts >= fromUnixTimestamp64Milli({oldest:Int64})${unerased}${sql}${after}
         ORDER BY ts DESC, request_id DESC LIMIT {rows:UInt32}`,
        {
          workspace,
          env,
          oldest: oldest(),
          ...(erasing.length === 0 ? {} : { erasing }),
          ...params,
          ...(from === null ? {} : { cts: from.ts, cid: from.requestId }),
          rows: limit + 1,
        },
      )
      const events = rows.slice(0, limit).map(toSummary)
      return { events, hasMore: rows.length > limit }
    },
  }
  return reads
}
