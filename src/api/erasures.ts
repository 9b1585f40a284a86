// /v1/erasures: how far the erasure of a visitor has come. And all that is held of a visitor, for whoever asks before.

import { accepted, type Submitter } from '../control/submit.ts'
import { ApiError } from '../domain/errors.ts'
import type { Env } from '../domain/event.ts'
import { maskIp } from '../domain/ip.ts'
import { Type } from '../domain/schema.ts'
import { isoTime, maskEmail, presentEvent } from '../events/present.ts'
import { readCursor, writeCursor } from '../reads/cursor.ts'
import type { ReadErasure } from '../reads/erasures.ts'
import type { EventReads } from '../reads/events.ts'
import type { ReadPersonal, Said } from '../reads/personal.ts'
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
  readonly personal: ReadPersonal
  /** Entries of lists that are the visitor. */
  readonly memberships: (workspace: string, env: Env, visitorId: string) => Promise<readonly Membership[]>
}

const EXPORT_EVENTS_MAX = 500
const ExportQuery = Type.Object(
  {
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: EXPORT_EVENTS_MAX })),
    cursor: Type.Optional(Type.String({ minLength: 1, maxLength: 200 })),
    masked: Type.Optional(Type.Boolean()),
  },
  strict,
)

export function erasureRoutes({
  erasure,
  events,
  visitors,
  personal,
  submit,
  memberships,
}: ErasureRoutesNeeds): Route[] {
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
      async handle({ caller, params, query: { limit = EXPORT_EVENTS_MAX, cursor, masked = false } }) {
        const { workspace, env } = caller
        const question = JSON.stringify([workspace.id, env, 'export', params.visitorId])
        const from = cursor === undefined ? null : readCursor(workspace.tokenSecret, question, cursor)
        const visitor = await visitors.byId(workspace.id, env, params.visitorId ?? '')
        if (visitor === null) throw new ApiError('not_found')
        const visitorIds = await visitors.idsOf(workspace.id, env, visitor.id)
        const page = await events.whole(workspace.id, env, { visitorIds }, limit, from)
        const lists = await memberships(workspace.id, env, visitor.id)
        const held = await personal(workspace.id, env, visitorIds)
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
            recognition: held.recognition,
            accounts: held.accounts.map(presentSaid),
            emails: distinct(held.emails, masked ? maskEmail : asItIs).map(presentSaid),
            addresses: distinct(held.addresses, masked ? maskIp : asItIs).map(presentSaid),
            deliveries: held.deliveries.map((one) => ({ ...one, createdAt: isoTime(one.createdAt) })),
            corrections: held.corrections.map(({ visitors, same, at, actor }) => ({
              ...{ visitorIds: visitors, same, at: isoTime(at), actor },
            })),
            audit: held.audit.map(({ at, actor, resource, id, action }) => ({
              ...{ at: isoTime(at), actor, resource, id, action },
            })),
            events: page.events.map((event) => presentEvent(event, workspace.plan, masked)),
            hasMore: page.hasMore,
            nextCursor:
              page.hasMore && last !== undefined ? writeCursor(workspace.tokenSecret, question, last.requestId) : null,
          },
        }
      },
    }),
  ]
}

const asItIs = (text: string): string => text

const presentSaid = ({ value, firstAt, lastAt, events }: Said) => ({
  ...{ value, firstAt: isoTime(firstAt), lastAt: isoTime(lastAt), events },
})

/** What is the same under its mask is told once. */
function distinct(all: readonly Said[], mask: (text: string) => string): Said[] {
  const known = new Map<string, Said>()
  for (const one of all) {
    const value = mask(one.value)
    const { firstAt = one.firstAt, lastAt = one.lastAt, events = 0 } = known.get(value) ?? {}
    known.set(value, {
      value,
      firstAt: Math.min(firstAt, one.firstAt),
      lastAt: Math.max(lastAt, one.lastAt),
      events: events + one.events,
    })
  }
  return [...known.values()]
}
