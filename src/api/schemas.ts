// Pieces of schemas that several resources share.

import { Type } from '../domain/schema.ts'

export const PAGE_LIMIT_DEFAULT = 20
const PAGE_LIMIT_MAX = 100
const OFFSET_MAX = 10_000
/** A page of items that may be long ends with the one that passes it. */
export const PAGE_CHARS_MAX = 1_048_576

/** For pages by offset; cursors have the same limit. */
export const PAGE_LIMIT = Type.Optional(Type.Integer({ minimum: 1, maximum: PAGE_LIMIT_MAX }))
export const OFFSET = Type.Optional(Type.Integer({ minimum: 0, maximum: OFFSET_MAX }))
