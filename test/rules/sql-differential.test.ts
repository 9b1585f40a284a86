// SQL against the compiled rules: random rules over random events that went through the row format, and what was found that
// way before. A difference is shrunk to a small rule and one event. The same run again: SEED=n; longer: npm run fuzz:rules.

import { readdirSync, readFileSync } from 'node:fs'
import t from 'tap'
import type { StoredEvent } from '../../src/domain/event.ts'
import type { ConditionGroup, Leaf } from '../../src/domain/rule.ts'
import { FIELDS } from '../../src/events/fields.ts'
import { sized } from '../helpers/depth.ts'
import { FACTS, UNDECIDED } from '../helpers/facts.ts'
import { rng, testSeed } from '../helpers/rng.ts'
import { LIST_ENTRIES, listSource, randomEvent, randomRule } from '../helpers/stored-events.ts'
import { compiled, fuzzRules, interpreted, reversed } from './fuzz-rules.ts'
import { openSqlEngine } from './sql-engine.ts'

const PAIRS = sized({ quick: 60, usual: 2_400, long: 20_000 })
const FIELDS_PER_QUERY = 12
/** Every eighth field where time is short. */
const FIELDS_STEP = sized({ quick: 8, usual: 1, long: 1 })
const FORMS = sized({ quick: 5, usual: 80, long: 80 })
const SEED = testSeed()
/** One find each: the condition, what differs of an event, and the answer. Read where they are written. */
const REGRESSIONS = new URL('../../../test/rules/regressions/', import.meta.url)

interface Regression {
  readonly found: string
  readonly conditions: ConditionGroup
  readonly event: Partial<StoredEvent>
  readonly expected: boolean
}

// A machine that does other things as well takes five times as long as it needs alone.
t.setTimeout(900_000)
const engine = await openSqlEngine(listSource, Object.keys(LIST_ENTRIES))
t.teardown(() => engine.close())

t.test('what was found before stays right', async (t) => {
  const files = readdirSync(REGRESSIONS).sort()
  const cases = files.map((file) => JSON.parse(readFileSync(new URL(file, REGRESSIONS), 'utf8')) as Regression)
  t.ok(cases.length >= 3)
  const events = cases.map(({ event }): StoredEvent => ({ ...FACTS, ...UNDECIDED, ...event }))
  await engine.insert('regressions', events)
  const rules = cases.map(({ conditions }) => conditions)
  const inSql = await engine.matching('regressions', rules)
  const answers = {
    interpreter: interpreted(rules, events, true),
    closures: compiled('closures')(rules, events, true),
    'generated code': compiled('generated')(rules, events, true),
    SQL: inSql,
  }
  for (const [i, { expected, found }] of cases.entries()) {
    for (const [who, places] of Object.entries(answers)) {
      t.equal(places[i]?.includes(i), expected, `${files[i]}, ${who}: ${found}`)
    }
  }
})

t.test(
  `closures, generated code and SQL agree with the interpreter on ${PAIRS} rules, each over a set of events`,
  async (t) => {
    t.comment(`seed ${SEED}`)
    const { pairs, held, answers, finding } = await fuzzRules(engine, SEED, PAIRS)
    if (finding !== null) {
      t.fail(`${finding.who} differ from the interpreter after ${pairs} rules`, { seed: SEED, ...finding })
      return
    }
    t.equal(pairs, PAIRS)
    t.ok(held > answers / 20 && held < answers * 0.95, `${held} of ${answers} held: both answers are exercised`)
  },
)

t.test('the form of a rule means nothing to SQL: order, and not_in as the negation of in', async (t) => {
  t.comment(`seed ${SEED}`)
  const r = rng(SEED + 1)
  const events = Array.from({ length: 60 }, (_, i) => randomEvent(r, 'forms', i))
  await engine.insert('forms', events)
  const rules = Array.from({ length: FORMS }, () => randomRule(r, events))
  t.same(await engine.matching('forms', rules.map(reversed)), await engine.matching('forms', rules), 'order')

  const fields = FIELDS.filter(({ operators, type }) => operators.includes('not_in') && type !== 'any').filter(
    (_, i) => i % FIELDS_STEP === 0,
  )
  const formsOf = ({ path: field, type }: (typeof fields)[number]): ConditionGroup[] => {
    const value = type === 'number' ? [0, 1, 0.5] : ['a', 'CZ', '203.0.113.9', 'Windows']
    const leaves: Leaf[] = [
      { field, operator: 'in', value },
      { field, operator: 'not_in', value },
      { field, operator: 'exists', value: false },
    ]
    return leaves.map((leaf) => ({ operator: 'AND', rules: [leaf] }))
  }
  for (let from = 0; from < fields.length; from += FIELDS_PER_QUERY) {
    const some = fields.slice(from, from + FIELDS_PER_QUERY)
    const found = await engine.matching('forms', some.flatMap(formsOf))
    for (const [i, { path }] of some.entries()) {
      const [inside, outside, missing] = found.slice(3 * i)
      const all = [...(inside ?? []), ...(outside ?? []), ...(missing ?? [])].sort((a, b) => a - b)
      t.same(
        all,
        events.map((_, i) => i),
        `${path}: every event is inside, outside or without a value`,
      )
    }
  }
})
