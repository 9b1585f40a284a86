// What the API shows of erasures and of all that is held of a visitor, and how both endpoints are described.

import { ENTRY_SOURCES } from '../../domain/list.ts'
import { oneOf, type TSchema, Type } from '../../domain/schema.ts'
import { DELIVERY_STATUSES } from '../../records/deliveries.ts'
import {
  count,
  flag,
  moment,
  orNull,
  PAGE_MEMBERS,
  type RouteDoc,
  ruleId,
  shared,
  visitorId,
  words,
} from '../describe.ts'
import { EVENT_EXAMPLE } from '../events/examples.ts'
import { Event } from '../events/schema.ts'
import { actorMembers } from '../rules/trial-docs.ts'
import { VISITOR_DOCS, Visitor } from './docs.ts'

export const Erasure = shared(
  'Erasure',
  Type.Object({
    erasureId: words(),
    status: oneOf(['in_progress', 'done']),
    requestedAt: moment(),
    stores: Type.Array(
      Type.Object({
        store: words('Such as profile, lists, webhooks, events or log.'),
        status: Type.Enum(['pending', 'done'], {
          description: 'pending: bytes of it may be on a disk, though no read shows it. done: no byte is left.',
        }),
        expectedBy: orNull(moment('By when the store is expected to be done; null when it is.')),
      }),
    ),
  }),
)
const firstPage = <Items extends TSchema>(items: Items, description: string) =>
  Type.Optional(Type.Array(items, { description: `${description} With the first page only.` }))
const said = (description: string) =>
  firstPage(Type.Object({ value: words(), firstAt: moment(), lastAt: moment(), events: count() }), description)

export const VisitorExport = shared(
  'VisitorExport',
  Type.Object({
    visitor: Visitor,
    mergedVisitorIds: Type.Array(visitorId()),
    lists: Type.Array(
      Type.Object({
        list: words(),
        value: visitorId(),
        addedAt: moment(),
        expiresAt: orNull(moment()),
        source: oneOf(ENTRY_SOURCES),
        ruleId: orNull(ruleId()),
        reason: orNull(words()),
      }),
    ),
    recognition: firstPage(
      Type.Object({
        visitorId: visitorId(),
        matchKeys: Type.Array(words(), { description: 'Hashes under which it is found.' }),
        platform: orNull(words()),
        browser: orNull(words()),
        attributes: Type.Record(Type.String(), Type.Number(), {
          description: 'What is compared, by name: numbers, and hashes of texts.',
        }),
        generation: count('Of storage tokens: the newest one given out.'),
        confirmedGeneration: count('The newest one that came back.'),
        tokenVisits: count(),
        privateVisits: count(),
        counters: Type.Object(
          {
            events: Type.Object({ '5m': count(), '1h': count(), '24h': count() }),
            ips: Type.Object({ '24h': count() }),
            countries: Type.Object({ '24h': count() }),
            linkedIds: Type.Object({ '24h': count() }),
          },
          { description: 'What is counted of it by now, under the names `velocity` has.' },
        ),
      }),
      'The records by which visits are recognised: of the visitor and of who was merged into it.',
    ),
    accounts: said('Values of `linkedId`.'),
    emails: said('Emails that were sent.'),
    addresses: said('Addresses as long as they are kept whole.'),
    deliveries: firstPage(
      Type.Object({
        webhookId: words(),
        deliveryId: words(),
        type: words(),
        status: oneOf(DELIVERY_STATUSES),
        attempts: count(),
        createdAt: moment(),
      }),
      'To webhooks, about the visitor, as long as their bodies are kept.',
    ),
    corrections: firstPage(
      Type.Object({
        visitorIds: Type.Array(visitorId()),
        same: flag('Merged; false: split.'),
        at: moment(),
        ...actorMembers,
      }),
      'What was merged and split.',
    ),
    audit: firstPage(
      Type.Object({ at: moment(), ...actorMembers, resource: words(), id: words(), action: words() }),
      'What the audit log says of the visitor.',
    ),
    truncated: firstPage(
      words(),
      'Which of these lists has more than the thousand newest items that are told, such as `accounts`; mostly none.',
    ),
    events: Type.Array(Event),
    hasMore: flag('Whether there are further events.'),
    nextCursor: orNull(words('Pass it as `cursor` for the next events; null at the end.')),
  }),
)

const erasureId = 'era_5tGb7yHn9uJm1kIo3lPq'

export const ERASURE_DOCS = {
  one: {
    id: 'getErasure',
    summary: 'Follow an erasure',
    description: 'How far the erasure of a visitor has come, store by store. No read shows the visitor from the start.',
    answers: {
      200: {
        description: 'The erasure.',
        schema: Erasure,
        example: {
          erasureId,
          status: 'in_progress',
          requestedAt: '2026-11-20T18:04:05.123Z',
          stores: [
            { store: 'profile', status: 'done', expectedBy: null },
            { store: 'lists', status: 'done', expectedBy: null },
            { store: 'webhooks', status: 'done', expectedBy: null },
            { store: 'events', status: 'pending', expectedBy: '2026-11-21T18:04:05.123Z' },
            { store: 'log', status: 'done', expectedBy: null },
          ],
        },
      },
    },
  },
  export: {
    id: 'exportVisitor',
    summary: 'Export a visitor',
    description:
      'Everything that is held of the visitor and of those merged into it, with the events newest first, page by page: a page ends after `limit` events or the one that passes a megabyte. It answers whom the data is about, so addresses and emails are whole; `masked=true` shows them as everywhere else. Every export is an entry of the audit log.',
    members: {
      ...PAGE_MEMBERS,
      limit: { description: 'How many events at most.', default: 500 },
      masked: { description: 'Masks addresses and emails.', default: false },
    },
    answers: {
      200: {
        description: 'The visitor with a page of its events.',
        schema: VisitorExport,
        example: {
          visitor: VISITOR_DOCS.one.answers[200].example,
          mergedVisitorIds: [],
          lists: [],
          recognition: [],
          accounts: [],
          emails: [],
          addresses: [],
          deliveries: [],
          corrections: [],
          audit: [],
          truncated: [],
          events: [EVENT_EXAMPLE],
          hasMore: false,
          nextCursor: null,
        },
      },
    },
  },
} as const satisfies Record<string, RouteDoc>
