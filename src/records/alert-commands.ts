// Commands about alerts: what may stand in `changes` about them, and its validation.

import { ALERT_METRICS, ALERT_NAME_CHARS_MAX, ALERT_OPERATORS, ALERT_STATUSES } from '../domain/alert.ts'
import { SIGNAL_NAMES, VERDICTS } from '../domain/event.ts'
import { oneOf, strict, Type } from '../domain/schema.ts'
import { byId, id, wholeNumber } from './command-schema.ts'

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
  windowSeconds: wholeNumber,
  minEvents: wholeNumber,
  cooldownSeconds: wholeNumber,
  status: oneOf(ALERT_STATUSES),
}

export const ALERT_COMMANDS = {
  'alert.create': Type.Object({ id, ...fields, alertsMax: wholeNumber }, strict),
  'alert.update': Type.Object({ id, changes: Type.Partial(Type.Object(fields), strict) }, strict),
  'alert.delete': byId,
}
