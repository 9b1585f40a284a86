// /v1/erasures: how far the erasure of a visitor has come. And all that is held of a visitor, for whoever asks before.

import { accepted, type Submitter } from '../control/submit.ts'
import { ApiError } from '../domain/errors.ts'
import type { Env } from '../domain/event.ts'
import { Type } from '../domain/schema.ts'
import { isoTime, presentEvent } from '../events/present.ts'
import { readCursor, writeCursor } from '../reads/cursor.ts'
import type { ReadErasure } from '../reads/erasures.ts'
import type { EventReads } from '../reads/events.ts'
import type { VisitorReads } from '../reads/visitors.ts'
import type { Membership } from '../records/lists.ts'
import { ERASURE_DOCS } from './answers/erasures.ts'
import { commandOf } from './callers.ts'
import { keyed, type Route } from './routes.ts'
import { strict } from './schemas.ts'
import { presentVisitor } from './visitors.ts'

export interface ErasureRoutesNeeds {
  readonly erasure: ReadErasure
  readonly events: EventReads
  readonly visitors: VisitorReads
  readonly submit: Submitter['submit']
  /** Entries of lists that are the visitor. */
  readonly memberships: (workspace: string, env: Env, visitorId: string) => Promise<readonly Membership[]>
}

const EXPORT_EVENTS_MAX = 500
const ExportQuery = Type.Object(
  {
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: EXPORT_EVENTS_MAX })),
    cursor: Type.Optional(Type.String({ minLength: 1, maxLength: 200 })),
  },
  strict,
)

export function erasureRoutes({ erasure, events, visitors, submit, memberships }: ErasureRoutesNeeds): Route[] {
  return [
    keyed({
      method: 'GET',
      path: '/v1/erasures/:erasureId',
      access: 'visitors:delete',
      doc: ERASURE_DOCS.one,
      async handle({ caller, params }) {
        const erasureId = params.erasureId ?? ''
        const found = /^era_[0-9A-Za-z]{20}$/.test(erasureId)
          ? await erasure(caller.workspace.id, caller.env, erasureId)
          : null
        if (found === null) throw new ApiError('not_found')
        const { requestedAt, stores } = found
        const status = stores.every((store) => store.status === 'done') ? 'done' : 'in_progress'
        const shown = stores.map(({ store, status, expectedBy }) => ({
          ...{ store, status, expectedBy: expectedBy === null ? null : isoTime(expectedBy) },
        }))
        return { body: { erasureId, status, requestedAt: isoTime(requestedAt), stores: shown } }
      },
    }),

    keyed({
      method: 'GET',
      path: '/v1/visitors/:visitorId/export',
      access: 'visitors:read',
      doc: ERASURE_DOCS.export,
      query: ExportQuery,
      async handle({ caller, params, query: { limit = EXPORT_EVENTS_MAX, cursor } }) {
        const { workspace, env } = caller
        const question = JSON.stringify([workspace.id, env, 'export', params.visitorId])
        const from = cursor === undefined ? null : readCursor(workspace.tokenSecret, question, cursor)
        const visitor = await visitors.byId(workspace.id, env, params.visitorId ?? '')
        if (visitor === null) throw new ApiError('not_found')
        const visitorIds = await visitors.idsOf(workspace.id, env, visitor.id)
        const page = await events.whole(workspace.id, env, { visitorIds }, limit, from)
        const lists = await memberships(workspace.id, env, visitor.id)
        const last = page.events.at(-1)
        if (cursor === undefined) {
          const data = { resource: 'visitor', id: visitor.id, action: 'export', before: null, after: null } as const
          accepted(await submit({ ...commandOf(caller), type: 'visitor.note', data: { ...data, about: visitor.id } }))
        }
        return {
          body: {
            visitor: presentVisitor(
              visitor,
              lists.map(({ list }) => list),
            ),
            mergedVisitorIds: visitorIds.slice(1),
            lists: lists.map(({ list, entry }) => ({
              ...{ list, value: visitor.id, addedAt: isoTime(entry.addedAt) },
              expiresAt: entry.expiresAt === null ? null : isoTime(entry.expiresAt),
              ...{ source: entry.source, ruleId: entry.ruleId, reason: entry.reason },
            })),
            events: page.events.map((event) => presentEvent(event, workspace.plan)),
            hasMore: page.hasMore,
            nextCursor:
              page.hasMore && last !== undefined ? writeCursor(workspace.tokenSecret, question, last.requestId) : null,
          },
        }
      },
    }),
  ]
}
