// GET /v1/events and the events of a visitor: pages, newest first, as summaries or whole.

import { accepted, type Submitter } from '../../control/submit.ts'
import { ApiError, invalid } from '../../domain/errors.ts'
import { isVisitorId } from '../../domain/ids.ts'
import { oneOf, type Static, strict, Type } from '../../domain/schema.ts'
import { isoTime, presentEvent } from '../../events/present.ts'
import type { HttpHeader } from '../../http/message.ts'
import { readCursor, writeCursor } from '../../reads/cursor.ts'
import type { EventReads, EventsPage, ReadSummary } from '../../reads/events.ts'
import type { VisitorReads } from '../../reads/visitors.ts'
import type { Caller } from '../../records/auth.ts'
import { openAudience } from '../audience.ts'
import { commandOf } from '../callers.ts'
import type { PacedSteps } from '../paced-steps.ts'
import { type ApiRoute, keyed, type RouteReply } from '../routes.ts'
import { PAGE_LIMIT_DEFAULT } from '../schemas.ts'
import { Written } from '../slices.ts'
import { eventsCsv } from './csv.ts'
import { EVENT_DOCS } from './docs.ts'
import { type AskedFilter, FILTER_QUERY, PAGE, readFilter, TAG_QUERY, withAllIds } from './filter.ts'

export interface EventListNeeds {
  readonly events: Pick<EventReads, 'page' | 'whole'>
  readonly visitors: VisitorReads
  readonly turns: PacedSteps
  readonly submit: Submitter['submit']
}

/** Files that are written at once: each takes a share of the thread and of ClickHouse. */
const FILES_MAX = 8
const FILES_PER_WORKSPACE_MAX = 2
const CSV_ACCEPTED = /(?:^|,)\s*text\/csv\s*(?:[;,]|$)/i
const CSV_TYPE = 'text/csv; charset=utf-8; header=present'
const CSV_HEADERS: readonly HttpHeader[] = [['Content-Disposition', 'attachment; filename="events.csv"']]
const ALL_IN_ONE = 'A CSV file is no page: it has up to 100,000 events.'

const ListQuery = Type.Object(
  { ...PAGE, ...FILTER_QUERY, fields: Type.Optional(oneOf(['full'])) },
  { ...strict, ...TAG_QUERY },
)
const VisitorListQuery = Type.Object(PAGE, strict)
type PageQuery = Pick<Static<typeof VisitorListQuery>, 'limit' | 'cursor'>

const presentSummary = (event: ReadSummary) => ({
  requestId: event.requestId,
  visitorId: event.visitorId,
  confidence: event.confidence,
  verdict: event.verdict,
  timestamp: isoTime(event.timestamp),
})

const presentVisit = ({ requestId, timestamp, verdict, bot, vpn }: ReadSummary) => ({
  requestId,
  timestamp: isoTime(timestamp),
  verdict,
  signals: { bot, vpn },
})

/** A page as it is read, and one of its events as it is shown. */
interface Form<E extends { readonly requestId: string }> {
  readonly read: (...question: Parameters<EventReads['page']>) => Promise<EventsPage<E>>
  readonly show: (events: readonly E[]) => readonly unknown[] | Promise<readonly unknown[]>
}

export function eventListRoutes({ events, visitors, turns, submit }: EventListNeeds): ApiRoute[] {
  const takers = openAudience({ max: FILES_MAX, perWorkspaceMax: FILES_PER_WORKSPACE_MAX })
  const summaries: Form<ReadSummary> = { read: events.page, show: (found) => found.map(presentSummary) }
  const visits: Form<ReadSummary> = { read: events.page, show: (found) => found.map(presentVisit) }
  const whole = ({
    workspace: { plan },
  }: Caller): Form<Awaited<ReturnType<EventReads['whole']>>['events'][number]> => ({
    read: events.whole,
    show: (found) => turns.take(() => found.map((event) => new Written(JSON.stringify(presentEvent(event, plan))))),
  })

  /** `check`: what is refused once the cursor is known to be ours. */
  async function page<E extends { readonly requestId: string }>(
    caller: Caller,
    filter: AskedFilter,
    { limit = PAGE_LIMIT_DEFAULT, cursor }: PageQuery,
    { read, show }: Form<E>,
    check: () => Promise<void> = async () => {},
  ) {
    const { workspace, env } = caller
    const question = JSON.stringify([workspace.id, env, filter])
    const from = cursor === undefined ? null : readCursor(workspace.tokenSecret, question, cursor)
    await check()
    const found = await read(workspace.id, env, await withAllIds(visitors, caller, filter), limit, from)
    const last = found.events.at(-1)
    return {
      data: await show(found.events),
      hasMore: found.hasMore,
      nextCursor:
        found.hasMore && last !== undefined ? writeCursor(workspace.tokenSecret, question, last.requestId) : null,
    }
  }

  /** It is counted while it leaves, and not before: a client may be gone when it is to begin. */
  async function* counted(rest: AsyncGenerator<string, void>, workspace: string): AsyncGenerator<string, void> {
    const leave = takers.join(workspace)
    try {
      yield* rest
    } finally {
      leave()
    }
  }

  async function file(caller: Caller, filter: AskedFilter): Promise<RouteReply> {
    const { workspace, env } = caller
    takers.admit(workspace.id)
    const leave = takers.join(workspace.id)
    try {
      const asked = await withAllIds(visitors, caller, filter)
      const read = (limit: number, from: Parameters<EventReads['whole']>[4]) =>
        events.whole(workspace.id, env, asked, limit, from)
      const { head, rest } = await eventsCsv({ plan: workspace.plan, turns, read })
      // Values of filters may be somebody's, and are not kept.
      const after = { type: 'csv', filters: Object.keys(filter) }
      const data = { resource: 'event', id: 'csv', action: 'export', before: null, after, about: null } as const
      accepted(await submit({ ...commandOf(caller), type: 'visitor.note', data }))
      return {
        body: null,
        headers: CSV_HEADERS,
        text: { contentType: CSV_TYPE, head, rest: counted(rest, workspace.id) },
      }
    } finally {
      leave()
    }
  }

  return [
    keyed({
      method: 'GET',
      doc: EVENT_DOCS.list,
      path: '/v1/events',
      access: 'events:read',
      query: ListQuery,
      headers: ['accept'],
      async handle({ caller, header, query: { fields, limit, cursor, ...given } }) {
        const filter = readFilter(caller, given)
        if (CSV_ACCEPTED.test(header('accept'))) {
          if (limit !== undefined) throw invalid('limit', ALL_IN_ONE)
          if (cursor !== undefined) throw invalid('cursor', ALL_IN_ONE)
          return file(caller, filter)
        }
        const asked = { ...(limit === undefined ? {} : { limit }), ...(cursor === undefined ? {} : { cursor }) }
        if (fields === 'full') return { body: await page(caller, filter, asked, whole(caller)) }
        return { body: await page(caller, filter, asked, summaries) }
      },
    }),
    keyed({
      method: 'GET',
      doc: EVENT_DOCS.ofVisitor,
      path: '/v1/visitors/:visitorId/events',
      access: 'visitors:read',
      query: VisitorListQuery,
      handle: async ({ caller, params, query: { limit, cursor, ...times } }) => {
        const visitorId = params.visitorId ?? ''
        if (!isVisitorId(visitorId)) throw new ApiError('not_found')
        const check = async () => {
          const known = await visitors.byId(caller.workspace.id, caller.env, visitorId)
          if (known === null) throw new ApiError('not_found')
        }
        const asked = { ...(limit === undefined ? {} : { limit }), ...(cursor === undefined ? {} : { cursor }) }
        return { body: await page(caller, readFilter(caller, { ...times, visitorId }), asked, visits, check) }
      },
    }),
  ]
}
