// What SQL of conditions is put together from: constants, sets of values, and bounds for numbers stored as whole ones.

import { storedSql } from './to-sql-lists.ts'
import type { Scalar, SqlParams } from './to-sql-params.ts'

export const TRUE = '1'
export const FALSE = '0'

/** What arrays of literals may have to stay in the query. They travel in its address, encoded up to twelvefold. */
const INLINE_VALUES_MAX = 100
const INLINE_CHARS_MAX = 1_024

export const not = (sql: string): string => (sql === TRUE ? FALSE : sql === FALSE ? TRUE : `NOT (${sql})`)

/** Whether the value of `sql` is one of those given. */
export function among(
  sql: string,
  type: 'String' | 'Int64' | 'UInt64' | 'IPv6',
  values: readonly Scalar[],
  params: SqlParams,
): string {
  const distinct = [...new Set(values)]
  const [only] = distinct
  if (only === undefined) return FALSE
  if (distinct.length === 1) return `${sql} = ${params.add(type, only)}`
  const { store } = params
  if (store !== null && (type === 'String' || type === 'UInt64') && isLarge(distinct)) {
    return storedSql(sql, type, params.add('String', store(type, distinct.map(String))))
  }
  return `${sql} IN ${params.add(`Array(${type})`, distinct)}`
}

const isLarge = (values: readonly Scalar[]): boolean =>
  values.length > INLINE_VALUES_MAX ||
  values.reduce<number>((sum, one) => sum + String(one).length, 0) > INLINE_CHARS_MAX

export type SqlComparison = 'gt' | 'gte' | 'lt' | 'lte'

/** `value` is compared as `whole / scale`: the bound for `whole`, or infinity; null when no whole number is equal. */
export function wholeBound(operator: SqlComparison | 'equals', value: number, scale: number): number | null {
  const about = Math.round(value * scale)
  if (!Number.isSafeInteger(about)) {
    if (operator === 'equals') return null
    return value > 0 ? Number.POSITIVE_INFINITY : Number.NEGATIVE_INFINITY
  }
  // Dividing is what the reader of the value did, so rounding falls out the same way; one of these is always the bound.
  const near = [about - 2, about - 1, about, about + 1, about + 2]
  switch (operator) {
    case 'equals':
      return near.find((whole) => whole / scale === value) ?? null
    case 'gt':
      return near.find((whole) => whole / scale > value) ?? null
    case 'gte':
      return near.find((whole) => whole / scale >= value) ?? null
    case 'lt':
      return near.findLast((whole) => whole / scale < value) ?? null
    case 'lte':
      return near.findLast((whole) => whole / scale <= value) ?? null
  }
}

/** `bound` is the least whole number that meets gt and gte, the greatest that meets lt and lte. */
export function numbers(sql: string, operator: SqlComparison, bound: number | null, params: SqlParams): string {
  if (bound === null) return FALSE
  const isLower = operator === 'gt' || operator === 'gte'
  if (!Number.isFinite(bound)) return bound > 0 === isLower ? FALSE : TRUE
  return `${sql} ${isLower ? '>=' : '<='} ${params.add('Int64', bound)}`
}

/** A double by its bits: read as text it may come out as its neighbour. */
export const doubleSql = (value: number, params: SqlParams): string =>
  `reinterpretAsFloat64(${params.add('UInt64', doubleBits(value))})`

const view = new DataView(new ArrayBuffer(8))
/** Of -0 those of 0, which is the same number. */
export function doubleBits(value: number): bigint {
  view.setFloat64(0, value + 0)
  return view.getBigUint64(0)
}
