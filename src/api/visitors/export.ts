// All that is held of a visitor, for whoever asks: events page by page, and with the first page what does not change from one to the next.

import { accepted, type Submitter } from '../../control/submit.ts'
import { ApiError } from '../../domain/errors.ts'
import type { Env } from '../../domain/event.ts'
import { maskIp } from '../../domain/ip.ts'
import { strict, Type } from '../../domain/schema.ts'
import { heldCountsAt } from '../../engine/velocity/held-counts.ts'
import { isoTime, maskEmail, presentEvent } from '../../events/present.ts'
import type { Kv } from '../../kv/kv.ts'
import type { Clock } from '../../lib/clock.ts'
import { readCursor, writeCursor } from '../../reads/cursor.ts'
import type { EventReads } from '../../reads/events.ts'
import type { PersonalData, PersonalSaid, ReadPersonal } from '../../reads/personal.ts'
import type { VisitorReads } from '../../reads/visitors.ts'
import { type Caller, permitRole } from '../../records/auth.ts'
import type { ListMembership } from '../../records/lists.ts'
import { type ActorOf, openActors } from '../actors.ts'
import { commandOf } from '../callers.ts'
import type { PacedSteps } from '../paced-steps.ts'
import { type ApiRoute, keyed } from '../routes.ts'
import { PAGE_CHARS_MAX } from '../schemas.ts'
import { Written } from '../slices.ts'
import { ERASURE_DOCS } from './erasures-docs.ts'
import { presentVisitor } from './routes.ts'

export interface VisitorExportNeeds {
  readonly kv: Pick<Kv, 'get'>
  readonly clock: Pick<Clock, 'now'>
  readonly events: Pick<EventReads, 'whole'>
  readonly visitors: VisitorReads
  readonly submit: Submitter['submit']
  readonly personal: ReadPersonal
  /** Entries of lists that are the visitor. */
  readonly memberships: (workspace: string, env: Env, visitorId: string) => Promise<readonly ListMembership[]>
  readonly turns: PacedSteps
}

const EVENTS_MAX = 500
/** Read and written at once: about as many as make a slice, by the length of those before. */
const EVENTS_FIRST = 25
const EVENTS_AT_ONCE_MAX = 100
const SLICE_CHARS = 262_144

const ExportQuery = Type.Object(
  {
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: EVENTS_MAX })),
    cursor: Type.Optional(Type.String({ minLength: 1, maxLength: 200 })),
    masked: Type.Optional(Type.Boolean()),
  },
  strict,
)

export function visitorExportRoutes(needs: VisitorExportNeeds): ApiRoute[] {
  const { kv, clock, events, visitors, personal, submit, memberships, turns } = needs

  /** It ends with the event that makes it long enough. */
  async function pageOf(
    { workspace, env }: Caller,
    visitorIds: readonly string[],
    limit: number,
    start: Parameters<EventReads['whole']>[4],
    masked: boolean,
  ) {
    const written: Written[] = []
    let last = start
    let hasMore = true
    let chars = 0
    for (let atOnce = EVENTS_FIRST; hasMore && written.length < limit && chars <= PAGE_CHARS_MAX; ) {
      const asked = Math.min(atOnce, limit - written.length)
      const found = await events.whole(workspace.id, env, { visitorIds }, asked, last)
      const texts = await turns.take(() =>
        found.events.map((event) => JSON.stringify(presentEvent(event, workspace.plan, masked))),
      )
      hasMore = found.hasMore
      for (const [i, text] of texts.entries()) {
        const event = found.events[i]
        if (event === undefined) continue
        written.push(new Written(text))
        last = { ts: event.timestamp, requestId: event.requestId }
        chars += text.length
        if (chars <= PAGE_CHARS_MAX) continue
        hasMore ||= i < texts.length - 1
        break
      }
      atOnce = Math.min(EVENTS_AT_ONCE_MAX, Math.max(1, Math.floor((SLICE_CHARS * written.length) / chars)))
    }
    return { events: written, next: hasMore ? (last?.requestId ?? null) : null }
  }

  return [
    keyed({
      method: 'GET',
      path: '/v1/visitors/:visitorId/export',
      access: 'visitors:read',
      doc: ERASURE_DOCS.export,
      query: ExportQuery,
      async handle({ caller, params, query: { limit = EVENTS_MAX, cursor, masked = false } }) {
        if (!masked) permitRole(caller, 'analyst', 'an export that is not masked')
        const { workspace, env } = caller
        const question = JSON.stringify([workspace.id, env, 'export', params.visitorId])
        const from = cursor === undefined ? null : readCursor(workspace.tokenSecret, question, cursor)
        const visitor = await visitors.byId(workspace.id, env, params.visitorId ?? '')
        if (visitor === null) throw new ApiError('not_found')
        const visitorIds = await visitors.idsOf(workspace.id, env, visitor.id)
        const page = await pageOf(caller, visitorIds, limit, from, masked)
        const lists = await memberships(workspace.id, env, visitor.id)
        const held =
          from === null
            ? await presentHeld(
                await personal(workspace.id, env, visitorIds),
                masked,
                openActors(kv, workspace.id),
                clock.now(),
              )
            : {}
        if (from === null) {
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
              list,
              value: visitor.id,
              addedAt: isoTime(entry.addedAt),
              expiresAt: entry.expiresAt === null ? null : isoTime(entry.expiresAt),
              source: entry.source,
              ruleId: entry.ruleId,
              reason: entry.reason,
            })),
            ...held,
            events: page.events,
            hasMore: page.next !== null,
            nextCursor: page.next === null ? null : writeCursor(workspace.tokenSecret, question, page.next),
          },
        }
      },
    }),
  ]
}

async function presentHeld(held: PersonalData, masked: boolean, actorOf: ActorOf, nowMs: number) {
  const { truncated, corrections, audit } = held
  return {
    recognition: held.recognition.map((one) => ({ ...one, counters: heldCountsAt(one.counters, nowMs) })),
    accounts: held.accounts.map(presentSaid),
    emails: distinct(held.emails, masked ? maskEmail : asItIs).map(presentSaid),
    addresses: distinct(held.addresses, masked ? maskIp : asItIs).map(presentSaid),
    deliveries: held.deliveries.map((one) => ({ ...one, createdAt: isoTime(one.createdAt) })),
    corrections: await Promise.all(
      corrections.map(async ({ visitors, same, at, actor }) => ({
        visitorIds: visitors,
        same,
        at: isoTime(at),
        ...(await actorOf(actor)),
      })),
    ),
    audit: await Promise.all(
      audit.map(async ({ at, actor, resource, id, action }) => ({
        at: isoTime(at),
        ...(await actorOf(actor)),
        resource,
        id,
        action,
      })),
    ),
    truncated,
  }
}

const asItIs = (text: string): string => text

const presentSaid = ({ value, firstAt, lastAt, events }: PersonalSaid) => ({
  value,
  firstAt: isoTime(firstAt),
  lastAt: isoTime(lastAt),
  events,
})

/** What is the same under its mask is told once. */
function distinct(all: readonly PersonalSaid[], mask: (text: string) => string): PersonalSaid[] {
  const known = new Map<string, PersonalSaid>()
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
