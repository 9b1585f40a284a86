// How identify and the endpoints of events are described.

import { Type } from '../../domain/schema.ts'
import { cursorPage, PAGE_MEMBERS, type RouteDoc } from '../describe.ts'
import {
  EVENT_EXAMPLE,
  PENDING_EXAMPLE,
  RECOGNITION_EXAMPLE,
  SUMMARY_EXAMPLE,
  VISITOR_EVENT_EXAMPLE,
} from './examples.ts'
import { FILTER_MEMBERS } from './filter.ts'
import { AnyEvent, Event, Labelling, Pending, Recognition, VisitorEvent } from './schema.ts'

export const PENDING = {
  description: 'Accepted and not decided yet: ask again.',
  schema: Pending,
  example: PENDING_EXAMPLE,
  headers: ['Retry-After'],
} as const

export const EVENT_DOCS = {
  one: {
    id: 'getEvent',
    summary: 'Read one event',
    description:
      'The whole event, readable from the moment identify has answered. An event past its retention is not found.',
    answers: { 200: { description: 'The event.', schema: Event, example: EVENT_EXAMPLE }, 202: PENDING },
  },
  change: {
    id: 'changeEvent',
    summary: 'Label an event',
    description:
      'Says afterwards whose it was and whether it was fraud; what was decided stays. Labels are what backtests measure precision and recall by.',
    members: {
      linkedId: { description: 'Your id of the account.' },
      tag: { description: 'Takes the place of the whole tag.' },
      label: { description: 'null takes the label away.' },
    },
    bodyExample: { label: 'fraud' },
    answers: {
      200: { description: 'The event as it is now.', schema: Event, example: { ...EVENT_EXAMPLE, label: 'fraud' } },
    },
  },
  identity: {
    id: 'explainEvent',
    summary: 'Explain a recognition',
    description: 'Why the event has its visitor: the candidates, how each attribute compared, the token.',
    answers: {
      200: { description: 'The recognition.', schema: Recognition, example: RECOGNITION_EXAMPLE },
      202: PENDING,
    },
  },
  label: {
    id: 'labelEvents',
    summary: 'Label many events',
    description:
      'The events named, at most 1,000, or all events of a visitor as lists have them. Ids that name nothing are counted. Once an event counts as labelled every read of it shows the label; lists follow within two seconds.',
    refusals: ['not_found'],
    members: {
      label: { description: 'null takes labels away.' },
      requestIds: { description: 'Either these or `visitorId`.' },
      visitorId: { description: 'All events of this visitor, and of those that were merged into it.' },
    },
    bodyExample: { label: 'fraud', requestIds: ['req_01KAJ6Q3ZV8M4T9XW2C5E7G1HN'] },
    answers: {
      202: {
        description: 'How far it has come.',
        schema: Labelling,
        example: { label: 'fraud', requested: 1, labelled: 1, notFound: 0, status: 'done' },
      },
    },
  },
  list: {
    id: 'listEvents',
    summary: 'List events',
    description:
      'Newest first. All filters that are given must hold. With `Accept: text/csv` a file of all that meet them, up to 100,000, without `limit` and `cursor`: columns are named by the paths of their members, and a text that a spreadsheet would take for a formula has an apostrophe before it. What breaks off is no whole file.',
    members: {
      ...PAGE_MEMBERS,
      ...FILTER_MEMBERS,
      fields: { description: '`full`: `data` has whole events, as they are read one by one.' },
    },
    refusals: ['plan_required'],
    answers: {
      200: {
        description: 'A page of events: summaries, or whole events where `fields` asks for them.',
        schema: cursorPage(AnyEvent),
        otherTypes: ['text/csv'],
        example: { data: [SUMMARY_EXAMPLE], hasMore: false, nextCursor: null },
      },
    },
  },
  stream: {
    id: 'streamEvents',
    summary: 'Watch events',
    description:
      'Server-sent events with the filters of the list: `listening` once, then `event` with a whole event for each that is decided, at most 50 in a second, and `skipped` with `{"count": n}` for what came beyond. At most once: what was missed is in the list. Whoever reads too slowly is cut off. A workspace may have ten of them per process; they end when the key does.',
    members: FILTER_MEMBERS,
    refusals: ['plan_required'],
    answers: {
      200: { description: 'A stream without end.', schema: Type.String(), contentType: 'text/event-stream' },
    },
  },
  ofVisitor: {
    id: 'listVisitorEvents',
    summary: 'List the events of a visitor',
    description: 'Newest first.',
    members: PAGE_MEMBERS,
    answers: {
      200: {
        description: 'A page of events.',
        schema: cursorPage(VisitorEvent),
        example: { data: [VISITOR_EVENT_EXAMPLE], hasMore: false, nextCursor: null },
      },
    },
  },
} as const satisfies Record<string, RouteDoc>
