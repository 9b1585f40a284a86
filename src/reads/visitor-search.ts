// Visitors by what their events say: those with an event that meets a filter, by the newest such event.

import type { Env, Verdict } from '../domain/event.ts'
import type { VisitorState } from '../identity/visitor.ts'
import { conditionSql } from '../rules/to-sql.ts'
import type { SqlListTable } from '../rules/to-sql-lists.ts'
import { openSqlParams } from '../rules/to-sql-params.ts'
import { type EventFilter, type FilterSql, filterSql } from './event-filter.ts'
import { BEHIND, type EventRows } from './event-rows.ts'
import type { VisitorReads } from './visitors.ts'

export interface VisitorSearch extends Pick<EventFilter, 'linkedId' | 'email' | 'ip'> {
  /** What the id, the account or the email begins with. */
  readonly prefix?: string
  /** The visitor, its email or its address is on the list. */
  readonly list?: SqlListTable
}

/** A visitor, and what the newest event says that was found. */
export interface VisitorRow {
  readonly visitor: VisitorState
  readonly requestId: string
  readonly confidence: number
  readonly verdict: Verdict | null
  readonly linkedId: string | null
  readonly email: string | null
  readonly country: string | null
  readonly platform: string
  readonly browser: string
}

export interface VisitorSearchNeeds {
  readonly rows: Pick<EventRows, 'ask'>
  readonly visitors: Pick<VisitorReads, 'byId' | 'idsOf'>
}

/** `from`: the last event of the page before. `last`: that of this one, null when there is no further page. */
export type SearchVisitors = (
  workspace: string,
  env: Env,
  filter: VisitorSearch,
  limit: number,
  from: { readonly ts: number; readonly requestId: string } | null,
) => Promise<{ readonly found: readonly VisitorRow[]; readonly last: string | null }>

interface Row {
  readonly visitor_id: string
  readonly request_id: string
  readonly scaled_confidence: number
  readonly verdict_name: Verdict | 'none'
  readonly linked_id: string
  readonly email: string
  readonly country: string
  readonly platform: string
  readonly browser: string
}

const COLUMNS =
  'visitor_id, request_id, confidence AS scaled_confidence, verdict AS verdict_name, linked_id, email, country, platform, browser'
const NEWEST = 'ORDER BY ts DESC, request_id DESC'
const ONE_EACH = `${NEWEST} LIMIT 1 BY visitor_id LIMIT {rows:UInt32}`
/** Of what many events meet these have enough visitors, and all others need not be read. */
const EVENTS_FIRST = 2_000
const SHOWN_BEFORE = ' AND (ts, request_id) >= (fromUnixTimestamp64Milli({cts:Int64}), {cid:String})'
const FIELD_OF = { visitor: 'visitorId', ip: 'ip', email: 'email' } as const

export function openVisitorSearch({ rows, visitors }: VisitorSearchNeeds): SearchVisitors {
  /** A visitor has events under each id that was merged into it, and is found by the newest of them all. */
  async function isNewest(workspace: string, env: Env, filter: VisitorSearch, ids: readonly string[], row: Row) {
    if (ids.length === 1) return true
    const [newest] = await rows.ask<Row>(
      workspace,
      env,
      termsOf({ ...filter, visitorIds: ids }),
      (source) => `SELECT ${COLUMNS} ${source} ${NEWEST} LIMIT 1`,
    )
    return newest?.request_id === row.request_id
  }

  return async (workspace, env, filter, limit, from) => {
    const { params, ...terms } = termsOf(filter)
    const values = { ...params, rows: limit + 1, ...(from === null ? {} : { cts: from.ts, cid: from.requestId }) }
    const others = (source: string) =>
      from === null ? '' : `${BEHIND} AND visitor_id NOT IN (SELECT visitor_id ${source}${SHOWN_BEFORE})`
    const ask = (select: (source: string) => string) =>
      rows.ask<Row & { readonly seen?: number }>(workspace, env, { ...terms, params: values }, select)
    const early = await ask(
      (source) =>
        `SELECT *, count() OVER () AS seen FROM (SELECT ${COLUMNS}, ts ${source}${others(source)} ${NEWEST} LIMIT ${EVENTS_FIRST}) ${ONE_EACH}`,
    )
    const isEnough = early.length > limit || Number(early[0]?.seen ?? 0) < EVENTS_FIRST
    const all = isEnough ? early : await ask((source) => `SELECT ${COLUMNS} ${source}${others(source)} ${ONE_EACH}`)
    const page = all.slice(0, limit)
    const found = await Promise.all(
      page.map(async (row) => {
        const ids = await visitors.idsOf(workspace, env, row.visitor_id)
        const visitor = await visitors.byId(workspace, env, ids[0])
        if (visitor === null || !(await isNewest(workspace, env, filter, ids, row))) return []
        return [toFound(row, visitor)]
      }),
    )
    return { found: found.flat(), last: all.length > limit ? (page.at(-1)?.request_id ?? null) : null }
  }
}

function termsOf({ prefix, list, ...filter }: VisitorSearch & Pick<EventFilter, 'visitorIds'>): FilterSql {
  const params = openSqlParams()
  const terms: string[] = []
  if (prefix !== undefined) {
    const [text, email] = [params.add('String', prefix), params.add('String', prefix.trim().toLowerCase())]
    terms.push(`(startsWith(visitor_id, ${text}) OR startsWith(linked_id, ${text}) OR startsWith(email, ${email}))`)
  }
  if (list !== undefined) {
    const onList = { field: FIELD_OF[list.type], operator: 'in', value: 'list' } as const
    terms.push(conditionSql({ operator: 'AND', rules: [onList] }, { params, scores: true, lists: () => list }))
  }
  const { first, sql, params: values } = filterSql(filter, params)
  return { first, sql: `${sql}${terms.map((term) => ` AND ${term}`).join('')}`, params: values }
}

const orNull = (text: string): string | null => (text === '' ? null : text)

const toFound = (row: Row, visitor: VisitorState): VisitorRow => ({
  visitor,
  requestId: row.request_id,
  confidence: row.scaled_confidence / 10_000,
  verdict: row.verdict_name === 'none' ? null : row.verdict_name,
  linkedId: orNull(row.linked_id),
  email: orNull(row.email),
  country: orNull(row.country),
  platform: row.platform,
  browser: row.browser,
})
