// Random rulesets over random events: closures, generated code and the naive interpreter decide alike. A difference is
// shrunk to a small condition before it is shown. The same run again: SEED=n.

import t from 'tap'
import type { Facts } from '../../src/domain/event.ts'
import type { ConditionGroup, Leaf } from '../../src/domain/rule.ts'
import { compileRules, type Mode } from '../../src/rules/codegen.ts'
import { createLayout, type FieldVector } from '../../src/rules/predicate.ts'
import { sized } from '../helpers/depth.ts'
import { member, randomFacts, randomGroup } from '../helpers/facts.ts'
import { matches } from '../helpers/interpreter.ts'
import { rng, testSeed } from '../helpers/rng.ts'
import { reversed, shrink } from './fuzz-rules.ts'

const SEED = testSeed()
/** 130 rules over 40 events each. */
const RULESETS = sized({ quick: 4, usual: 20, long: 40 })
const RULES = 130
const EVENTS = 40

function decider(rules: readonly ConditionGroup[], mode: Mode, scores: boolean): (facts: Facts) => number[] {
  const layout = createLayout({ scores })
  const match = compileRules(rules, { layout, member, mode })
  const values: FieldVector = []
  const hits = new Int32Array(rules.length)
  return (facts) => {
    layout.fill(facts, values)
    return Array.from(hits.subarray(0, match(values, hits)))
  }
}

function disagree(group: ConditionGroup, facts: Facts, scores: boolean): boolean {
  const expected = matches(group, facts, { scores, member })
  return (['closures', 'generated'] as const).some(
    (mode) => (decider([group], mode, scores)(facts).length === 1) !== expected,
  )
}

t.test('closures, generated code and the interpreter agree on every rule and event', async (t) => {
  t.comment(`seed ${SEED}`)
  const r = rng(SEED)
  let pairs = 0
  let held = 0
  for (let n = 0; n < RULESETS; n++) {
    const scores = n % 4 !== 0
    const rules = Array.from({ length: RULES }, () => randomGroup(r))
    // Repeated rules make the predicates that several rules share.
    for (let i = 0; i < 20; i++) rules[r.int(RULES)] = r.pick(rules)
    const closures = decider(rules, 'closures', scores)
    const generated = decider(rules, 'generated', scores)
    for (let e = 0; e < EVENTS; e++) {
      const facts = randomFacts(r)
      const expected = rules.flatMap((rule, i) => (matches(rule, facts, { scores, member }) ? [i] : []))
      pairs += RULES
      held += expected.length
      for (const [name, actual] of [
        ['closures', closures(facts)],
        ['generated', generated(facts)],
      ] as const) {
        if (actual.join() === expected.join()) continue
        const at = rules.findIndex((_, i) => actual.includes(i) !== expected.includes(i))
        const rule = await shrink(rules[at] as ConditionGroup, (group) => disagree(group, facts, scores))
        t.fail(`${name} differ from the interpreter`, {
          seed: SEED,
          ruleset: n,
          event: e,
          rule: JSON.stringify(rule),
          tag: facts.tag,
        })
        return
      }
    }
  }
  t.equal(pairs, RULESETS * RULES * EVENTS, `${pairs} pairs`)
  t.ok(held > pairs / 20 && held < pairs * 0.95, `${held} held: both answers are exercised`)
})

t.test('the order of an AND or OR means nothing', async (t) => {
  t.comment(`seed ${SEED}`)
  const r = rng(SEED + 1)
  const rules = Array.from({ length: 200 }, () => randomGroup(r))
  const one = decider(rules, 'generated', true)
  const other = decider(rules.map(reversed), 'generated', true)
  const events = Array.from({ length: 50 }, () => randomFacts(r))
  t.same(events.map(other), events.map(one))
})

t.test('the shrinker keeps the failure and drops the rest', async (t) => {
  const bad: Leaf = { field: 'tag.bad', operator: 'exists', value: true }
  const fine: Leaf = { field: 'ip.country', operator: 'equals', value: 'CZ' }
  const group: ConditionGroup = {
    operator: 'AND',
    rules: [fine, { operator: 'OR', rules: [fine, { operator: 'AND', rules: [bad] }] }],
  }
  const small = await shrink(group, (g) => JSON.stringify(g).includes('tag.bad'))
  t.same(small.rules, [bad])
})
