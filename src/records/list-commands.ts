// Commands about lists: what may stand in `changes` about them, and its validation.

import {
  ENTRIES_PER_CALL_MAX,
  ENTRY_BYTES_MAX,
  ENTRY_SOURCES,
  type EntrySource,
  LIST_DESCRIPTION_CHARS_MAX,
  LIST_NAME_CHARS_MAX,
  LIST_NAME_PATTERN,
  LIST_TYPES,
  type ListType,
  REASON_CHARS_MAX,
  TTL_SECONDS_MAX,
} from '../domain/list.ts'
import { type TSchema, Type } from '../domain/schema.ts'

/** They travel in the command, like those of rules. */
export interface ListMaxima {
  readonly listsMax: number
}

export interface NewEntry {
  /** Normalised. */
  readonly value: string
  /** Seconds; null: for ever; absent: as the list says. */
  readonly ttl?: number | null
  readonly reason?: string
}

/** What one side effect of a rule asks of a list. */
export interface ListEffect {
  readonly list: string
  readonly value: string
  readonly remove: boolean
  readonly ttl?: number | null
  readonly reason?: string
  readonly requestId: string
  readonly ruleId: string
  /** Place of the effect in the rule's sideEffects. */
  readonly index: number
}

export interface ListCommandData {
  readonly 'list.create': {
    readonly id: string
    readonly name: string
    readonly type: ListType
    readonly description: string | null
    readonly ttl: number | null
    readonly maxima: ListMaxima
  }
  readonly 'list.update': {
    readonly id: string
    readonly changes: { readonly description?: string | null; readonly ttl?: number | null }
  }
  readonly 'list.delete': { readonly id: string }
  readonly 'list.entries': {
    readonly id: string
    readonly add: readonly NewEntry[]
    readonly remove: readonly string[]
    readonly source: EntrySource
    readonly entriesMax: number
  }
  /** Entries whose time is over; one that was added again meanwhile stays. */
  readonly 'list.expire': {
    readonly id: string
    readonly entries: readonly { readonly value: string; readonly expiresAt: number }[]
  }
  /**
   * What rules decided in one record of `events`, in its order; a record with many effects makes several commands. Of each
   * partition only what comes after the last (`seq`, `part`) is applied: whoever repeats one repeats all that follow it.
   */
  readonly 'list.effects': {
    /** Seqs of another deployment's log are not comparable with this one's. */
    readonly deployment: string
    readonly partition: number
    readonly seq: number
    readonly part: number
    readonly effects: readonly ListEffect[]
    readonly entriesMax: number
  }
  /** Takes a visitor that is erased off every list, and has those erased that were merged into it. */
  readonly 'list.forget': {
    readonly visitorId: string
    /** Of the deployment: without it nobody was merged into the visitor. */
    readonly partitions?: number
    /** It stood for the visitor when that was erased: both were one, so it is to be erased too. */
    readonly survivor?: string
    /** They stood for it before: aliases of that one, to be erased with it. */
    readonly former?: readonly string[]
  }
}

export const EFFECTS_PER_COMMAND_MAX = 200

const strict = { additionalProperties: false } as const
const oneOf = (values: readonly string[]) => Type.Unsafe<string>({ type: 'string', enum: values })
const nullable = (schema: TSchema) => Type.Union([schema, Type.Null()])
const id = Type.String({ pattern: '^[A-Za-z0-9_]{1,64}$', maxLength: 64 })
const count = Type.Integer({ minimum: 0 })
const value = Type.String({ minLength: 1, maxLength: ENTRY_BYTES_MAX })
const ttl = Type.Integer({ minimum: 1, maximum: TTL_SECONDS_MAX })
const reason = Type.String({ maxLength: REASON_CHARS_MAX })
const description = nullable(Type.String({ maxLength: LIST_DESCRIPTION_CHARS_MAX }))
const name = Type.String({ pattern: LIST_NAME_PATTERN, maxLength: LIST_NAME_CHARS_MAX })
const byId = Type.Object({ id }, strict)

export const LIST_COMMANDS: Readonly<Record<keyof ListCommandData, TSchema>> = {
  'list.create': Type.Object(
    {
      id,
      name,
      type: oneOf(LIST_TYPES),
      description,
      ttl: nullable(ttl),
      maxima: Type.Object({ listsMax: count }, strict),
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
      add: Type.Array(
        Type.Object({ value, ttl: Type.Optional(nullable(ttl)), reason: Type.Optional(reason) }, strict),
        { maxItems: ENTRIES_PER_CALL_MAX },
      ),
      remove: Type.Array(value, { maxItems: ENTRIES_PER_CALL_MAX }),
      source: oneOf(ENTRY_SOURCES),
      entriesMax: count,
    },
    strict,
  ),
  'list.expire': Type.Object(
    { id, entries: Type.Array(Type.Object({ value, expiresAt: count }, strict), { maxItems: ENTRIES_PER_CALL_MAX }) },
    strict,
  ),
  'list.effects': Type.Object(
    {
      deployment: Type.String({ minLength: 1, maxLength: 100 }),
      partition: count,
      seq: count,
      part: count,
      entriesMax: count,
      effects: Type.Array(
        Type.Object(
          {
            list: name,
            value,
            remove: Type.Boolean(),
            ttl: Type.Optional(nullable(ttl)),
            reason: Type.Optional(reason),
            requestId: Type.String({ maxLength: 64 }),
            ruleId: id,
            index: count,
          },
          strict,
        ),
        { maxItems: EFFECTS_PER_COMMAND_MAX },
      ),
    },
    strict,
  ),
  'list.forget': Type.Object(
    {
      visitorId: Type.String({ minLength: 1, maxLength: 80 }),
      partitions: Type.Optional(count),
      survivor: Type.Optional(Type.String({ minLength: 1, maxLength: 80 })),
      former: Type.Optional(Type.Array(Type.String({ minLength: 1, maxLength: 80 }))),
    },
    strict,
  ),
}
