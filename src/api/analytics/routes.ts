// /v1/analytics: how many events there were, by what, and how often signals were detected.

import { invalid } from '../../domain/errors.ts'
import { SIGNAL_NAMES, VERDICTS } from '../../domain/event.ts'
import { oneOf, strict, Type } from '../../domain/schema.ts'
import { isoTime } from '../../events/present.ts'
import { DAY_MS } from '../../lib/durations.ts'
import { type Analytics, EVENT_GROUPS, type EventGroup, SIGNAL_GROUPS, type TimeRange } from '../../reads/analytics.ts'
import { readMoment } from '../query.ts'
import { type ApiRoute, type KeyedCall, keyed } from '../routes.ts'
import { ANALYTICS_DOCS } from './docs.ts'

export interface AnalyticsRoutesNeeds {
  readonly analytics: Analytics
}

const DAYS_MAX = 90
const RANGE = { from: Type.String({ maxLength: 40 }), to: Type.String({ maxLength: 40 }) }
const EventsQuery = Type.Object(
  { ...RANGE, groupBy: Type.Optional(oneOf(EVENT_GROUPS)), verdict: Type.Optional(oneOf(VERDICTS)) },
  strict,
)
const SignalsQuery = Type.Object(
  { ...RANGE, groupBy: Type.Optional(oneOf(SIGNAL_GROUPS)), signal: Type.Optional(oneOf(SIGNAL_NAMES)) },
  strict,
)

/** Throws ApiError validation_error naming `from` or `to`. The work ends when nobody waits for the answer. */
function rangeOf({ caller, query, whenAborted }: KeyedCall<unknown, { from: string; to: string }>): TimeRange {
  const [from, to] = [readMoment(query.from, 'from'), readMoment(query.to, 'to')]
  if (from >= to) throw invalid('to', 'Must be later than from.')
  if (to - from > DAYS_MAX * DAY_MS) throw invalid('to', `Must be at most ${DAYS_MAX} days after from.`)
  const left = new AbortController()
  whenAborted(() => left.abort())
  return { workspace: caller.workspace.id, env: caller.env, from, to, abort: left.signal }
}

/** An hour as its first second, a day or a week as its first day; texts as they are. */
function label(by: EventGroup, key: string | number): string {
  if (typeof key === 'string') return key
  const time = new Date(key).toISOString()
  return by === 'hour' ? `${time.slice(0, 19)}Z` : time.slice(0, 10)
}

export function analyticsRoutes({ analytics }: AnalyticsRoutesNeeds): ApiRoute[] {
  return [
    keyed({
      method: 'GET',
      doc: ANALYTICS_DOCS.events,
      path: '/v1/analytics/events',
      access: 'analytics:read',
      query: EventsQuery,
      async handle(call) {
        const range = rangeOf(call)
        const { groupBy, verdict } = call.query
        const { total, groups } = await analytics.events(range, groupBy ?? null, verdict ?? null)
        return {
          body: {
            from: isoTime(range.from),
            to: isoTime(range.to),
            total,
            groups: groups.map(({ key, count }) => ({
              [groupBy as EventGroup]: label(groupBy as EventGroup, key),
              count,
              pct: total === 0 ? 0 : count / total,
            })),
          },
        }
      },
    }),

    keyed({
      method: 'GET',
      doc: ANALYTICS_DOCS.signals,
      path: '/v1/analytics/signals',
      access: 'analytics:read',
      query: SignalsQuery,
      async handle(call) {
        const range = rangeOf(call)
        const { groupBy, signal } = call.query
        const by = groupBy === undefined || groupBy === 'signal' ? null : groupBy
        const { total, signals } = await analytics.signals(range, by, signal ?? null)
        return {
          body: {
            from: isoTime(range.from),
            to: isoTime(range.to),
            total,
            signals: signals.map(({ bucket, ...figures }) => ({
              ...(by !== null && bucket !== null && { [by]: label(by, bucket) }),
              ...figures,
            })),
          },
        }
      },
    }),
  ]
}
