// /v1/alerts: alerts and their incidents. Writes go through the control plane; reads come from the kv.

import { accepted, type Submitter } from '../../control/submit.ts'
import {
  ALERT_COOLDOWN_SECONDS,
  ALERT_METRICS,
  ALERT_NAME_CHARS_MAX,
  ALERT_OPERATORS,
  ALERT_STATUSES,
  ALERT_WINDOW_SECONDS,
  type Alert,
  type AlertFields,
  type Incident,
} from '../../domain/alert.ts'
import { ApiError, invalid } from '../../domain/errors.ts'
import { SIGNAL_NAMES, VERDICTS } from '../../domain/event.ts'
import type { RandomBytes } from '../../domain/ids.ts'
import { oneOf, type Static, strict, Type } from '../../domain/schema.ts'
import { isoTime } from '../../events/present.ts'
import type { Kv } from '../../kv/kv.ts'
import { must } from '../../lib/must.ts'
import { readLast, writeCursor } from '../../reads/cursor.ts'
import { readAlert, readAlerts, readIncidents, type StoredAlert } from '../../records/alerts.ts'
import type { Caller } from '../../records/auth.ts'
import { callerPlaceOf, commandOf, newId } from '../callers.ts'
import { KEEP_ALL } from '../idempotency.ts'
import { type ApiRoute, keyed } from '../routes.ts'
import { refuseUnknownRule } from '../rules/routes.ts'
import { OFFSET, PAGE_LIMIT, PAGE_LIMIT_DEFAULT } from '../schemas.ts'
import { ALERT_DOCS } from './docs.ts'

const ALERTS_MAX = 100

export interface AlertRoutesNeeds {
  readonly kv: Pick<Kv, 'get' | 'scan'>
  readonly submit: Submitter['submit']
  readonly random: RandomBytes
  readonly alertsMax?: number
}

const EVENTS_MAX = 1_000_000_000
const Filters = Type.Object(
  {
    verdict: Type.Optional(oneOf(VERDICTS)),
    ruleId: Type.Optional(Type.String({ pattern: '^rul_[0-9A-Za-z]{20}$', maxLength: 24 })),
    signal: Type.Optional(oneOf(SIGNAL_NAMES)),
    platform: Type.Optional(Type.String({ minLength: 1, maxLength: 32 })),
  },
  strict,
)
const seconds = ({ min, max }: { readonly min: number; readonly max: number }) =>
  Type.Integer({ minimum: min, maximum: max })
const name = Type.String({ minLength: 1, maxLength: ALERT_NAME_CHARS_MAX })
const threshold = Type.Number({ minimum: 0, maximum: 1e12 })
const optional = {
  filters: Type.Optional(Filters),
  windowSeconds: Type.Optional(seconds(ALERT_WINDOW_SECONDS)),
  minEvents: Type.Optional(Type.Integer({ minimum: 0, maximum: EVENTS_MAX })),
  cooldownSeconds: Type.Optional(seconds(ALERT_COOLDOWN_SECONDS)),
  status: Type.Optional(oneOf(ALERT_STATUSES)),
}
const CreateBody = Type.Object(
  { name, metric: oneOf(ALERT_METRICS), operator: oneOf(ALERT_OPERATORS), threshold, ...optional },
  strict,
)
const UpdateBody = Type.Object(
  {
    name: Type.Optional(name),
    metric: Type.Optional(oneOf(ALERT_METRICS)),
    operator: Type.Optional(oneOf(ALERT_OPERATORS)),
    threshold: Type.Optional(threshold),
    ...optional,
  },
  strict,
)
const ListQuery = Type.Object(
  { status: Type.Optional(oneOf(ALERT_STATUSES)), limit: PAGE_LIMIT, offset: OFFSET },
  strict,
)
const IncidentQuery = Type.Object(
  { limit: PAGE_LIMIT, cursor: Type.Optional(Type.String({ minLength: 1, maxLength: 200 })) },
  strict,
)

const STANDARD = { filters: {}, windowSeconds: 300, minEvents: 0, cooldownSeconds: 3_600, status: 'active' } as const

/** What its schema cannot say: which filters a metric has, and what a share can be. */
function check(alert: AlertFields): void {
  const { metric, filters, threshold } = alert
  if (metric === 'signal_rate' && filters.signal === undefined) {
    throw invalid('filters.signal', 'The metric signal_rate needs a signal.')
  }
  const ofEvents = metric !== 'webhook_failure_rate' && metric !== 'ingest_lag_ms'
  const [wrong] = Object.keys(filters)
  if (!ofEvents && wrong !== undefined) throw invalid(`filters.${wrong}`, `The metric ${metric} has no filters.`)
  if (metric.endsWith('_rate') && threshold > 1) throw invalid('threshold', 'A rate is from 0 to 1.')
}

export function alertRoutes({ kv, submit, random, alertsMax = ALERTS_MAX }: AlertRoutesNeeds): ApiRoute[] {
  async function existing(caller: Caller, id = ''): Promise<StoredAlert> {
    const { workspace, env } = callerPlaceOf(caller)
    const alert = /^alr_[0-9A-Za-z]{20}$/.test(id) ? await readAlert(kv, workspace, env, id) : null
    if (alert === null) throw new ApiError('not_found')
    return alert
  }

  return [
    keyed({
      method: 'POST',
      path: '/v1/alerts',
      access: 'alerts:write',
      doc: ALERT_DOCS.create,
      body: CreateBody,
      once: KEEP_ALL,
      async handle({ caller, body, seed }) {
        const fields: AlertFields = { ...STANDARD, ...body, filters: given(body.filters) }
        check(fields)
        await refuseUnknownRule(kv, caller, fields.filters.ruleId, 'filters.ruleId')
        const data = { ...fields, id: newId({ seed }, 'alr', random), alertsMax }
        const { alert } = accepted(await submit({ ...commandOf(caller), type: 'alert.create', data }))
        return { status: 201, body: presentAlert(must(alert, 'the alert of its command')) }
      },
    }),

    keyed({
      method: 'GET',
      path: '/v1/alerts',
      access: 'alerts:read',
      doc: ALERT_DOCS.list,
      query: ListQuery,
      async handle({ caller, query: { status, limit = PAGE_LIMIT_DEFAULT, offset = 0 } }) {
        const { workspace, env } = callerPlaceOf(caller)
        const all = (await readAlerts(kv, workspace, env)).filter(
          (one) => status === undefined || one.status === status,
        )
        return { body: { data: all.slice(offset, offset + limit).map(presentAlert), total: all.length } }
      },
    }),

    keyed({
      method: 'GET',
      path: '/v1/alerts/:alertId',
      access: 'alerts:read',
      doc: ALERT_DOCS.one,
      handle: async ({ caller, params }) => ({ body: presentAlert(await existing(caller, params.alertId)) }),
    }),

    keyed({
      method: 'PUT',
      path: '/v1/alerts/:alertId',
      access: 'alerts:write',
      doc: ALERT_DOCS.update,
      body: UpdateBody,
      bodyMayBeEmpty: true,
      async handle({ caller, params, body }) {
        const before = await existing(caller, params.alertId)
        const { filters, ...rest } = body
        const changes = { ...rest, ...(filters === undefined ? {} : { filters: given(filters) }) }
        check({ ...before, ...changes })
        await refuseUnknownRule(kv, caller, filters?.ruleId, 'filters.ruleId')
        if (Object.keys(changes).length === 0) return { body: presentAlert(before) }
        const data = { id: before.id, changes }
        const { alert } = accepted(await submit({ ...commandOf(caller), type: 'alert.update', data }))
        return { body: presentAlert(must(alert, 'the alert of its command')) }
      },
    }),

    keyed({
      method: 'DELETE',
      path: '/v1/alerts/:alertId',
      access: 'alerts:write',
      doc: ALERT_DOCS.remove,
      async handle({ caller, params }) {
        const { id } = await existing(caller, params.alertId)
        accepted(await submit({ ...commandOf(caller), type: 'alert.delete', data: { id } }))
        return { body: { deleted: true, alertId: id } }
      },
    }),

    keyed({
      method: 'GET',
      path: '/v1/alerts/:alertId/incidents',
      access: 'alerts:read',
      doc: ALERT_DOCS.incidents,
      query: IncidentQuery,
      async handle({ caller, params, query: { limit = PAGE_LIMIT_DEFAULT, cursor } }) {
        const { workspace, env } = callerPlaceOf(caller)
        const secret = caller.workspace.tokenSecret
        const question = JSON.stringify([workspace, env, 'incidents', params.alertId])
        const before = cursor === undefined ? null : Number(readLast(secret, question, cursor))
        const { id } = await existing(caller, params.alertId)
        const { incidents, hasMore } = await readIncidents(kv, workspace, env, id, limit, before)
        const last = incidents.at(-1)
        const next = hasMore && last !== undefined ? writeCursor(secret, question, String(last.triggeredAt)) : null
        return { body: { data: incidents.map(presentIncident), hasMore, nextCursor: next } }
      },
    }),
  ]
}

/** Without members that are there and undefined. */
const given = (filters: Static<typeof Filters> = {}): AlertFields['filters'] =>
  Object.fromEntries(Object.entries(filters).filter(([, value]) => value !== undefined))

export const presentAlert = (alert: Alert) => ({
  id: alert.id,
  name: alert.name,
  metric: alert.metric,
  filters: alert.filters,
  operator: alert.operator,
  threshold: alert.threshold,
  windowSeconds: alert.windowSeconds,
  minEvents: alert.minEvents,
  cooldownSeconds: alert.cooldownSeconds,
  status: alert.status,
  createdAt: isoTime(alert.createdAt),
  updatedAt: isoTime(alert.updatedAt),
})

const presentIncident = ({ windowStart, windowEnd, triggeredAt, ...incident }: Incident) => ({
  ...incident,
  windowStart: isoTime(windowStart),
  windowEnd: isoTime(windowEnd),
  triggeredAt: isoTime(triggeredAt),
})
