// A condition tree as a ClickHouse expression over the events table, true for exactly the events that the compiled rules
// match. The text is made of the registry's expressions and typed parameters, never of a byte of anybody's text.

import { canonicalIp } from '../domain/ip.ts'
import { foldListName } from '../domain/list.ts'
import type { ConditionGroup, ConditionOperator, Leaf, Literal } from '../domain/rule.ts'
import { type Column, field } from '../events/fields.ts'
import { parseDatetime } from '../lib/datetime.ts'
import { addressText } from './to-sql-address.ts'
import { jsonSql } from './to-sql-json.ts'
import { addressListSql, type SqlListTable, textListSql } from './to-sql-lists.ts'
import type { SqlParams } from './to-sql-params.ts'
import { among, FALSE, not, numbers, TRUE, wholeBound } from './to-sql-parts.ts'

export interface SqlContext {
  readonly params: SqlParams
  /** False makes every `scores.*` missing (a plan without scores). */
  readonly scores: boolean
  /** Where the entries of a list are, by name in lower case; null when there is no such list. */
  readonly lists: (name: string) => SqlListTable | null
}

/** A UInt8 expression, never NULL. `1` and `0` when the events make no difference. */
export function conditionSql(group: ConditionGroup, context: SqlContext): string {
  const isAnd = group.operator === 'AND'
  const [decides, neutral] = isAnd ? [FALSE, TRUE] : [TRUE, FALSE]
  const terms = new Set<string>()
  for (const item of group.rules) {
    const term = 'rules' in item ? conditionSql(item, context) : leafSql(item, context)
    if (term === decides) return decides
    if (term !== neutral) terms.add(term)
  }
  if (terms.size === 0) return neutral
  const [only] = terms
  return terms.size === 1 && only !== undefined ? only : `(${[...terms].join(isAnd ? ' AND ' : ' OR ')})`
}

/** A missing value meets nothing but `exists: false`. */
function leafSql(leaf: Leaf, context: SqlContext): string {
  const { operator, value } = leaf
  const found = field(leaf.field)
  const hidden = found === null || (found.category === 'scores' && !context.scores)
  if (hidden) return operator === 'exists' && value === false ? TRUE : FALSE
  const { column } = found
  const present = presence(column, context)
  if (operator === 'exists') return value === true ? present : value === false ? not(present) : FALSE
  // An expression that can only hold where there is a value needs no question for it, a negation does.
  const positive = positiveOf(operator)
  const held = comparisonSql(column, positive, value, context)
  if (held === null) return FALSE
  if (positive !== operator) return both(present, not(held))
  return column.kind === 'number' ? both(present, held) : held
}

const both = (a: string, b: string): string => {
  if (a === FALSE || b === FALSE) return FALSE
  if (a === TRUE) return b
  return b === TRUE ? a : `(${a} AND ${b})`
}

const positiveOf = (operator: ConditionOperator): ConditionOperator =>
  operator === 'not_equals' ? 'equals' : operator === 'not_in' ? 'in' : operator

function presence(column: Column, context: SqlContext): string {
  if (column.kind === 'json') return jsonSql(column, context.params).present
  return ('present' in column ? column.present : null) ?? TRUE
}

/** Whether the value meets the condition; where it is missing, only for numbers may this be true. null: nothing can. */
function comparisonSql(
  column: Column,
  operator: ConditionOperator,
  value: Leaf['value'],
  context: SqlContext,
): string | null {
  if (operator === 'in' && typeof value === 'string') {
    const table = context.lists(foldListName(value))
    // A list that is gone makes the negation false as well.
    return table === null ? null : listedSql(column, table, context.params)
  }
  const literals: readonly Literal[] | null = Array.isArray(value)
    ? operator === 'in'
      ? (value as readonly Literal[])
      : null
    : operator === 'in'
      ? null
      : [value as Literal]
  if (literals === null) return null
  const { params } = context
  switch (column.kind) {
    case 'text':
      return textSql(column.sql, operator, literals, params)
    case 'address':
      return addressSql(column.sql, operator, literals, params)
    case 'texts':
      return operator === 'contains'
        ? // Not `has`, which never finds the empty text in an array of LowCardinality.
          anyOf(literals.filter(isText), (text) => `arrayExists(x -> x = ${param(text)}, ${column.sql})`)
        : null
    case 'flag':
      return operator === 'equals'
        ? anyOf(literals, (one) => (one === true ? column.sql : one === false ? not(column.sql) : FALSE))
        : null
    case 'number':
      return numberSql(column, operator, literals, params)
    case 'moment':
      return momentSql(column.sql, operator, literals, params)
    case 'json':
      return jsonSql(column, params).compare(operator, literals)
  }

  function param(text: string): string {
    return params.add('String', text)
  }
}

const isText = (value: Literal): value is string => typeof value === 'string'
const anyOf = <T>(values: readonly T[], sql: (value: T) => string): string =>
  values.length === 1 ? sql(values[0] as T) : FALSE

function textSql(
  sql: string,
  operator: ConditionOperator,
  literals: readonly Literal[],
  params: SqlParams,
): string | null {
  // No value is the empty text: where it is stored, there is none.
  const texts = literals.filter(isText)
  if (operator === 'equals' || operator === 'in')
    return among(
      sql,
      'String',
      texts.filter((text) => text !== ''),
      params,
    )
  const [part] = texts
  if (operator !== 'contains') return null
  if (part === undefined) return FALSE
  return part === '' ? `${sql} != ''` : `position(${sql}, ${params.add('String', part)}) > 0`
}

function addressSql(
  sql: string,
  operator: ConditionOperator,
  literals: readonly Literal[],
  params: SqlParams,
): string | null {
  const texts = literals.filter(isText)
  if (operator === 'equals' || operator === 'in') {
    // Addresses are compared as texts, and there is one text for each.
    const addresses = texts.filter((text) => canonicalIp(text) === text)
    return among(
      sql,
      'IPv6',
      addresses.map((text) => (text.includes(':') ? text : `::ffff:${text}`)),
      params,
    )
  }
  if (operator !== 'contains') return null
  const [part] = texts
  return part === undefined ? FALSE : `position(${addressText(sql)}, ${params.add('String', part)}) > 0`
}

function numberSql(
  { sql, scale }: Extract<Column, { kind: 'number' }>,
  operator: ConditionOperator,
  literals: readonly Literal[],
  params: SqlParams,
): string | null {
  const values = literals.filter((one) => typeof one === 'number')
  if (operator === 'equals' || operator === 'in') {
    const wholes = values.flatMap((one) => wholeBound('equals', one, scale) ?? [])
    return among(sql, 'Int64', wholes.filter(Number.isFinite), params)
  }
  const [value] = values
  if (value === undefined) return FALSE
  if (operator !== 'gt' && operator !== 'gte' && operator !== 'lt' && operator !== 'lte') return null
  return numbers(sql, operator, wholeBound(operator, value, scale), params)
}

function momentSql(
  sql: string,
  operator: ConditionOperator,
  literals: readonly Literal[],
  params: SqlParams,
): string | null {
  const [text] = literals.filter(isText)
  const at = text === undefined ? null : parseDatetime(text)
  if (at === null) return FALSE
  const ms = `toUnixTimestamp64Milli(${sql})`
  const given = () => params.add('Int64', at)
  switch (operator) {
    case 'equals':
      return `${ms} = ${given()}`
    case 'gt':
      return `${ms} > ${given()}`
    case 'gte':
      return `${ms} >= ${given()}`
    case 'lt':
      return `${ms} < ${given()}`
    case 'lte':
      return `${ms} <= ${given()}`
    default:
      return null
  }
}

function listedSql(column: Column, table: SqlListTable, params: SqlParams): string {
  switch (column.kind) {
    case 'text':
      return textListSql(column.sql, column.hash, table, params)
    case 'address':
      return addressListSql(column.sql, column.hash, table, params)
    case 'json': {
      const { isText: textual, text } = jsonSql(column, params)
      return both(textual, textListSql(text, null, table, params))
    }
    default:
      return FALSE
  }
}
