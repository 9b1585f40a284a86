// /v1/events: one event by id, and pages of them.

import Type, { type Static } from 'typebox'
import { ApiError, invalid } from '../domain/errors.ts'
import { type Env, SIGNAL_NAMES, VERDICTS } from '../domain/event.ts'
import { isVisitorId } from '../domain/ids.ts'
import { isoTime, presentEvent } from '../events/present.ts'
import { parseDatetime } from '../lib/datetime.ts'
import { readCursor, writeCursor } from '../reads/cursor.ts'
import type { EventFilter, EventReads, EventSummary } from '../reads/events.ts'
import type { VisitorReads } from '../reads/visitors.ts'
import type { Caller } from '../records/auth.ts'
import { keyed, type Reply, type Route } from './routes.ts'
import { oneOf, PAGE_LIMIT, PAGE_LIMIT_DEFAULT, strict } from './schemas.ts'

export interface EventsNeeds {
  readonly events: EventReads
  readonly visitors: VisitorReads
}

const text = (maxLength: number) => Type.Optional(Type.String({ minLength: 1, maxLength }))
const PAGE = { before: text(40), after: text(40), limit: PAGE_LIMIT, cursor: text(200) }
const ListQuery = Type.Object(
  {
    ...PAGE,
    visitorId: text(64),
    verdict: Type.Optional(oneOf(VERDICTS)),
    bot: Type.Optional(Type.Boolean()),
    linkedId: text(256),
    country: Type.Optional(Type.String({ pattern: '^[A-Z]{2}$', maxLength: 2 })),
    platform: text(32),
    ruleId: text(64),
    signal: Type.Optional(oneOf(SIGNAL_NAMES)),
  },
  strict,
)
const VisitorListQuery = Type.Object(PAGE, strict)

type PageQuery = Static<typeof VisitorListQuery>

function moment(text: string | undefined, field: string): number | undefined {
  if (text === undefined) return undefined
  const at = parseDatetime(text)
  if (at === null) throw invalid(field, 'This is no RFC 3339 time.')
  return at
}

/** Filters as the reads take them; absent ones are left out. */
function filterOf(query: Static<typeof ListQuery>): EventFilter {
  const { before, after, limit, cursor, ...rest } = query
  if (rest.visitorId !== undefined && !isVisitorId(rest.visitorId)) throw invalid('visitorId', 'This is no visitor id.')
  if (rest.ruleId !== undefined && !/^rul_[0-9A-Za-z]{20}$/.test(rest.ruleId))
    throw invalid('ruleId', 'This is no rule id.')
  const from = moment(after, 'after')
  const to = moment(before, 'before')
  return { ...rest, ...(from === undefined ? {} : { after: from }), ...(to === undefined ? {} : { before: to }) }
}

const presentSummary = (event: EventSummary) => ({
  requestId: event.requestId,
  visitorId: event.visitorId,
  confidence: event.confidence,
  verdict: event.verdict,
  timestamp: isoTime(event.timestamp),
})

const presentVisit = ({ requestId, timestamp, verdict, bot, vpn }: EventSummary) => ({
  requestId,
  timestamp: isoTime(timestamp),
  verdict,
  signals: { bot, vpn },
})

export function eventRoutes({ events, visitors }: EventsNeeds): Route[] {
  async function page<T>(caller: Caller, filter: EventFilter, query: PageQuery, present: (e: EventSummary) => T) {
    const { workspace, env } = caller
    const question = JSON.stringify([workspace.id, env, filter])
    const from = query.cursor === undefined ? null : readCursor(workspace.tokenSecret, question, query.cursor)
    const found = await events.page(workspace.id, env, filter, query.limit ?? PAGE_LIMIT_DEFAULT, from)
    const last = found.events.at(-1)
    return {
      data: found.events.map(present),
      hasMore: found.hasMore,
      nextCursor:
        found.hasMore && last !== undefined ? writeCursor(workspace.tokenSecret, question, last.requestId) : null,
    }
  }

  async function one(caller: Caller, requestId: string): Promise<Reply> {
    const { workspace, env } = caller
    const event = await events.byId(workspace.id, env as Env, requestId)
    if (event === null) throw new ApiError('not_found')
    if (event === 'pending') {
      return { status: 202, headers: [['Retry-After', '1']], body: { requestId, status: 'pending' } }
    }
    return { body: presentEvent(event, workspace.plan) }
  }

  return [
    keyed({
      method: 'GET',
      path: '/v1/events/:requestId',
      access: 'events:read',
      handle: ({ caller, params }) => one(caller, params.requestId ?? ''),
    }),
    keyed({
      method: 'GET',
      path: '/v1/events',
      access: 'events:read',
      query: ListQuery,
      handle: async ({ caller, query }) => ({ body: await page(caller, filterOf(query), query, presentSummary) }),
    }),
    keyed({
      method: 'GET',
      path: '/v1/visitors/:visitorId/events',
      access: 'visitors:read',
      query: VisitorListQuery,
      handle: async ({ caller, params, query }) => {
        const visitorId = params.visitorId ?? ''
        const known = await visitors.byId(caller.workspace.id, caller.env, visitorId)
        if (known === null) throw new ApiError('not_found')
        return { body: await page(caller, filterOf({ ...query, visitorId }), query, presentVisit) }
      },
    }),
  ]
}
