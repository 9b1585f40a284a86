// The differential fuzz of rules: random rules over random events by closures, generated code and SQL, each against the
// interpreter. The first difference is shrunk to a small rule and one event. Run by the test and by `npm run fuzz:rules`.

import type { Facts, StoredEvent } from '../../src/domain/event.ts'
import type { ConditionGroup, Leaf } from '../../src/domain/rule.ts'
import { compileRules, type Mode } from '../../src/rules/codegen.ts'
import { createLayout, type FieldVector } from '../../src/rules/predicate.ts'
import { matches, valueAt } from '../helpers/interpreter.ts'
import { rng } from '../helpers/rng.ts'
import { member, randomEvent, randomRule } from '../helpers/stored-events.ts'
import type { SqlEngine } from './sql-engine.ts'

const EVENTS = 60
/** As many conditions as one query takes without growing slow. */
const RULES_PER_QUERY = 40
/** Queries under way while this process compiles and interprets. */
const QUERIES_AT_ONCE = 2
const RULES_PER_SET_MAX = 2_000
/** The last of so many sets of events is of a plan without scores. */
const SETS_OF_ALL_KINDS = 5

export interface Finding {
  readonly who: string
  readonly rule: ConditionGroup
  readonly event: StoredEvent
  readonly scores: boolean
  /** What the interpreter says. */
  readonly expected: boolean
}

export interface FuzzResult {
  readonly pairs: number
  /** How many of the single answers were true, and how many there were. */
  readonly held: number
  readonly answers: number
  readonly finding: Finding | null
}

export type Evaluate = (rules: readonly ConditionGroup[], events: readonly StoredEvent[], scores: boolean) => number[][]

export const interpreted: Evaluate = (rules, events, scores) => {
  const known = new Map<Facts, Map<string, unknown>>(events.map((event) => [event, new Map()]))
  const read = (path: string, event: Facts): unknown => {
    const values = known.get(event)
    if (values?.has(path)) return values.get(path)
    const value = valueAt(path, event)
    values?.set(path, value)
    return value
  }
  return rules.map((rule) => events.flatMap((event, i) => (matches(rule, event, { scores, member, read }) ? [i] : [])))
}

export const compiled =
  (mode: Mode): Evaluate =>
  (rules, events, scores) => {
    const layout = createLayout({ scores })
    const match = compileRules(rules, { layout, member, mode })
    const values: FieldVector = []
    const hits = new Int32Array(rules.length)
    const found: number[][] = rules.map(() => [])
    for (const [i, event] of events.entries()) {
      layout.fill(event, values)
      for (const hit of hits.subarray(0, match(values, hits))) found[hit]?.push(i)
    }
    return found
  }

/** Every condition that is one step simpler. */
export function simpler(group: ConditionGroup): ConditionGroup[] {
  const steps: ConditionGroup[] = []
  group.rules.forEach((item, i) => {
    const replaced = (by: readonly (Leaf | ConditionGroup)[]): ConditionGroup => ({
      ...group,
      rules: group.rules.toSpliced(i, 1, ...by),
    })
    if (group.rules.length > 1) steps.push(replaced([]))
    if ('rules' in item) {
      steps.push(replaced(item.rules))
      for (const inner of simpler(item)) steps.push(replaced([inner]))
    } else if (Array.isArray(item.value) && item.value.length > 0) {
      steps.push(replaced([{ ...item, value: item.value.slice(1) }]))
    }
  })
  return steps
}

/** The smallest condition that one-step simplifications reach while it still fails. */
export async function shrink(
  group: ConditionGroup,
  fails: (group: ConditionGroup) => boolean | Promise<boolean>,
): Promise<ConditionGroup> {
  for (const step of simpler(group)) if (await fails(step)) return shrink(step, fails)
  return group
}

/** Who differs from the interpreter on these, by name. */
async function differing(
  engine: SqlEngine,
  workspace: string,
  rules: readonly ConditionGroup[],
  events: readonly StoredEvent[],
  scores: boolean,
): Promise<{ who: string; rule: number; event: number } | { held: number }> {
  const inSql: number[][] = []
  const starts = Array.from({ length: Math.ceil(rules.length / RULES_PER_QUERY) }, (_, i) => i * RULES_PER_QUERY)
  async function ask(): Promise<void> {
    for (let from = starts.pop(); from !== undefined; from = starts.pop()) {
      const found = await engine.matching(workspace, rules.slice(from, from + RULES_PER_QUERY), { scores })
      for (const [i, places] of found.entries()) inSql[from + i] = places
    }
  }
  const asked = Promise.all(Array.from({ length: QUERIES_AT_ONCE }, ask))
  const expected = interpreted(rules, events, scores)
  const others = {
    closures: compiled('closures')(rules, events, scores),
    'generated code': compiled('generated')(rules, events, scores),
    SQL: inSql,
  }
  await asked
  for (const [who, actual] of Object.entries(others)) {
    const rule = expected.findIndex((places, i) => places.join() !== actual[i]?.join())
    if (rule < 0) continue
    const wanted = new Set(expected[rule])
    const got = new Set(actual[rule])
    const event = events.findIndex((_, i) => wanted.has(i) !== got.has(i))
    return { who, rule, event }
  }
  return { held: expected.reduce((sum, places) => sum + places.length, 0) }
}

/** `pairs` rules, each against a set of sixty events. */
export async function fuzzRules(
  engine: SqlEngine,
  seed: number,
  pairs: number,
  onProgress: (done: number) => void = () => {},
): Promise<FuzzResult> {
  const r = rng(seed)
  const perSet = Math.min(RULES_PER_SET_MAX, Math.ceil(pairs / SETS_OF_ALL_KINDS))
  let done = 0
  let held = 0
  for (let set = 0; done < pairs; set++) {
    const workspace = `ws_${seed}_${set}`
    const events = Array.from({ length: EVENTS }, (_, i) => randomEvent(r, workspace, i))
    await engine.insert(workspace, events)
    const count = Math.min(perSet, pairs - done)
    const rules = Array.from({ length: count }, () => randomRule(r, events))
    const scores = set % SETS_OF_ALL_KINDS !== SETS_OF_ALL_KINDS - 1
    const result = await differing(engine, workspace, rules, events, scores)
    if ('who' in result) {
      const finding = await smallest(engine, workspace, rules[result.rule] as ConditionGroup, events, result, scores)
      return { pairs: done, held, answers: done * EVENTS, finding }
    }
    held += result.held
    done += count
    onProgress(done)
  }
  return { pairs: done, held, answers: done * EVENTS, finding: null }
}

async function smallest(
  engine: SqlEngine,
  workspace: string,
  rule: ConditionGroup,
  events: readonly StoredEvent[],
  found: { readonly who: string; readonly event: number },
  scores: boolean,
): Promise<Finding> {
  const event = events[found.event] as StoredEvent
  const says = async (group: ConditionGroup): Promise<boolean> => {
    if (found.who !== 'SQL') {
      const mode = found.who === 'closures' ? 'closures' : 'generated'
      return compiled(mode)([group], [event], scores)[0]?.length === 1
    }
    const [places] = await engine.matching(workspace, [group], { scores })
    return places?.includes(found.event) === true
  }
  const expects = (group: ConditionGroup): boolean => matches(group, event, { scores, member })
  const small = await shrink(rule, async (group) => (await says(group)) !== expects(group))
  return { who: found.who, rule: small, event, scores, expected: expects(small) }
}

/** The same rules in another form must find the same events. */
export const reversed = (group: ConditionGroup): ConditionGroup => ({
  ...group,
  rules: group.rules.toReversed().map((item) => ('rules' in item ? reversed(item) : item)),
})
