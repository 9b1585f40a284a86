// How an endpoint is described beside its code: what it is for, what it answers, and why it may refuse. The OpenAPI document,
// the reference and the tests of every recorded answer are made from it.

import type { ErrorCode } from '../domain/errors.ts'
import { type Static, type TSchema, Type } from '../domain/schema.ts'

/** JSON Schema members that say more about a parameter or member than the schema that validates it. */
export interface Fragment {
  readonly description?: string
  readonly format?: string
  readonly [member: string]: unknown
}

export interface AnswerDoc {
  readonly description: string
  /** null: no body. Members it does not name may be added to the API; tests refuse them all the same. */
  readonly schema: TSchema | null
  readonly example?: unknown
  /** Names of response headers besides those of every answer. */
  readonly headers?: readonly string[]
  /** Default application/json. */
  readonly contentType?: string
  /** Types of text that are answered to who accepts them. */
  readonly otherTypes?: readonly string[]
}

export interface RouteDoc {
  /** Unique, camelCase: `getEvent`. */
  readonly id: string
  /** A few words without a full stop: `Read one event`. */
  readonly summary: string
  readonly description?: string
  /** By status, those of success. */
  readonly answers: Readonly<Record<number, AnswerDoc>>
  /** Codes besides those that every route with this access, parameters and body can give. */
  readonly refusals?: readonly ErrorCode[]
  /** A request that succeeds, given that its ids and names exist. */
  readonly bodyExample?: unknown
  /** Of a request that succeeds, where the route needs a parameter and none in particular. */
  readonly queryExample?: Readonly<Record<string, string>>
  /** By name of a query parameter, path parameter, header or top-level member of the body. */
  readonly members?: Readonly<Record<string, Fragment | TSchema>>
}

/** A schema that many places show: the document has it once, under this name. */
export const shared = <T extends TSchema>(name: string, schema: T): T => ({ ...schema, 'x-shared': name })

/** The schema or null, in the form that gives the plainest document. */
export function orNull<T extends TSchema>(schema: T) {
  const { type, enum: values } = schema as { readonly type?: unknown; readonly enum?: readonly unknown[] }
  const isPlain = typeof type === 'string' && !Object.hasOwn(schema, 'x-shared') && type !== 'object'
  return Type.Unsafe<Static<T> | null>(
    isPlain
      ? { ...schema, type: [type, 'null'], ...(values === undefined ? {} : { enum: [...values, null] }) }
      : { anyOf: [schema, { type: 'null' }] },
  )
}

const described = (description: string | undefined) => (description === undefined ? {} : { description })
const text = (pattern: string, example: string) => (description?: string) =>
  Type.String({ pattern, examples: [example], ...described(description) })

export const requestId = text('^req_[0-7][0-9A-HJKMNP-TV-Z]{25}$', 'req_01KAJ6Q3ZV8M4T9XW2C5E7G1HN')
export const visitorId = text('^pv_[0-9A-Za-z]{20}$', 'pv_7Hq2LmZx90TbVcRk4WsE')
export const ruleId = text('^rul_[0-9A-Za-z]{20}$', 'rul_3fJ8sKd02LqPzX7mNbVt')
export const listId = text('^lst_[0-9A-Za-z]{20}$', 'lst_9aQw3eRt5yUi7oPl1kJh')
export const webhookId = text('^(whk|wh)_[0-9A-Za-z]{20}$', 'wh_8uJm0kIo2lPq4aSd6fGh')
export const deliveryId = text('^dlv_[0-9A-Z]{26}$', 'dlv_01KAJ6Q3ZV8M4T9XW2C5E7G1HN')
export const eventId = text('^evt_[0-9A-Z]{26}$', 'evt_01KAJ6Q3ZV8M4T9XW2C5E7G1HN')
export const alertId = text('^alr_[0-9A-Za-z]{20}$', 'alr_1qAz3wSx5eDc7rFv9tGb')
export const moment = (description?: string) =>
  Type.String({ format: 'date-time', examples: ['2026-11-20T18:04:05.123Z'], ...described(description) })
export const words = (description?: string) => Type.String(described(description))
export const flag = (description?: string) => Type.Boolean(described(description))
export const countOf = (description?: string) => Type.Integer({ minimum: 0, ...described(description) })
export const share = (description?: string) => Type.Number({ minimum: 0, maximum: 1, ...described(description) })
export const countsByName = (description: string) =>
  Type.Unsafe<Record<string, number>>({ type: 'object', additionalProperties: { type: 'integer' }, description })

/** Of an answer that has a secret and is given once more under its Idempotency-Key. */
export const REPLAYED = Type.Optional(flag('true in a repetition under the same Idempotency-Key.'))

/** What a deletion answers: `{deleted: true, <resource>Id}`. */
export const deleted = <Name extends string, T extends TSchema>(name: Name, id: T) =>
  Type.Object({ deleted: Type.Literal(true), [name]: id } as { deleted: ReturnType<typeof isTrue> } & Record<Name, T>)
const isTrue = () => Type.Literal(true)

/** A page by cursor. */
export const cursorPage = <T extends TSchema>(item: T) =>
  Type.Object({
    data: Type.Array(item),
    hasMore: flag('Whether there is a further page.'),
    nextCursor: orNull(words('Pass it as `cursor` for the next page; null at the end.')),
  })
/** A page by offset. */
export const offsetPage = <T extends TSchema>(item: T) =>
  Type.Object({ data: Type.Array(item), total: countOf('How many there are in all.') })

/** Query parameters that mean the same everywhere. */
export const PAGE_MEMBERS: Readonly<Record<string, Fragment>> = {
  limit: { description: 'How many at most.', default: 20 },
  offset: { description: 'How many to skip.', default: 0 },
  cursor: { description: '`nextCursor` of the page before, with the same filters.' },
  before: { description: 'Only what happened before this time, exclusive.', format: 'date-time' },
  after: { description: 'Only what happened at or after this time.', format: 'date-time' },
}
