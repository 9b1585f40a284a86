// Commands about alerts: what may stand in `changes` about them, and its validation.

import {
  ALERT_METRICS,
  ALERT_NAME_CHARS_MAX,
  ALERT_OPERATORS,
  ALERT_STATUSES,
  type AlertFields,
} from '../domain/alert.ts'
import { SIGNAL_NAMES, VERDICTS } from '../domain/event.ts'
import { type TSchema, Type } from '../domain/schema.ts'

export interface AlertCommandData {
  readonly 'alert.create': AlertFields & { readonly id: string; readonly alertsMax: number }
  readonly 'alert.update': { readonly id: string; readonly changes: Partial<AlertFields> }
  readonly 'alert.delete': { readonly id: string }
}

const strict = { additionalProperties: false } as const
const oneOf = (values: readonly string[]) => Type.Unsafe<string>({ type: 'string', enum: [...values] })
const id = Type.String({ pattern: '^[A-Za-z0-9_]{1,64}$', maxLength: 64 })
const count = Type.Integer({ minimum: 0 })
const fields = {
  name: Type.String({ minLength: 1, maxLength: ALERT_NAME_CHARS_MAX }),
  metric: oneOf(ALERT_METRICS),
  filters: Type.Object(
    {
      verdict: Type.Optional(oneOf(VERDICTS)),
      ruleId: Type.Optional(id),
      signal: Type.Optional(oneOf(SIGNAL_NAMES)),
      platform: Type.Optional(Type.String({ maxLength: 32 })),
    },
    strict,
  ),
  operator: oneOf(ALERT_OPERATORS),
  threshold: Type.Number(),
  windowSeconds: count,
  minEvents: count,
  cooldownSeconds: count,
  status: oneOf(ALERT_STATUSES),
}

export const ALERT_COMMANDS: Readonly<Record<keyof AlertCommandData, TSchema>> = {
  'alert.create': Type.Object({ id, ...fields, alertsMax: count }, strict),
  'alert.update': Type.Object({ id, changes: Type.Partial(Type.Object(fields), strict) }, strict),
  'alert.delete': Type.Object({ id }, strict),
}
