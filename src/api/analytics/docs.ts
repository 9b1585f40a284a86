// What the API shows of counted events and signals, and how its endpoints are described.

import { SIGNAL_NAMES } from '../../domain/event.ts'
import { oneOf, Type } from '../../domain/schema.ts'
import { EVENT_GROUPS } from '../../reads/analytics.ts'
import { countOf, moment, type RouteDoc, share, shared, words } from '../describe.ts'

const range = { from: moment(), to: moment(), total: countOf('Events in the range.') }
const bucket = Type.Optional(words('First day of the bucket, UTC.'))
const keys = Object.fromEntries(
  EVENT_GROUPS.map((name) => [name, Type.Optional(words('The group, where it is grouped by this.'))]),
)

export const EventCounts = shared(
  'EventCounts',
  Type.Object({
    ...range,
    groups: Type.Array(
      Type.Object({ ...keys, count: countOf(), pct: share('Of the total.') }) as ReturnType<typeof groupShape>,
    ),
  }),
)
const groupShape = () =>
  Type.Object({
    verdict: Type.Optional(words()),
    platform: Type.Optional(words()),
    country: Type.Optional(words()),
    hour: Type.Optional(words()),
    day: Type.Optional(words()),
    week: Type.Optional(words()),
    count: countOf(),
    pct: share(),
  })
export const SignalCounts = shared(
  'SignalCounts',
  Type.Object({
    ...range,
    signals: Type.Array(
      Type.Object({
        day: bucket,
        week: bucket,
        signal: oneOf(SIGNAL_NAMES),
        count: countOf(),
        rate: share('Of the events of its bucket.'),
        previousRate: share('In the time before, as long.'),
        trend: oneOf(['up', 'stable', 'down']),
      }),
    ),
  }),
)

const RANGE = {
  from: { description: 'Begin, inclusive.', format: 'date-time' },
  to: { description: 'End, exclusive; at most 90 days later.', format: 'date-time' },
}
const example = { from: '2026-11-13T00:00:00.000Z', to: '2026-11-20T00:00:00.000Z', total: 29 }

export const ANALYTICS_DOCS = {
  events: {
    id: 'countEvents',
    summary: 'Count events',
    description:
      'In UTC. Groups of time are in order and have zeros where nothing happened; others are the 250 largest, and `other`.',
    members: {
      ...RANGE,
      groupBy: { description: 'Without it only the total is counted.' },
      verdict: { description: 'Only events with this verdict.' },
    },
    answers: {
      200: {
        description: 'The counts.',
        schema: EventCounts,
        example: { ...example, groups: [{ country: 'CZ', count: 29, pct: 1 }] },
      },
    },
  },
  signals: {
    id: 'countSignals',
    summary: 'Count detected signals',
    description: 'A trend is up or down when the change is significant and at least a tenth.',
    members: {
      ...RANGE,
      groupBy: { description: 'Default: signal.' },
      signal: { description: 'Only this signal.' },
    },
    answers: {
      200: {
        description: 'The counts.',
        schema: SignalCounts,
        example: {
          ...example,
          signals: [{ signal: 'vpn', count: 9, rate: 0.31, previousRate: 0.29, trend: 'stable' }],
        },
      },
    },
  },
} as const satisfies Record<string, RouteDoc>
