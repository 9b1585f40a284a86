// Every operator against every kind of value, one line per case in truth-table.tsv, through both compiled forms, SQL and the
// interpreter, alone and at every depth of nesting.

import { readFileSync } from 'node:fs'
import t from 'tap'
import type { Facts, StoredEvent } from '../../src/domain/event.ts'
import type { ConditionGroup, Leaf } from '../../src/domain/rule.ts'
import { must } from '../../src/lib/must.ts'
import type { ListSource } from '../../src/records/list-source.ts'
import { compileRules } from '../../src/rules/codegen.ts'
import { createLayout, type FieldVector } from '../../src/rules/predicate.ts'
import { sized } from '../helpers/depth.ts'
import { ALWAYS, FACTS, LISTS, member, NEVER, signals, UNDECIDED } from '../helpers/facts.ts'
import { matches } from '../helpers/interpreter.ts'
import { openSqlEngine } from './sql-engine.ts'

const listSource: ListSource = {
  async find(_workspace, _env, name) {
    const entries = LISTS[name.toLowerCase()]
    return entries === undefined ? null : { id: name, name, type: 'visitor', version: 1, entryCount: entries.length }
  },
  async *values(_workspace, _env, listId) {
    yield must(LISTS[listId])
  },
}

interface Case {
  readonly leaf: Leaf
  readonly actual: string
  readonly expected: boolean
}

// The table is data, not code: the build does not copy it.
const TABLE = new URL('../../../test/rules/truth-table.tsv', import.meta.url)

function readTable(): Case[] {
  const lines = readFileSync(TABLE, 'utf8').split('\n')
  return lines
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => {
      const [field, operator, value, actual, expected] = line.split('\t') as [
        string,
        Leaf['operator'],
        string,
        string,
        string,
      ]
      return {
        leaf: { field, operator, value: JSON.parse(value) as Leaf['value'] },
        actual,
        expected: expected === 'true',
      }
    })
}

const SPECIAL: Readonly<Record<string, unknown>> = { NaN: Number.NaN, Infinity: Number.POSITIVE_INFINITY, '-0': -0 }

/** FACTS with the text of the table's column `actual` in the place of the field. */
function factsWith(field: string, actual: string): Facts {
  const tag = (value: unknown, missing: boolean): Facts['tag'] => {
    if (field === 'tag.k') return missing ? {} : { k: value }
    return missing ? { a: {} } : { a: { b: value } }
  }
  if (actual === 'missing') return { ...FACTS, tag: tag(null, true) }
  const value = (Object.hasOwn(SPECIAL, actual) ? SPECIAL[actual] : JSON.parse(actual)) as never
  switch (field) {
    case 'visitor.totalVisits':
      return { ...FACTS, visitor: { ...FACTS.visitor, totalVisits: value } }
    case 'ip.country':
      return { ...FACTS, ip: { ...FACTS.ip, country: value } }
    case 'ip.blocklists':
      return { ...FACTS, ip: { ...FACTS.ip, blocklists: value } }
    case 'ip.asn':
      return { ...FACTS, ip: { ...FACTS.ip, asn: value } }
    case 'velocity.ip.visitors.24h':
      return { ...FACTS, velocity: { ...must(FACTS.velocity), [field.slice('velocity.'.length)]: value } }
    case 'scores.abuse':
      return { ...FACTS, scores: { ...FACTS.scores, abuse: value } }
    case 'firstSeenAt':
      return { ...FACTS, firstSeenAt: value === null ? value : (Date.parse(value) as never) }
    case 'signals.tor':
    case 'signals.tor.detected':
      return {
        ...FACTS,
        signals: signals(value === 'detected' ? ['tor'] : [], value === 'undetermined' ? ['tor'] : []),
      }
    case 'visitorId':
    case 'linkedId':
      return { ...FACTS, [field]: value }
    default:
      return { ...FACTS, tag: tag(value, false) }
  }
}

/** Conditions that hold exactly when the leaf does, from no nesting to the deepest that is allowed. */
function wrapped(leaf: Leaf): ConditionGroup[] {
  const bare: ConditionGroup = { operator: 'AND', rules: [leaf] }
  const two: ConditionGroup = { operator: 'OR', rules: [NEVER, bare] }
  return [
    bare,
    { operator: 'OR', rules: [leaf] },
    two,
    { operator: 'AND', rules: [ALWAYS, two] },
    {
      operator: 'OR',
      rules: [NEVER, { operator: 'AND', rules: [leaf, ALWAYS, { operator: 'OR', rules: [leaf, bare] }] }],
    },
  ]
}

const table = readTable()

t.test('the table covers every operator with a present and a missing value, holding and not', async (t) => {
  for (const operator of ['equals', 'not_equals', 'gt', 'gte', 'lt', 'lte', 'in', 'not_in', 'contains', 'exists']) {
    const cases = table.filter((one) => one.leaf.operator === operator)
    t.ok(cases.some((one) => one.expected) && cases.some((one) => !one.expected), operator)
    t.ok(
      cases.some((one) => one.actual === 'null' || one.actual === 'missing'),
      `${operator} on nothing`,
    )
  }
})

for (const evaluator of ['interpreter', 'closures', 'generated'] as const) {
  t.test(`${evaluator}: every line of the table`, async (t) => {
    let wrong = 0
    for (const { leaf, actual, expected } of table) {
      const facts = factsWith(leaf.field, actual)
      const groups = wrapped(leaf)
      let answers: boolean[]
      if (evaluator === 'interpreter') {
        answers = groups.map((group) => matches(group, facts, { scores: true, member }))
      } else {
        const layout = createLayout({ scores: true })
        const match = compileRules(groups, { layout, member, mode: evaluator })
        const values: FieldVector = []
        layout.fill(facts, values)
        const hits = new Int32Array(groups.length)
        const found = hits.subarray(0, match(values, hits))
        answers = groups.map((_, i) => found.includes(i))
      }
      if (answers.every((answer) => answer === expected)) continue
      wrong++
      t.fail(JSON.stringify({ ...leaf, actual, expected, answers }))
    }
    t.equal(wrong, 0, `${table.length} lines`)
  })
}

const LEAVES_PER_QUERY = 20
/** The bare one and the deepest where time is short. */
const FORMS_MAX = sized({ quick: 2, usual: 5, long: 5 })
const formsInSql = (leaf: Leaf): ConditionGroup[] =>
  wrapped(leaf).filter((_, i, { length }) => i === 0 || i > length - FORMS_MAX)

/** What no event has, and no row can hold. */
const isStorable = ({ leaf: { field }, actual }: Case): boolean =>
  field === 'visitor.totalVisits'
    ? /^\d+$/.test(actual)
    : (field !== 'visitorId' && field !== 'firstSeenAt') || !['null', '""'].includes(actual)

t.test('SQL: every line of the table that a row can hold', async (t) => {
  const engine = await openSqlEngine(listSource, Object.keys(LISTS))
  t.teardown(() => engine.close())
  const lines = table.filter(isStorable)
  t.ok(lines.length > table.length * 0.9, `${lines.length} of ${table.length} lines`)
  const actuals = [...new Set(lines.map(({ leaf, actual }) => `${leaf.field}\t${actual}`))]
  const events = actuals.map((one): StoredEvent => {
    const [field, actual] = one.split('\t') as [string, string]
    return { ...factsWith(field, actual), ...UNDECIDED }
  })
  await engine.insert('table', events)
  // Most leaves stand in several lines: each is asked for once, of all events.
  const places = new Map(actuals.map((one, place) => [one, place]))
  const byLeaf = new Map<string, Case[]>()
  for (const one of lines) {
    const name = JSON.stringify(one.leaf)
    byLeaf.set(name, [...(byLeaf.get(name) ?? []), one])
  }
  const leaves = [...byLeaf.values()]
  let wrong = 0
  for (let from = 0; from < leaves.length; from += LEAVES_PER_QUERY) {
    const some = leaves.slice(from, from + LEAVES_PER_QUERY)
    const found = await engine.matching(
      'table',
      some.flatMap(([first]) => formsInSql(must(first).leaf)),
    )
    const forms = found.length / some.length
    for (const [i, cases] of some.entries()) {
      const matched = found.slice(i * forms, (i + 1) * forms)
      for (const { leaf, actual, expected } of cases) {
        const place = must(places.get(`${leaf.field}\t${actual}`))
        const answers = matched.map((those) => those.includes(place))
        if (answers.every((answer) => answer === expected)) continue
        wrong++
        t.fail(JSON.stringify({ ...leaf, actual, expected, answers }))
      }
    }
  }
  t.equal(wrong, 0, `${lines.length} lines`)
})

t.test('scores read as missing where the plan has none', async (t) => {
  const rules: ConditionGroup[] = (['gte', 'not_equals', 'exists'] as const).map((operator) => ({
    operator: 'AND',
    rules: [{ field: 'scores.suspect', operator, value: operator === 'exists' ? false : -1 }],
  }))
  for (const [scores, expected] of [
    [true, [0, 1]],
    [false, [2]],
  ] as const) {
    for (const mode of ['closures', 'generated'] as const) {
      const layout = createLayout({ scores })
      const values: FieldVector = []
      const hits = new Int32Array(3)
      const match = compileRules(rules, { layout, mode })
      layout.fill(FACTS, values)
      t.same(Array.from(hits.subarray(0, match(values, hits))), expected, `${mode}, scores ${scores}`)
    }
  }
})
