// Names and texts chosen to break out of wherever they are put: they are refused, or they are compared like any other.
// And whatever a ruleset contains, the code generated for it holds none of its text.

import { execFileSync, spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { ApiError } from '../../src/domain/errors.ts'
import type { ConditionGroup, ConditionOperator, Rule } from '../../src/domain/rule.ts'
import { compileRules, generate } from '../../src/rules/codegen.ts'
import { generationAllowed } from '../../src/rules/generation.ts'
import { parseConditions } from '../../src/rules/parse.ts'
import { createLayout } from '../../src/rules/predicate.ts'
import { encodeSnapshot, openSnapshot } from '../../src/rules/snapshot.ts'
import { FACTS, makeRule, member, randomGroup } from '../helpers/facts.ts'
import { rng, testSeed } from '../helpers/rng.ts'

const HOSTILE: readonly string[] = [
  '__proto__',
  'constructor',
  'constructor.constructor',
  'prototype',
  'toString',
  'hasOwnProperty',
  "'",
  '"',
  '`',
  '\\',
  '\n',
  '\r\n',
  '\u2028',
  '\u0000',
  '$\u007bprocess.exit(1)}',
  "'];process.exit(1);//",
  '"+process.exit(1)+"',
  '*/process.exit(1)/*',
  '</script><script>',
  '{{rule.name}}',
  'c[0]',
  '%s%n',
  "'; DROP TABLE events; --",
  '\u202etxt.exe',
]

/** Printable anywhere: raw control characters would end a line of the report. */
const shown = encodeURIComponent

const context = { plan: 'pro', lists: () => null } as const
const parse = (input: unknown): ConditionGroup => parseConditions(input, context)
const workspace = { id: 'ws', plan: 'pro', settings: { clientResult: 'id' }, tokenSecret: '', apiVersion: '' } as const

function accepted(input: unknown): ConditionGroup | null {
  try {
    return parse(input)
  } catch (error) {
    if (error instanceof ApiError && error.code === 'validation_error') return null
    throw error
  }
}

function matchesTag(
  conditions: ConditionGroup,
  tag: Record<string, unknown>,
  mode: 'generated' | 'closures',
  name = 'r',
): boolean {
  const snapshot = encodeSnapshot({
    workspace,
    env: 'live',
    revision: 1,
    rules: [makeRule('rul_1', conditions, { name })],
  })
  const outcome = openSnapshot(snapshot, { mode }).evaluate({ ...FACTS, tag })
  return outcome.matchedRules.length === 1 && outcome.matchedRule?.name === name
}

const leaf = (field: string, operator: string, value: unknown) => ({
  operator: 'AND',
  rules: [{ field, operator, value }],
})
const modes = ['generated', 'closures'] as const

t.test('a hostile field, operator or list name is refused', async (t) => {
  for (const name of HOSTILE) {
    t.equal(accepted(leaf(name, 'equals', 'x')), null, `field ${shown(name)}`)
    t.equal(accepted(leaf(`signals.${name}`, 'equals', true)), null, `signals.${shown(name)}`)
    t.equal(accepted(leaf('url', name, 'x')), null, `operator ${shown(name)}`)
    t.equal(accepted(leaf('visitorId', 'in', name)), null, `list ${shown(name)}`)
    t.equal(
      accepted(
        JSON.parse(
          `{"operator":"AND","rules":[{"field":"url","operator":"exists","value":true,${JSON.stringify(name)}:1}]}`,
        ),
      ),
      null,
      `member ${shown(name)}`,
    )
  }
})

t.test('a hostile value, tag key or rule name is a literal', async (t) => {
  for (const text of HOSTILE) {
    for (const mode of modes) {
      const equals = accepted(leaf('tag.k', 'equals', text)) as ConditionGroup
      t.ok(matchesTag(equals, { k: text }, mode), `${mode}: value ${shown(text)}`)
      t.notOk(matchesTag(equals, { k: `${text}x` }, mode))
      const contains = accepted(leaf('tag.k', 'contains', text)) as ConditionGroup
      t.ok(matchesTag(contains, { k: `<${text}>` }, mode))
      const among = accepted(leaf('tag.k', 'in', ['a', text])) as ConditionGroup
      t.ok(matchesTag(among, { k: text }, mode))
      t.ok(matchesTag(equals, { k: text }, mode, text), `${mode}: name ${shown(text)}`)

      const keyed = accepted(leaf(`tag.${text}`, 'equals', 'v')) as ConditionGroup
      const tag = text
        .split('.')
        .reduceRight<unknown>((inner, key) => JSON.parse(`{${JSON.stringify(key)}:${JSON.stringify(inner)}}`), 'v')
      t.ok(matchesTag(keyed, tag as Record<string, unknown>, mode), `${mode}: key ${shown(text)}`)
      t.notOk(matchesTag(keyed, {}, mode), 'an inherited property is no tag')
    }
  }
})

t.test('the generated source holds no text of anybody', async (t) => {
  const mark = 'MARKER'
  const operators: readonly ConditionOperator[] = ['equals', 'not_equals', 'contains', 'in', 'not_in', 'gt', 'exists']
  const rules: Rule[] = operators.flatMap((operator, i) => {
    const value =
      operator === 'exists' ? true : operator === 'in' ? [mark, 'x`$\u007by}'] : operator === 'gt' ? 424_242 : mark
    const item = { field: `tag.${mark}.${mark}`, operator, value }
    const list = { field: 'visitorId', operator: 'in' as const, value: mark }
    const conditions: ConditionGroup = { operator: 'OR', rules: [item, list, { operator: 'AND', rules: [item, item] }] }
    // The same rule twice makes its predicates shared, which is another way for them to be written.
    return [0, 1].map((n) =>
      makeRule(`${mark}${i}${n}`, conditions, {
        name: mark,
        action: { verdict: 'block', sideEffects: [{ type: 'log', message: mark }] },
      }),
    )
  })
  const seed = testSeed()
  t.comment(`seed ${seed}`)
  const r = rng(seed)
  const random = Array.from({ length: 300 }, () => randomGroup(r))
  const { chunks, constants } = generate([...rules.map((rule) => rule.conditions), ...random], {
    layout: createLayout({ scores: true }),
    member,
  })
  const source = chunks.map((chunk) => chunk.source).join('\n')
  t.ok(constants.includes(mark), 'the marker is a constant')
  t.notMatch(source, new RegExp(mark))
  t.notMatch(source, /424242|__proto__|Windows|login|[`'$\\]/)
  // Strip the whole vocabulary: names followed by an index, and the few words and signs there are.
  const rest = source
    .replace(/\b[cvnpm](\[\d+\]|\d+\b)/g, ' ')
    .replace(/\b(const|return|if|typeof|has|false|true|null|number|[vhmkb]|\d+)\b/g, ' ')
    .replace(/[\s()[\]{}=<>!&|?:;,.+"/]/g, '')
  t.equal(rest, '')
})

t.test('equal predicates of many rules are decided once', async (t) => {
  const shared = { field: 'email', operator: 'contains' as const, value: 'b.example' }
  const rules = Array.from(
    { length: 250 },
    (_, i): ConditionGroup => ({
      operator: 'AND',
      rules: [shared, { field: 'visitor.totalVisits', operator: 'gt', value: i }],
    }),
  )
  const { chunks, constants, memoSize } = generate(rules, { layout: createLayout({ scores: true }) })
  t.equal(chunks.length, 3, 'a hundred rules a chunk')
  t.equal(memoSize, 1)
  t.equal(constants.length, 1 + 1 + 250)
})

t.test('a chunk also ends before its function grows too large to be optimised', async (t) => {
  const wide = { field: 'visitor.totalVisits', operator: 'gt' as const, value: 1 }
  const rules = Array.from(
    { length: 100 },
    (): ConditionGroup => ({ operator: 'AND', rules: Array.from({ length: 50 }, () => wide) }),
  )
  t.equal(generate(rules, { layout: createLayout({ scores: true }) }).chunks.length, 5)
})

t.test('a process that may not generate code decides the same', async (t) => {
  t.equal(generationAllowed, true, 'this process may')
  const child = fileURLToPath(new URL('no-codegen.child.js', import.meta.url))
  const seed = String(testSeed())
  t.comment(`seed ${seed}`)
  const answer = (flags: readonly string[]) =>
    JSON.parse(
      execFileSync(process.execPath, [...flags, child, seed], { encoding: 'utf8', timeout: 30_000 }),
    ) as Record<string, unknown>
  const free = answer([])
  const bound = answer(['--disallow-code-generation-from-strings'])
  t.same([free.generationAllowed, bound.generationAllowed], [true, false])
  t.ok((free.decisions as string[]).length > 0)
  t.same(bound.decisions, free.decisions)
  const forced = spawnSync(process.execPath, ['--disallow-code-generation-from-strings', child, seed, 'generated'], {
    timeout: 30_000,
  })
  t.not(forced.status, 0, 'the flag really forbids it')
})

t.test('both modes give an empty ruleset no matches', async (t) => {
  for (const mode of modes)
    t.equal(compileRules([], { layout: createLayout({ scores: true }), mode })([], new Int32Array(0)), 0)
})
