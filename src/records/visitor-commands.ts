// Commands about visitors: what may stand in `changes` about them, and its validation.

import { type TSchema, Type } from '../domain/schema.ts'
import { SPLIT_EVENTS_MAX } from './splits.ts'

export interface VisitorCommandData {
  /** Both may be aliases already: who stands for whom is decided when the command is applied. */
  readonly 'visitor.merge': {
    readonly survivor: string
    readonly visitorId: string
    /** Of the deployment, so that the order goes to the same one in every replay. */
    readonly partitions: number
    /** Of each list, as for its other commands. */
    readonly entriesMax: number
  }
  /** Changes nothing: an entry of the audit log about what was done elsewhere. */
  readonly 'visitor.note': {
    readonly resource: 'event' | 'visitor' | 'erasure'
    readonly id: string
    readonly action: string
    readonly before: Readonly<Record<string, unknown>> | null
    readonly after: Readonly<Record<string, unknown>> | null
    /** The visitor it is about, with whom the entry goes; null: nobody that can be named. */
    readonly about: string | null
  }
  readonly 'visitor.split': {
    readonly visitorId: string
    /** One for each record of the visitor that some of the visits are of. The first new visitor stands for all. */
    readonly parts: readonly {
      readonly from: string
      /** Its home is that of `from`. */
      readonly to: string
      readonly requestIds: readonly string[]
      /** Of these, those that could not be decided; not all of them. */
      readonly uncounted?: readonly string[]
      /** Of tokens that only these visits have. */
      readonly generations: readonly number[]
    }[]
    readonly partitions: number
    /** How long events are readable at most, milliseconds. */
    readonly keptMs: number
  }
}

const strict = { additionalProperties: false } as const
const count = Type.Integer({ minimum: 0 })
const requestId = Type.String({ pattern: '^req_[0-9A-HJKMNP-TV-Z]{26}$', maxLength: 30 })
const visitorId = Type.String({ pattern: '^pv_[0-9A-Za-z]{20}$', maxLength: 23 })

const noted = Type.Union([Type.Object({}), Type.Null()])

export const VISITOR_COMMANDS: Readonly<Record<keyof VisitorCommandData, TSchema>> = {
  'visitor.merge': Type.Object(
    { survivor: visitorId, visitorId, partitions: Type.Integer({ minimum: 1 }), entriesMax: count },
    strict,
  ),
  'visitor.note': Type.Object(
    {
      resource: Type.Unsafe<string>({ type: 'string', enum: ['event', 'visitor', 'erasure'] }),
      id: Type.String({ pattern: '^[A-Za-z0-9_]{1,64}$', maxLength: 64 }),
      action: Type.String({ maxLength: 64 }),
      before: noted,
      after: noted,
      about: Type.Union([visitorId, Type.Null()]),
    },
    strict,
  ),
  'visitor.split': Type.Object(
    {
      visitorId,
      parts: Type.Array(
        Type.Object(
          {
            from: visitorId,
            to: visitorId,
            requestIds: Type.Array(requestId, { minItems: 1, maxItems: SPLIT_EVENTS_MAX }),
            uncounted: Type.Optional(Type.Array(requestId, { maxItems: SPLIT_EVENTS_MAX })),
            generations: Type.Array(count, { maxItems: SPLIT_EVENTS_MAX }),
          },
          strict,
        ),
        { minItems: 1, maxItems: SPLIT_EVENTS_MAX },
      ),
      partitions: Type.Integer({ minimum: 1 }),
      keptMs: Type.Integer({ minimum: 1 }),
    },
    strict,
  ),
}
