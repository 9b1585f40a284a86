// /v1/events: one event by id and what is said of it afterwards, and pages of events.

import { accepted, type Submitter } from '../../control/submit.ts'
import { ApiError, invalid } from '../../domain/errors.ts'
import { type Env, SIGNAL_NAMES, type StoredEvent, VERDICTS } from '../../domain/event.ts'
import { LINKED_ID_CHARS_MAX } from '../../domain/identify.ts'
import { isVisitorId } from '../../domain/ids.ts'
import { oneOf, type Static, strict, Type } from '../../domain/schema.ts'
import { isoTime, presentEvent } from '../../events/present.ts'
import type { Annotate } from '../../ingress/annotate.ts'
import { checkTag } from '../../ingress/body.ts'
import { readCursor, writeCursor } from '../../reads/cursor.ts'
import type { EventReads, ReadFilter, ReadSummary } from '../../reads/events.ts'
import type { IdentityReads } from '../../reads/identity.ts'
import type { VisitorReads } from '../../reads/visitors.ts'
import type { AnnotatedChanges } from '../../records/annotations.ts'
import type { Caller } from '../../records/auth.ts'
import { commandOf } from '../callers.ts'
import { orNull } from '../describe.ts'
import { readMoment } from '../query.ts'
import { type ApiRoute, keyed, type RouteReply } from '../routes.ts'
import { PAGE_LIMIT, PAGE_LIMIT_DEFAULT } from '../schemas.ts'
import { EVENT_DOCS } from './docs.ts'
import type { Relink } from './relink.ts'

export interface EventsNeeds {
  readonly events: EventReads
  readonly visitors: VisitorReads
  readonly identity: IdentityReads
  readonly annotate: Annotate
  readonly relink: Relink
  readonly submit: Submitter['submit']
}

const text = (maxLength: number) => Type.Optional(Type.String({ minLength: 1, maxLength }))
const PAGE = { before: text(40), after: text(40), limit: PAGE_LIMIT, cursor: text(200) }
const KEY_KINDS = ['public', 'secret'] as const
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
    keyKind: Type.Optional(oneOf(KEY_KINDS)),
    signal: Type.Optional(oneOf(SIGNAL_NAMES)),
  },
  strict,
)
const VisitorListQuery = Type.Object(PAGE, strict)

const LABELS = ['fraud', 'legitimate', null]
const PatchBody = Type.Object(
  {
    linkedId: Type.Optional(orNull(Type.String({ minLength: 1, maxLength: LINKED_ID_CHARS_MAX }))),
    tag: Type.Optional(Type.Unsafe<Record<string, unknown> | null>({ type: ['object', 'null'] })),
    label: Type.Optional(Type.Unsafe<StoredEvent['label']>({ type: ['string', 'null'], enum: LABELS })),
  },
  strict,
)

type PageQuery = Static<typeof VisitorListQuery>

type Filter = Omit<ReadFilter, 'visitorIds'> & { readonly visitorId?: string }

/** Filters as the client means them; absent ones are left out. */
function filterOf(query: Static<typeof ListQuery>): Filter {
  const { before, after, limit, cursor, ...rest } = query
  if (rest.visitorId !== undefined && !isVisitorId(rest.visitorId)) throw invalid('visitorId', 'This is no visitor id.')
  if (rest.ruleId !== undefined && !/^rul_[0-9A-Za-z]{20}$/.test(rest.ruleId))
    throw invalid('ruleId', 'This is no rule id.')
  return {
    ...rest,
    ...(after === undefined ? {} : { after: readMoment(after, 'after') }),
    ...(before === undefined ? {} : { before: readMoment(before, 'before') }),
  }
}

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

export function eventRoutes({ events, visitors, identity, annotate, relink, submit }: EventsNeeds): ApiRoute[] {
  /** `check`: what is refused once the cursor is known to be ours. */
  async function page<T>(
    caller: Caller,
    filter: Filter,
    query: PageQuery,
    present: (e: ReadSummary) => T,
    check: () => Promise<void> = async () => {},
  ) {
    const { workspace, env } = caller
    const question = JSON.stringify([workspace.id, env, filter])
    const from = query.cursor === undefined ? null : readCursor(workspace.tokenSecret, question, query.cursor)
    await check()
    const { visitorId, ...rest } = filter
    const visitorIds = visitorId === undefined ? undefined : await visitors.idsOf(workspace.id, env, visitorId)
    const asked: ReadFilter = { ...rest, ...(visitorIds === undefined ? {} : { visitorIds }) }
    const found = await events.page(workspace.id, env, asked, query.limit ?? PAGE_LIMIT_DEFAULT, from)
    const last = found.events.at(-1)
    return {
      data: found.events.map(present),
      hasMore: found.hasMore,
      nextCursor:
        found.hasMore && last !== undefined ? writeCursor(workspace.tokenSecret, question, last.requestId) : null,
    }
  }

  async function one(
    caller: Caller,
    requestId: string,
    show: (event: StoredEvent) => unknown = (event) => presentEvent(event, caller.workspace.plan),
  ): Promise<RouteReply> {
    const { workspace, env } = caller
    const event = await events.byId(workspace.id, env as Env, requestId)
    if (event === null) throw new ApiError('not_found')
    if (event === 'pending') {
      return { status: 202, headers: [['Retry-After', '1']], body: { requestId, status: 'pending' } }
    }
    return { body: await show(event) }
  }

  return [
    keyed({
      method: 'GET',
      doc: EVENT_DOCS.one,
      path: '/v1/events/:requestId',
      access: 'events:read',
      handle: ({ caller, params }) => one(caller, params.requestId ?? ''),
    }),
    keyed({
      method: 'PATCH',
      doc: EVENT_DOCS.change,
      path: '/v1/events/:requestId',
      access: 'events:write',
      body: PatchBody,
      async handle({ caller, params, body }) {
        const { tag, ...named } = body
        const changes: AnnotatedChanges = tag === undefined ? named : { ...named, tag: tag ?? {} }
        checkTag(changes.tag)
        const { workspace, env } = caller
        const requestId = params.requestId ?? ''
        const found = await events.find(workspace.id, env, requestId)
        if (found === null) throw new ApiError('not_found')
        if (found === 'pending') throw new ApiError('unavailable', { retryAfter: 1 })
        if (Object.keys(changes).length > 0) {
          const { requestId: id, visitorId, label: before } = found.event
          await annotate(found.partition, { workspace: workspace.id, env, requestId: id, changes })
          if (changes.linkedId !== undefined) await relink(found, changes.linkedId)
          // An account and a tag are the visitor's and stay in its event.
          const { label } = changes
          const data = {
            ...({ resource: 'event', id, action: 'update', about: visitorId } as const),
            before: label === undefined ? null : { label: before },
            after: { changed: Object.keys(changes), ...(label === undefined ? {} : { label }) },
          }
          accepted(await submit({ ...commandOf(caller), type: 'visitor.note', data }))
        }
        return one(caller, requestId)
      },
    }),
    keyed({
      method: 'GET',
      doc: EVENT_DOCS.identity,
      path: '/v1/events/:requestId/identity',
      access: 'events:read',
      handle: ({ caller, params }) => one(caller, params.requestId ?? '', identity.explain),
    }),
    keyed({
      method: 'GET',
      doc: EVENT_DOCS.list,
      path: '/v1/events',
      access: 'events:read',
      query: ListQuery,
      handle: async ({ caller, query }) => ({ body: await page(caller, filterOf(query), query, presentSummary) }),
    }),
    keyed({
      method: 'GET',
      doc: EVENT_DOCS.ofVisitor,
      path: '/v1/visitors/:visitorId/events',
      access: 'visitors:read',
      query: VisitorListQuery,
      handle: async ({ caller, params, query }) => {
        const visitorId = params.visitorId ?? ''
        if (!isVisitorId(visitorId)) throw new ApiError('not_found')
        const check = async () => {
          const known = await visitors.byId(caller.workspace.id, caller.env, visitorId)
          if (known === null) throw new ApiError('not_found')
        }
        return { body: await page(caller, filterOf({ ...query, visitorId }), query, presentVisit, check) }
      },
    }),
  ]
}
