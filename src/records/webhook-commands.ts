// Commands about webhooks: what may stand in `changes` about them, and its validation. Secrets travel sealed.

import { VERDICTS } from '../domain/event.ts'
import { type TSchema, Type } from '../domain/schema.ts'
import {
  URL_CHARS_MAX,
  WEBHOOK_DESCRIPTION_CHARS_MAX,
  type WebhookFilters,
  type WebhookShape,
  type WebhookStatus,
} from '../domain/webhook.ts'

export interface WebhookCommandChanges {
  readonly url?: string
  readonly events?: readonly string[]
  readonly filters?: WebhookFilters | null
  readonly description?: string | null
  readonly status?: Exclude<WebhookStatus, 'disabled'>
}

export interface WebhookCommandData {
  readonly 'webhook.create': {
    readonly id: string
    readonly shape: WebhookShape
    readonly url: string
    readonly events: readonly string[]
    readonly filters: WebhookFilters | null
    readonly description: string | null
    readonly status: Exclude<WebhookStatus, 'disabled'>
    readonly sealed: string
    readonly webhooksMax: number
  }
  readonly 'webhook.update': { readonly id: string; readonly changes: WebhookCommandChanges }
  readonly 'webhook.delete': { readonly id: string }
  /** The old secret stays for `graceMs`; 0 ends every older one. */
  readonly 'webhook.rotate': { readonly id: string; readonly sealed: string; readonly graceMs: number }
  /** Refused when the webhook was enabled after `failingSince`. */
  readonly 'webhook.disable': {
    readonly id: string
    readonly failingSince: number
    /** Default: its receiver failed for a day. */
    readonly reason?: 'secret_lost'
  }
}

const strict = { additionalProperties: false } as const
const oneOf = (values: readonly string[]) => Type.Unsafe<string>({ type: 'string', enum: values })
const nullable = (schema: TSchema) => Type.Union([schema, Type.Null()])
const id = Type.String({ pattern: '^[A-Za-z0-9_]{1,64}$', maxLength: 64 })
const count = Type.Integer({ minimum: 0 })
const sealed = Type.String({ minLength: 1, maxLength: 512 })
const byId = Type.Object({ id }, strict)
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

export const WEBHOOK_COMMANDS: Readonly<Record<keyof WebhookCommandData, TSchema>> = {
  'webhook.create': Type.Object({ id, shape: oneOf(['A', 'B']), ...fields, sealed, webhooksMax: count }, strict),
  'webhook.update': Type.Object({ id, changes: Type.Partial(Type.Object(fields), strict) }, strict),
  'webhook.delete': byId,
  'webhook.rotate': Type.Object({ id, sealed, graceMs: count }, strict),
  'webhook.disable': Type.Object({ id, failingSince: count, reason: Type.Optional(oneOf(['secret_lost'])) }, strict),
}
