// The SQL of conditions holds no byte of anybody's text, and asks for no more than it must.

import t from 'tap'
import { refuseStatement } from '../../src/clickhouse/chdb-guard.ts'
import type { ConditionGroup, ConditionOperator, Leaf } from '../../src/domain/rule.ts'
import { FIELDS, OPERATORS_BY_TYPE } from '../../src/events/fields.ts'
import { conditionSql } from '../../src/rules/to-sql.ts'
import type { SqlListTable } from '../../src/rules/to-sql-lists.ts'
import { openSqlParams } from '../../src/rules/to-sql-params.ts'
import { wholeBound } from '../../src/rules/to-sql-parts.ts'
import { rng, testSeed } from '../helpers/rng.ts'
import { HOSTILE, randomEvent, randomRule } from '../helpers/stored-events.ts'

const TABLE: SqlListTable = {
  snapshotId: 'MARKER',
  type: 'ip',
  v4: { fromZero: false },
  v6: { fromZero: true },
  longPrefixes: [96, 127],
}

function compile(group: ConditionGroup, scores = true) {
  const params = openSqlParams()
  const names: string[] = []
  const sql = conditionSql(group, {
    params,
    scores,
    lists: (name) => {
      names.push(name)
      return TABLE
    },
  })
  return { sql, values: params.values, names }
}
const one = (leaf: Leaf): ConditionGroup => ({ operator: 'AND', rules: [leaf] })

/** Everything of the SQL that is neither a placeholder nor a text constant of the compiler's own. */
const bare = (sql: string): string =>
  sql
    .replace(/\{p\d+:(?:String|Int64|UInt64|IPv6|Array\((?:String|Int64|UInt64|IPv6)\))\}/g, '?')
    .replace(/'(?:String|Int64|UInt64|Double|Bool|Null|Array|0|\.|:|::|::ffff:|UTC)?'/g, '?')

t.test('no value, key or list name is in the text, whatever it is', async (t) => {
  const mark = 'MARKER'
  for (const text of [mark, ...HOSTILE]) {
    const leaves: Leaf[] = FIELDS.flatMap((of) =>
      of.operators.flatMap((operator): Leaf[] => {
        if (operator === 'exists') return []
        if (of.type === 'number')
          return [{ field: of.path, operator, value: operator.endsWith('in') ? [424_242] : 424_242 }]
        if (of.type !== 'string' && of.type !== 'strings') return []
        const value = operator === 'in' || operator === 'not_in' ? [text, `${text}x`] : text
        const lists: Leaf[] = operator.endsWith('in') && of.list ? [{ field: of.path, operator, value: text }] : []
        return [{ field: of.path, operator, value }, ...lists]
      }),
    )
    for (const operator of OPERATORS_BY_TYPE.any) {
      const values: Leaf['value'][] = operator === 'exists' ? [true] : [text, 424_242.5, [text, 7, true], true]
      for (const value of values) leaves.push({ field: `tag.${text.replaceAll('.', '')}.${mark}`, operator, value })
    }
    const { sql } = compile({ operator: 'OR', rules: leaves })
    const rest = bare(sql)
    t.notMatch(rest, /MARKER|424242|[\\"`;#$?]{2}|--|\/\*/, encodeURIComponent(text))
    t.match(rest.replace(/[?]/g, ''), /^[\w\s(),.=!<>[\]+*/-]*$/, 'only the compiler’s own signs')
    t.equal(refuseStatement(`SELECT ${sql} FROM events`, true), null, 'the embedded engine’s front lets it through')
  }
})

t.test('random rules compile to the same vocabulary', async (t) => {
  const seed = testSeed()
  t.comment(`seed ${seed}`)
  const r = rng(seed)
  const events = Array.from({ length: 20 }, (_, i) => randomEvent(r, 'w', i))
  for (let i = 0; i < 500; i++) {
    const rest = bare(compile(randomRule(r, events)).sql).replace(/[?]/g, '')
    if (!/^[\w\s(),.=!<>[\]+*/-]*$/.test(rest)) t.fail(rest)
  }
  t.pass('500 rules')
})

t.test('a score is compared in the fixed point it is stored in', async (t) => {
  const score = (operator: ConditionOperator, value: number) => compile(one({ field: 'scores.abuse', operator, value }))
  t.same(score('gt', 0.8), { sql: 'score_abuse >= {p0:Int64}', values: { p0: 8_001 }, names: [] })
  t.same(score('gte', 0.8).values, { p0: 8_000 })
  t.same(score('lt', 0.8).values, { p0: 7_999 })
  t.same(score('lte', 0.80005).values, { p0: 8_000 })
  t.equal(score('equals', 0.80005).sql, '0', 'no event has that')
  t.equal(score('gt', 1e300).sql, '0')
  t.equal(score('lt', 1e300).sql, '1')
  t.equal(compile(one({ field: 'scores.abuse', operator: 'gt', value: 0 }), false).sql, '0', 'a plan without scores')
})

t.test('the bound of a number is the one that division by the scale gives', async (t) => {
  const seed = testSeed()
  t.comment(`seed ${seed}`)
  const r = rng(seed)
  for (let i = 0; i < 20_000; i++) {
    const scale = r.pick([1, 100, 10_000])
    const whole = r.int(10_001)
    const value = (r.int(10_001) + r.pick([0, 0, 0.5, 1e-9, -1e-9])) / scale
    const actual = whole / scale
    const bound = (operator: 'gt' | 'gte' | 'lt' | 'lte' | 'equals') => wholeBound(operator, value, scale) ?? Number.NaN
    const agree =
      actual > value === whole >= bound('gt') &&
      actual >= value === whole >= bound('gte') &&
      actual < value === whole <= bound('lt') &&
      actual <= value === whole <= bound('lte') &&
      (actual === value) === (whole === bound('equals'))
    if (!agree) t.fail(`${actual} against ${value}, scale ${scale}`)
  }
  t.pass('20,000 numbers')
})

t.test('what makes no difference is left out', async (t) => {
  const always: Leaf = { field: 'timestamp', operator: 'exists', value: true }
  const never: Leaf = { field: 'timestamp', operator: 'exists', value: false }
  const bot: Leaf = { field: 'signals.bot', operator: 'equals', value: true }
  t.equal(compile({ operator: 'AND', rules: [always, bot, bot] }).sql, 'sig_bot')
  t.equal(compile({ operator: 'OR', rules: [never, bot] }).sql, 'sig_bot')
  t.equal(compile({ operator: 'OR', rules: [always, bot] }).sql, '1')
  t.equal(compile({ operator: 'AND', rules: [never, bot] }).sql, '0')
})
