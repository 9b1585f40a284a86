// Commands about visitors: what may stand in `changes` about them, and its validation.

import { nullable, oneOf, strict, Type } from '../domain/schema.ts'
import { id, text, wholeNumber } from './command-schema.ts'
import { SPLIT_EVENTS_MAX } from './splits.ts'

const requestId = Type.String({ pattern: '^req_[0-9A-HJKMNP-TV-Z]{26}$', maxLength: 30 })
const visitorId = Type.String({ pattern: '^pv_[0-9A-Za-z]{20}$', maxLength: 23 })
const noted = nullable(Type.Unsafe<Readonly<Record<string, unknown>>>(Type.Object({})))

/** Some visits of one record of the visitor. */
const SplitPart = Type.Object(
  {
    from: visitorId,
    /** Its home is that of `from`. */
    to: visitorId,
    requestIds: Type.Array(requestId, { minItems: 1, maxItems: SPLIT_EVENTS_MAX }),
    /** Of these, those that could not be decided; not all of them. */
    uncounted: Type.Optional(Type.Array(requestId, { maxItems: SPLIT_EVENTS_MAX })),
    /** Of tokens that only these visits have. */
    generations: Type.Array(wholeNumber, { maxItems: SPLIT_EVENTS_MAX }),
  },
  strict,
)

export const VISITOR_COMMANDS = {
  /**
   * Both may be aliases already: who stands for whom is decided when the command is applied. `partitions` are those of the
   * deployment, so that the order goes to the same one in every replay; `entriesMax` is each list's, as in its other commands.
   */
  'visitor.merge': Type.Object(
    { survivor: visitorId, visitorId, partitions: Type.Integer({ minimum: 1 }), entriesMax: wholeNumber },
    strict,
  ),
  /**
   * The engine found both to be one device, by the visit `requestId`; `visitorId` is the younger one. Decided when it is applied, like a
   * merge, but list memberships stay where they are, and nothing that people said is changed.
   */
  'visitor.heal': Type.Object(
    {
      survivor: visitorId,
      visitorId,
      partitions: Type.Integer({ minimum: 1 }),
      requestId,
      confidence: Type.Number({ minimum: 0, maximum: 1 }),
    },
    strict,
  ),
  /**
   * Changes nothing: an entry of the audit log about what was done elsewhere. The entry goes with the visitor it is `about`;
   * null is nobody that can be named.
   */
  'visitor.note': Type.Object(
    {
      resource: oneOf(['event', 'visitor', 'erasure']),
      id,
      action: text(64),
      before: noted,
      after: noted,
      about: nullable(visitorId),
    },
    strict,
  ),
  /** The first part's new visitor stands for all. `keptMs` is how long events are readable at most. */
  'visitor.split': Type.Object(
    {
      visitorId,
      parts: Type.Array(SplitPart, { minItems: 1, maxItems: SPLIT_EVENTS_MAX }),
      partitions: Type.Integer({ minimum: 1 }),
      keptMs: Type.Integer({ minimum: 1 }),
    },
    strict,
  ),
}
