// Commands about lists: what may stand in `changes` about them, and its validation.

import {
  ENTRIES_PER_CALL_MAX,
  ENTRY_BYTES_MAX,
  ENTRY_SOURCES,
  LIST_DESCRIPTION_CHARS_MAX,
  LIST_NAME_CHARS_MAX,
  LIST_NAME_PATTERN,
  LIST_TYPES,
  REASON_CHARS_MAX,
  TTL_SECONDS_MAX,
} from '../domain/list.ts'
import { type Described, nullable, oneOf, strict, Type } from '../domain/schema.ts'
import { byId, id, wholeNumber } from './command-schema.ts'

export const EFFECTS_PER_COMMAND_MAX = 200

const value = Type.String({ minLength: 1, maxLength: ENTRY_BYTES_MAX })
/** Seconds. */
const ttl = Type.Integer({ minimum: 1, maximum: TTL_SECONDS_MAX })
const description = nullable(Type.String({ maxLength: LIST_DESCRIPTION_CHARS_MAX }))
const name = Type.String({ pattern: LIST_NAME_PATTERN, maxLength: LIST_NAME_CHARS_MAX })
const visitorId = Type.String({ minLength: 1, maxLength: 80 })
/** A `ttl` of null is for ever; without one the list says. */
const entryTerms = {
  ttl: Type.Optional(nullable(ttl)),
  reason: Type.Optional(Type.String({ maxLength: REASON_CHARS_MAX })),
}

/** Its value is normalised. */
const NewEntry = Type.Object({ value, ...entryTerms }, strict)
export type NewEntry = Described<typeof NewEntry>

/** What one side effect of a rule asks of a list; `index` is its place in the rule's sideEffects. */
const ListEffect = Type.Object(
  {
    list: name,
    value,
    remove: Type.Boolean(),
    ...entryTerms,
    requestId: Type.String({ maxLength: 64 }),
    ruleId: id,
    index: wholeNumber,
  },
  strict,
)
export type ListEffect = Described<typeof ListEffect>

export const LIST_COMMANDS = {
  'list.create': Type.Object(
    {
      id,
      name,
      type: oneOf(LIST_TYPES),
      description,
      ttl: nullable(ttl),
      /** It travels in the command, like those of rules. */
      maxima: Type.Object({ listsMax: wholeNumber }, strict),
    },
    strict,
  ),
  'list.update': Type.Object(
    { id, changes: Type.Partial(Type.Object({ description, ttl: nullable(ttl) }), strict) },
    strict,
  ),
  'list.delete': byId,
  'list.entries': Type.Object(
    {
      id,
      add: Type.Array(NewEntry, { maxItems: ENTRIES_PER_CALL_MAX }),
      remove: Type.Array(value, { maxItems: ENTRIES_PER_CALL_MAX }),
      source: oneOf(ENTRY_SOURCES),
      entriesMax: wholeNumber,
    },
    strict,
  ),
  /** Entries whose time is over; one that was added again meanwhile stays. */
  'list.expire': Type.Object(
    {
      id,
      entries: Type.Array(Type.Object({ value, expiresAt: wholeNumber }, strict), { maxItems: ENTRIES_PER_CALL_MAX }),
    },
    strict,
  ),
  /**
   * What rules decided in one record of `events`, in its order; a record with many effects makes several commands. Of each
   * partition only what comes after the last (`seq`, `part`) is applied: whoever repeats one repeats all that follow it. Seqs of
   * another deployment's log are not comparable with this one's.
   */
  'list.effects': Type.Object(
    {
      deployment: Type.String({ minLength: 1, maxLength: 100 }),
      partition: wholeNumber,
      seq: wholeNumber,
      part: wholeNumber,
      entriesMax: wholeNumber,
      effects: Type.Array(ListEffect, { maxItems: EFFECTS_PER_COMMAND_MAX }),
    },
    strict,
  ),
  /** Takes a visitor that is erased off every list, and has those erased that were merged into it. */
  'list.forget': Type.Object(
    {
      visitorId,
      /** Of the deployment: without it nobody was merged into the visitor. */
      partitions: Type.Optional(wholeNumber),
      /** It stood for the visitor when that was erased: both were one, so it is to be erased too. */
      survivor: Type.Optional(visitorId),
      /** They stood for it before: aliases of that one, to be erased with it. */
      former: Type.Optional(Type.Array(visitorId)),
    },
    strict,
  ),
}
