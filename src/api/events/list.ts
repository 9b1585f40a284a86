// GET /v1/events and the events of a visitor: pages, newest first, as summaries or whole.

import { ApiError } from '../../domain/errors.ts'
import { isVisitorId } from '../../domain/ids.ts'
import { oneOf, type Static, strict, Type } from '../../domain/schema.ts'
import { isoTime, presentEvent } from '../../events/present.ts'
import { readCursor, writeCursor } from '../../reads/cursor.ts'
import type { EventFilter } from '../../reads/event-filter.ts'
import type { EventReads, EventsPage, ReadSummary } from '../../reads/events.ts'
import type { VisitorReads } from '../../reads/visitors.ts'
import type { Caller } from '../../records/auth.ts'
import type { PacedSteps } from '../paced-steps.ts'
import { type ApiRoute, keyed } from '../routes.ts'
import { PAGE_LIMIT_DEFAULT } from '../schemas.ts'
import { Written } from '../slices.ts'
import { EVENT_DOCS } from './docs.ts'
import { type AskedFilter, FILTER_QUERY, PAGE, readFilter, TAG_QUERY } from './filter.ts'

export interface EventListNeeds {
  readonly events: Pick<EventReads, 'page' | 'whole'>
  readonly visitors: VisitorReads
  readonly turns: PacedSteps
}

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

export function eventListRoutes({ events, visitors, turns }: EventListNeeds): ApiRoute[] {
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
    const { visitorId, ...rest } = filter
    const visitorIds = visitorId === undefined ? undefined : await visitors.idsOf(workspace.id, env, visitorId)
    const asked: EventFilter = { ...rest, ...(visitorIds === undefined ? {} : { visitorIds }) }
    const found = await read(workspace.id, env, asked, limit, from)
    const last = found.events.at(-1)
    return {
      data: await show(found.events),
      hasMore: found.hasMore,
      nextCursor:
        found.hasMore && last !== undefined ? writeCursor(workspace.tokenSecret, question, last.requestId) : null,
    }
  }

  return [
    keyed({
      method: 'GET',
      doc: EVENT_DOCS.list,
      path: '/v1/events',
      access: 'events:read',
      query: ListQuery,
      async handle({ caller, query: { fields, limit, cursor, ...given } }) {
        const filter = readFilter(caller, given)
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
