// The rule engines of npm on our rules: each gets the same conditions in its own words and the fields of an event as the plain
// object it expects, prepared beforehand, and says which rules match.

import { ZenEngine } from '@gorules/zen-engine'
import jsonLogic from 'json-logic-js'
import { Engine, type RuleProperties } from 'json-rules-engine'
import type { Facts } from '../src/domain/event.ts'
import type { ConditionGroup, Leaf } from '../src/domain/rule.ts'
import { type FieldValue, field } from '../src/events/fields.ts'

export interface RuleEngine {
  readonly name: string
  /** What the engine is given of an event. */
  prepare(facts: Facts): unknown
  /** Indexes of the rules that match, ascending. */
  run(prepared: unknown): number[] | Promise<number[]>
}

const leavesOf = (group: ConditionGroup): readonly Leaf[] => group.rules as readonly Leaf[]

/** Members by path, missing ones as null. */
function nested(paths: readonly string[], facts: Facts): Record<string, unknown> {
  const root: Record<string, unknown> = {}
  for (const path of paths) {
    const names = path.split('.')
    let at = root
    for (const name of names.slice(0, -1)) {
      at[name] ??= {}
      at = at[name] as Record<string, unknown>
    }
    at[names.at(-1) as string] = read(path, facts)
  }
  return root
}

const read = (path: string, facts: Facts): FieldValue => field(path)?.read(facts) ?? null
const pathsOf = (rules: readonly ConditionGroup[]): string[] => [
  ...new Set(rules.flatMap((rule) => leavesOf(rule).map((leaf) => leaf.field))),
]

export function jsonLogicEngine(rules: readonly ConditionGroup[]): RuleEngine {
  const paths = pathsOf(rules)
  const logic = rules.map((rule) => ({ and: leavesOf(rule).flatMap(inJsonLogic) }))
  return {
    name: 'json-logic-js',
    prepare: (facts) => nested(paths, facts),
    run: (prepared) => matching(logic, (rule) => jsonLogic.apply(rule, prepared) === true),
  }
}

function matching<T>(rules: readonly T[], holds: (rule: T) => boolean): number[] {
  const hits: number[] = []
  for (let i = 0; i < rules.length; i++) if (holds(rules[i] as T)) hits.push(i)
  return hits
}

const COMPARISONS: Readonly<Record<string, string>> = { gt: '>', gte: '>=', lt: '<', lte: '<=' }

function inJsonLogic({ field: path, operator, value }: Leaf): unknown[] {
  const value_ = { var: path }
  const present = { '!==': [value_, null] }
  if (operator === 'equals') return [{ '===': [value_, value] }]
  if (operator === 'in') return [{ in: [value_, value] }]
  if (operator === 'not_in') return [present, { '!': { in: [value_, value] } }]
  if (operator === 'contains') return [{ in: [value, value_] }]
  return [present, { [COMPARISONS[operator] as string]: [value_, value] }]
}

const JSON_RULES: Readonly<Record<string, string>> = {
  equals: 'equal',
  gt: 'greaterThan',
  gte: 'greaterThanInclusive',
  lt: 'lessThan',
  lte: 'lessThanInclusive',
  in: 'in',
  not_in: 'presentNotIn',
  contains: 'textContains',
}

export function jsonRulesEngine(rules: readonly ConditionGroup[]): RuleEngine {
  const paths = pathsOf(rules)
  const engine = new Engine([], { allowUndefinedFacts: true })
  engine.addOperator('presentNotIn', (a: unknown, b: unknown[]) => a !== null && !b.includes(a))
  engine.addOperator('textContains', (a: unknown, b: string) => typeof a === 'string' && a.includes(b))
  for (const [i, rule] of rules.entries()) {
    const all = leavesOf(rule).map((leaf) => ({
      fact: leaf.field,
      operator: JSON_RULES[leaf.operator] as string,
      value: leaf.value,
    }))
    engine.addRule({ conditions: { all }, event: { type: String(i) } } as RuleProperties)
  }
  return {
    name: 'json-rules-engine',
    prepare: (facts) => Object.fromEntries(paths.map((path) => [path, read(path, facts)])),
    async run(prepared) {
      const { events } = await engine.run(prepared as Record<string, unknown>)
      return events.map(({ type }) => Number(type)).sort((a, b) => a - b)
    },
  }
}

/** All rules as one node of expressions, compiled once. */
export function zenEngine(rules: readonly ConditionGroup[]): RuleEngine {
  const paths = pathsOf(rules)
  const expressions = rules.map((rule, i) => ({
    id: `e${i}`,
    key: `r${i}`,
    value: leavesOf(rule).map(inZen).join(' and '),
  }))
  const decision = new ZenEngine().createDecision({
    nodes: [
      { id: 'in', name: 'in', type: 'inputNode', position: { x: 0, y: 0 } },
      { id: 'rules', name: 'rules', type: 'expressionNode', position: { x: 1, y: 0 }, content: { expressions } },
      { id: 'out', name: 'out', type: 'outputNode', position: { x: 2, y: 0 } },
    ],
    edges: [
      { id: 'a', sourceId: 'in', targetId: 'rules', type: 'edge' },
      { id: 'b', sourceId: 'rules', targetId: 'out', type: 'edge' },
    ],
  })
  return {
    name: '@gorules/zen-engine',
    prepare: (facts) => nested(paths, facts),
    async run(prepared) {
      const { result } = await decision.evaluate(prepared)
      return matching(rules, (rule) => result[`r${rules.indexOf(rule)}`] === true)
    },
  }
}

function inZen({ field: path, operator, value }: Leaf): string {
  const text = JSON.stringify(value)
  if (operator === 'equals') return `${path} == ${text}`
  if (operator === 'in') return `${path} in ${text}`
  if (operator === 'not_in') return `${path} != null and not(${path} in ${text})`
  if (operator === 'contains') return `${path} != null and contains(${path}, ${text})`
  return `${path} != null and ${path} ${COMPARISONS[operator]} ${text}`
}
