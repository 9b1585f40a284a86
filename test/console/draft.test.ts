// A rule in the editor: what is typed means what the API takes, whatever is wrong is said in the editor's words, and every rule that the
// API has goes through the editor unchanged.

import fc from 'fast-check'
import t from 'tap'
import { PRESENTED_FIELDS } from '../../src/api/rules/present.ts'
import {
  actionOf,
  conditionsOf,
  type DraftLeaf,
  draftGroup,
  draftOf,
  isWhole,
  newGroup,
  problemOf,
} from '../../src/console/pages/rules/draft.ts'
import { fieldsFor, nearestField, questionOf } from '../../src/console/pages/rules/words.ts'
import type { ConditionGroup, Leaf } from '../../src/domain/rule.ts'
import { parseConditions } from '../../src/rules/parse.ts'

const fields = PRESENTED_FIELDS as unknown as Parameters<typeof fieldsFor>[0]
const LISTS = [
  { name: 'watched', type: 'visitor' },
  { name: 'networks', type: 'ip' },
] as const
const context = {
  plan: 'enterprise',
  lists: (name: string) => LISTS.find((list) => list.name === name) ?? null,
  webhooks: () => false,
} as unknown as Parameters<typeof parseConditions>[1]
const leaf = (field: string, operator: Leaf['operator'], text: string): DraftLeaf => ({ key: 0, field, operator, text })
const meant = (one: DraftLeaf) =>
  conditionsOf({ key: 0, operator: 'AND', rules: [one] }, fields, LISTS).rules[0] as Leaf

t.test('what is typed means what the field is', (t) => {
  const table: readonly (readonly [DraftLeaf, Leaf['value']])[] = [
    [leaf('scores.suspect', 'gte', ' 30 '), 30],
    [leaf('signals.bot.detected', 'equals', 'true'), true],
    [leaf('signals.bot.detected', 'equals', 'false'), false],
    [leaf('ip.country', 'equals', 'DE'), 'DE'],
    [leaf('ip.country', 'in', 'DE\nFR\n\n'), ['DE', 'FR']],
    [leaf('visitorId', 'in', 'watched'), 'watched'],
    [leaf('ip.address', 'in', 'networks'), 'networks'],
    [leaf('ip.address', 'in', 'watched'), ['watched']],
    [leaf('linkedId', 'exists', 'true'), true],
    [leaf('linkedId', 'exists', 'false'), false],
    [leaf('tag.amount', 'gt', '12.5'), 12.5],
    [leaf('tag.plan', 'equals', '007'), '007'],
    [leaf('tag.vip', 'equals', 'true'), true],
  ]
  for (const [one, value] of table) t.same(meant(one), { field: one.field, operator: one.operator, value }, one.field)
  t.end()
})

t.test('whatever the server would refuse is named before', (t) => {
  const table: readonly (readonly [DraftLeaf, RegExp])[] = [
    [leaf('', 'equals', 'x'), /Choose a field/],
    [leaf('signals.bot.detectd', 'equals', 'true'), /Do you mean signals\.bot\.detected/],
    [leaf('nothing.like.it.at.all', 'equals', 'x'), /no such field\.$/],
    [leaf('scores.suspect', 'gte', 'many'), /must be a number/],
    [leaf('scores.suspect', 'gte', ''), /must be a number/],
    [leaf('scores.suspect', 'in', '1\nx'), /Each value must be a number/],
    [leaf('ip.country', 'equals', ''), /Give a value/],
    [leaf('ip.country', 'in', '\n'), /at least one value/],
    [leaf('signals.bot.detected', 'gt', 'true'), /takes no/],
  ]
  for (const [one, says] of table) t.match(problemOf(one, fields, LISTS), says)
  t.notOk(isWhole(newGroup(), fields, LISTS))
  t.notOk(isWhole({ key: 0, operator: 'AND', rules: [] }, fields, LISTS))
  t.end()
})

const scalar = (type: string): fc.Arbitrary<Leaf['value']> =>
  type === 'number'
    ? fc.integer({ min: -1000, max: 1000 })
    : type === 'boolean'
      ? fc.boolean()
      : type === 'datetime'
        ? fc.constant('2026-11-23T00:00:00Z')
        : fc.stringMatching(/^[A-Za-z]{1,12}$/)
const asked: fc.Arbitrary<Leaf> = fc
  .constantFrom(...fields.filter(({ type, path }) => type !== 'any' && path !== 'visitorId'))
  .chain((field) =>
    fc.constantFrom(...field.operators).chain((operator) => {
      const value =
        operator === 'exists'
          ? fc.boolean()
          : operator === 'in' || operator === 'not_in'
            ? fc.uniqueArray(scalar(field.type) as fc.Arbitrary<string>, { minLength: 1, maxLength: 4 })
            : scalar(operator === 'contains' ? 'string' : field.type)
      return value.map((one) => ({ field: field.path, operator, value: one }) as Leaf)
    }),
  )
const group = fc.letrec<{ group: ConditionGroup }>((tie) => ({
  group: fc.record({
    operator: fc.constantFrom('AND' as const, 'OR' as const),
    rules: fc.array(fc.oneof({ maxDepth: 3, depthIdentifier: 'groups' }, asked, tie('group')), {
      minLength: 1,
      maxLength: 4,
    }),
  }),
})).group

t.test('every rule that the server takes goes through the editor unchanged', (t) => {
  fc.assert(
    fc.property(group, (conditions) => {
      const taken = (() => {
        try {
          parseConditions(conditions, context)
          return true
        } catch {
          return false
        }
      })()
      fc.pre(taken)
      const draft = draftGroup(conditions)
      return (
        isWhole(draft, fields, LISTS) &&
        JSON.stringify(conditionsOf(draft, fields, LISTS)) === JSON.stringify(conditions)
      )
    }),
    { numRuns: 500 },
  )
  t.pass()
  t.end()
})

t.test('fields are found by any words of their path, label or category, and a slip is understood', (t) => {
  t.equal(fieldsFor(fields, 'suspect')[0]?.path, 'scores.suspect')
  t.ok(fieldsFor(fields, 'velocity 24h').every(({ path }) => path.includes('24h')))
  t.equal(fieldsFor(fields, '').length, fields.length)
  t.same(fieldsFor(fields, 'nothing of the kind'), [])
  t.equal(nearestField(fields, 'score.suspect'), 'scores.suspect')
  t.equal(nearestField(fields, 'entirely something else'), null)
  t.end()
})

t.test('what nobody typed over is saved as the rule has it', (t) => {
  const given: ConditionGroup = {
    operator: 'AND',
    rules: [
      { field: 'visitorId', operator: 'in', value: 'WATCHED' },
      { field: 'ip.address', operator: 'not_in', value: 'a list that is gone' },
      { field: 'tag.plan', operator: 'equals', value: '5' },
      { field: 'tag.vip', operator: 'equals', value: 'true' },
      { field: 'tag.kinds', operator: 'in', value: ['1', 2, true, ' padded '] },
    ],
  }
  t.same(conditionsOf(draftGroup(given), fields, LISTS), given)
  const [first] = draftGroup(given).rules as DraftLeaf[]
  t.same(meant({ ...(first as DraftLeaf), text: 'watched' }).value, 'watched', 'what was typed is read')
  t.same(meant({ ...(first as DraftLeaf), text: 'pv_1' }).value, ['pv_1'])
  t.same(actionOf(draftOf({ name: 'x', conditions: given, action: { verdict: 'challenge' } })), {
    verdict: 'challenge',
  })
  t.end()
})

t.test(
  'a condition of a trace reads as what it asks, and whether a field is known has no value beside it',
  async (t) => {
    const table: readonly (readonly [operator: string, value: unknown, words: string, asked: string | null])[] = [
      ['exists', true, 'is known', null],
      ['exists', false, 'is not known', null],
      ['equals', false, 'is', 'false'],
      ['in', ['a', 'b'], 'is one of / on list', '["a","b"]'],
      ['later_operator', 3, 'later_operator', '3'],
    ]
    for (const [operator, value, ...said] of table) t.same(questionOf(operator, value), said)
  },
)
