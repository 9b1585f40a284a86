// Commands about webhooks: what may stand in `changes` about them, and its validation. Secrets travel sealed.

import { VERDICTS } from '../domain/event.ts'
import { type Described, nullable, oneOf, strict, Type } from '../domain/schema.ts'
import { URL_CHARS_MAX, WEBHOOK_DESCRIPTION_CHARS_MAX } from '../domain/webhook.ts'
import { byId, id, wholeNumber } from './command-schema.ts'

const sealed = Type.String({ minLength: 1, maxLength: 512 })
const fields = {
  url: Type.String({ minLength: 1, maxLength: URL_CHARS_MAX }),
  events: Type.Array(Type.String({ minLength: 1, maxLength: 64 }), { minItems: 1, maxItems: 32 }),
  filters: nullable(
    Type.Object(
      {
        verdict: Type.Optional(Type.Array(oneOf(VERDICTS), { maxItems: 3 })),
        ruleId: Type.Optional(id),
        botDetected: Type.Optional(Type.Boolean()),
      },
      strict,
    ),
  ),
  description: nullable(Type.String({ maxLength: WEBHOOK_DESCRIPTION_CHARS_MAX })),
  status: oneOf(['active', 'paused']),
}
const WebhookChanges = Type.Partial(Type.Object(fields), strict)
export type WebhookCommandChanges = Described<typeof WebhookChanges>

export const WEBHOOK_COMMANDS = {
  'webhook.create': Type.Object({ id, shape: oneOf(['A', 'B']), ...fields, sealed, webhooksMax: wholeNumber }, strict),
  'webhook.update': Type.Object({ id, changes: WebhookChanges }, strict),
  'webhook.delete': byId,
  /** The old secret stays for `graceMs`; 0 ends every older one. */
  'webhook.rotate': Type.Object({ id, sealed, graceMs: wholeNumber }, strict),
  /** Refused when the webhook was enabled after `failingSince`. Without a reason its receiver failed for a day. */
  'webhook.disable': Type.Object(
    { id, failingSince: wholeNumber, reason: Type.Optional(oneOf(['secret_lost'])) },
    strict,
  ),
}
