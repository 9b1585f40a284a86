// /v1/events/{requestId}: one event, why it has its visitor, and what is said of it afterwards.

import { accepted, type Submitter } from '../../control/submit.ts'
import { ApiError } from '../../domain/errors.ts'
import type { Env, StoredEvent } from '../../domain/event.ts'
import { LINKED_ID_CHARS_MAX } from '../../domain/identify.ts'
import { oneOf, strict, Type } from '../../domain/schema.ts'
import { presentEvent } from '../../events/present.ts'
import type { Annotate } from '../../ingress/annotate.ts'
import { checkTag } from '../../ingress/body.ts'
import type { EventReads } from '../../reads/events.ts'
import type { IdentityReads } from '../../reads/identity.ts'
import type { AnnotatedChanges } from '../../records/annotations.ts'
import type { Caller } from '../../records/auth.ts'
import { commandOf } from '../callers.ts'
import { orNull } from '../describe.ts'
import { type ApiRoute, keyed, type RouteReply } from '../routes.ts'
import { EVENT_DOCS } from './docs.ts'
import type { Relink } from './relink.ts'
import { LABELS } from './schema.ts'

export interface EventsNeeds {
  readonly events: EventReads
  readonly identity: IdentityReads
  readonly annotate: Annotate
  readonly relink: Relink
  readonly submit: Submitter['submit']
}

const PatchBody = Type.Object(
  {
    linkedId: Type.Optional(orNull(Type.String({ minLength: 1, maxLength: LINKED_ID_CHARS_MAX }))),
    tag: Type.Optional(Type.Unsafe<Record<string, unknown> | null>({ type: ['object', 'null'] })),
    label: Type.Optional(orNull(oneOf(LABELS))),
  },
  strict,
)

export function eventRoutes({ events, identity, annotate, relink, submit }: EventsNeeds): ApiRoute[] {
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
          const { linkedId } = changes
          if (linkedId !== undefined) await relink(found, { ...changes, linkedId })
          else await annotate(found.partition, { workspace: workspace.id, env, requestId: id, changes })
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
  ]
}
