// Conditions on a value inside a column of JSON texts (tag.*). It has no declared type and nothing is coerced: the engine's
// extractors would turn 5 into '5', so each is asked only where the value has the type.

import type { ConditionOperator, Literal } from '../domain/rule.ts'
import type { Column } from '../events/fields.ts'
import type { SqlParams } from './to-sql-params.ts'
import { among, doubleBits, doubleSql, FALSE } from './to-sql-parts.ts'

const NUMBERS = "('Int64', 'UInt64', 'Double')"

export interface JsonSql {
  readonly present: string
  readonly isText: string
  /** The text, where `isText`. */
  readonly text: string
  /** Where the value is missing, false; null: the operator is none of a comparison. */
  compare(operator: ConditionOperator, literals: readonly Literal[]): string | null
}

export function jsonSql({ sql, keys }: Extract<Column, { kind: 'json' }>, params: SqlParams): JsonSql {
  const place = [sql, ...keys.map((key) => params.add('String', key))].join(', ')
  const type = `JSONType(${place})`
  const isText = `${type} = 'String'`
  const text = `JSONExtractString(${place})`
  return {
    present: `${type} != 'Null'`,
    isText,
    text,
    compare(operator, literals) {
      const [literal] = literals
      switch (operator) {
        case 'equals':
        case 'in':
          return oneOf(type, place, literals)
        case 'contains':
          return literal === undefined ? FALSE : holds(literal)
        case 'gt':
        case 'gte':
        case 'lt':
        case 'lte':
          if (typeof literal !== 'number') return FALSE
          return `(${type} IN ${NUMBERS} AND JSONExtractFloat(${place}) ${SIGNS[operator]} ${doubleSql(literal, params)})`
        default:
          return null
      }
    },
  }

  /** A substring of a text, or a member of an array. */
  function holds(literal: Literal): string {
    // By place and not as raw texts: the engine writes 1e20 as an integer that it cannot read again.
    const member = oneOf(`JSONType(${place}, i)`, `${place}, i`, [literal])
    const inArray = `(${type} = 'Array' AND arrayExists(i -> ${member}, range(1, JSONLength(${place}) + 1)))`
    if (typeof literal !== 'string') return inArray
    const inText = literal === '' ? isText : `${isText} AND position(${text}, ${params.add('String', literal)}) > 0`
    return `(${inText} OR ${inArray})`
  }

  /** Whether the value at `at`, whose type is `ofType`, is one of the literals. */
  function oneOf(ofType: string, at: string, literals: readonly Literal[]): string {
    const terms: string[] = []
    const texts = literals.filter((one) => typeof one === 'string')
    if (texts.length > 0)
      terms.push(`(${ofType} = 'String' AND ${among(`JSONExtractString(${at})`, 'String', texts, params)})`)
    // By their bits, and with 0 added so that there is one zero: as text a double may be read as its neighbour.
    const bits = literals.filter((one) => typeof one === 'number').map((one) => doubleBits(one))
    if (bits.length > 0) {
      terms.push(
        `(${ofType} IN ${NUMBERS} AND ${among(`reinterpretAsUInt64(JSONExtractFloat(${at}) + 0)`, 'UInt64', bits, params)})`,
      )
    }
    for (const flag of [true, false]) {
      if (literals.includes(flag)) terms.push(`(${ofType} = 'Bool' AND ${flag ? '' : 'NOT '}JSONExtractBool(${at}))`)
    }
    if (terms.length === 0) return FALSE
    return terms.length === 1 ? (terms[0] as string) : `(${terms.join(' OR ')})`
  }
}

const SIGNS = { gt: '>', gte: '>=', lt: '<', lte: '<=' } as const
