// What rules cost per event: 50, 200 and 1,000 rules of three conditions, generated code against closures and against the rule
// engines of npm, each checked against the others on the way. Every rule is asked for every event, as when nothing matches.
// npm run bench -- decide [seed]

import type { Facts } from '../src/domain/event.ts'
import type { ConditionGroup, Leaf } from '../src/domain/rule.ts'
import { openEventMaker } from '../src/ops/seed-events.ts'
import { openOutcomes } from '../src/ops/seed-outcomes.ts'
import { openVisits } from '../src/ops/seed-visits.ts'
import { compileRules, generate } from '../src/rules/codegen.ts'
import { createLayout, type FieldVector } from '../src/rules/predicate.ts'
import { encodeSnapshot, openSnapshot } from '../src/rules/snapshot.ts'
import { FACTS, makeRule } from '../test/helpers/facts.ts'
import { rng } from '../test/helpers/rng.ts'
import { jsonLogicEngine, jsonRulesEngine, zenEngine } from './rule-engines.ts'

const EVENTS = 1_024
const ROUNDS = 16
const ROUND_MS = 100
const ENGINE_EVENTS = 64
const ENGINE_ROUNDS = 8
const ENGINE_ROUND_MS = 400
const COMPILATIONS = 7
const SEED = Number(process.argv[3] ?? 1)

const COUNTRIES = ['CZ', 'DE', 'FR', 'JP', 'US', 'BR', 'IN', 'NG', 'VN', 'ID', 'PL', 'GB']
const FLAGS = [
  'signals.bot',
  'signals.vpn',
  'signals.tor',
  'signals.proxy',
  'signals.incognito',
  'signals.tampered',
  'visitorFound',
  'ip.datacenter',
  'ip.blocklisted',
]
const AMOUNTS: readonly (readonly [string, number])[] = [
  ['scores.suspect', 100],
  ['scores.bot', 1],
  ['scores.ato', 1],
  ['scores.abuse', 1],
  ['visitor.totalVisits', 50],
  ['visitor.linkedAccounts', 10],
  ['visitor.ageSeconds', 1e7],
  ['identity.anonymitySet', 100],
  ['ip.asn', 70_000],
  ['tag.amount', 1_000],
]

/** The mix of a working ruleset: thresholds, flags, countries, texts. */
function usual(seed: number, count: number): ConditionGroup[] {
  const r = rng(seed)
  const leaf = (): Leaf => {
    const kind = r.int(10)
    if (kind < 3) return { field: r.pick(FLAGS), operator: 'equals', value: r.chance(0.5) }
    if (kind < 7) {
      const [field, top] = r.pick(AMOUNTS)
      return { field, operator: r.pick(['gt', 'gte', 'lt', 'lte']), value: (r.int(1_000) / 1_000) * top }
    }
    if (kind === 7)
      return {
        field: 'ip.country',
        operator: r.pick(['in', 'not_in']),
        value: [r.pick(COUNTRIES), r.pick(COUNTRIES), r.pick(COUNTRIES)],
      }
    if (kind === 8)
      return {
        field: r.pick(['device.platform', 'ip.country', 'tag.action']),
        operator: 'equals',
        value: r.pick([...COUNTRIES, 'Windows', 'iOS', 'login']),
      }
    return {
      field: r.pick(['device.browser', 'email', 'url.path']),
      operator: 'contains',
      value: r.pick(['Chrome', 'b.example', 'admin', 'login', `x${r.int(100)}`]),
    }
  }
  return Array.from({ length: count }, () => ({ operator: 'AND', rules: [leaf(), leaf(), leaf()] }))
}

const cpuUs = (): number => {
  const { user, system } = process.cpuUsage()
  return user + system
}

interface Figure {
  readonly median: number
  readonly best: number
}

/** Microseconds of CPU per event: the wall clock of a shared machine tells about its neighbours. */
async function measure<T>(
  one: (event: T) => unknown,
  events: readonly T[],
  rounds = ROUNDS,
  roundMs = ROUND_MS,
): Promise<Figure> {
  const figures: number[] = []
  for (let round = -2; round < rounds; round++) {
    let done = 0
    const end = performance.now() + roundMs
    const from = cpuUs()
    while (performance.now() < end) {
      for (const event of events) {
        const answer = one(event)
        if (answer instanceof Promise) await answer
      }
      done += events.length
    }
    if (round >= 0) figures.push((cpuUs() - from) / done)
  }
  figures.sort((a, b) => a - b)
  return { median: figures[figures.length >> 1] as number, best: figures[0] as number }
}

const shown = ({ median, best }: Figure): string => `${median.toFixed(2)} (best ${best.toFixed(2)})`

const WORKSPACE = { id: 'ws', plan: 'pro', settings: { clientResult: 'id' }, tokenSecret: '', apiVersion: '' } as const

type Ask = (facts: Facts) => number

/** Each form in a function of its own, as a process has only one of them. */
function openGenerated(rules: readonly ConditionGroup[]) {
  const layout = createLayout({ scores: true })
  const match = compileRules(rules, { layout, mode: 'generated' })
  const values: FieldVector = []
  const hits = new Int32Array(rules.length)
  const ask: Ask = (facts) => {
    layout.fill(facts, values)
    return match(values, hits)
  }
  return { ask, hits, fill: (facts: Facts) => layout.fill(facts, values) }
}

function openClosures(rules: readonly ConditionGroup[]) {
  const layout = createLayout({ scores: true })
  const match = compileRules(rules, { layout, mode: 'closures' })
  const values: FieldVector = []
  const hits = new Int32Array(rules.length)
  const ask: Ask = (facts) => {
    layout.fill(facts, values)
    return match(values, hits)
  }
  return { ask, hits }
}

type Opened = ReturnType<typeof openClosures>
const asked = ({ ask, hits }: Opened, facts: Facts): number[] => Array.from(hits.subarray(0, ask(facts)))

/** Milliseconds of CPU from a snapshot to its first decision. */
function compileMs(rules: readonly ConditionGroup[]): number {
  const live = rules.map((conditions, i) => makeRule(`rul_${i}`, conditions))
  const figures = Array.from({ length: COMPILATIONS }, (_, revision) => {
    const snapshot = encodeSnapshot({ workspace: WORKSPACE, env: 'live', revision, rules: live })
    const from = cpuUs()
    openSnapshot(snapshot).evaluate(FACTS)
    return (cpuUs() - from) / 1_000
  })
  return figures.sort((a, b) => a - b)[COMPILATIONS >> 1] as number
}

/** Events as `fingerpost seed` makes them. */
function madeUp(seed: number, count: number): Facts[] {
  const maker = openEventMaker(String(seed), openOutcomes({ ...WORKSPACE, name: 'ws', createdAt: 0 }, 'live', [], 1))
  const [from, until] = [Date.UTC(2026, 9, 1), Date.UTC(2026, 9, 31)]
  const visits = openVisits({ seed: String(seed), events: count, from, until, partitions: 1 })
  const facts: Facts[] = []
  for (let step = 0; step < visits.steps; step++) {
    visits.step(
      step,
      (visitor, atMs) => void facts.push(maker.make(visitor, atMs)),
      () => undefined,
    )
  }
  return facts
}

let failed = false
function check(what: string, value: number, goal: number, isAtLeast = false): void {
  const holds = isAtLeast ? value >= goal : value <= goal
  if (!holds) failed = true
  console.log(
    `  ${holds ? 'ok  ' : 'MISS'} ${what}: ${value.toFixed(2)}, goal ${isAtLeast ? 'at least' : 'at most'} ${goal}`,
  )
}

const events = madeUp(SEED, EVENTS)
console.log(
  `seed ${SEED}, ${EVENTS} events, three conditions per rule, every rule asked; µs of CPU per event, fields read included`,
)
for (const count of [50, 200, 1_000]) {
  const rules = usual(SEED, count)
  const generated = openGenerated(rules)
  const ours = await measure(generated.ask, events)
  const fill = await measure(generated.fill, events)
  const compile = compileMs(rules)
  const live = rules.map((conditions, i) => makeRule(`rul_${i}`, conditions))
  const ruleset = openSnapshot(encodeSnapshot({ workspace: WORKSPACE, env: 'live', revision: 1, rules: live }))
  const whole = await measure((facts: Facts) => ruleset.evaluate(facts), events)
  const closures = openClosures(rules)
  const plain = await measure(closures.ask, events, ROUNDS / 2)
  const differing = events.filter((facts) => String(asked(generated, facts)) !== String(asked(closures, facts))).length
  const matched = events.reduce((sum, facts) => sum + generated.ask(facts), 0)
  const { chunks, memoSize } = generate(rules, { layout: createLayout({ scores: true }) })
  const sourceKb = chunks.reduce((sum, { source }) => sum + source.length, 0) / 1_000
  console.log(
    `${count} rules: generated ${shown(ours)}, fields alone ${shown(fill)}, whole outcome ${shown(whole)}, ` +
      `closures ${shown(plain)} | compile ${compile.toFixed(1)} ms, source ${sourceKb.toFixed(0)} kB, memo ${memoSize} | ` +
      `${(matched / EVENTS).toFixed(1)} match per event, ${differing} events differ`,
  )
  if (differing > 0) failed = true
  if (count === 1_000) {
    check('1,000 rules, µs', ours.median, 10)
    check('compile of 1,000 rules, ms', compile, 50)
  }
  if (count !== 200) continue
  check('200 rules, µs', ours.median, 2)
  let fastest = Number.POSITIVE_INFINITY
  for (const open of [jsonLogicEngine, zenEngine, jsonRulesEngine]) {
    const engine = open(rules)
    const some = events.slice(0, ENGINE_EVENTS).map((facts) => ({ facts, prepared: engine.prepare(facts) }))
    let differences = 0
    for (const { facts, prepared } of some) {
      if (String(await engine.run(prepared)) !== String(asked(generated, facts))) differences++
    }
    const figure = await measure(
      ({ prepared }: (typeof some)[number]) => engine.run(prepared),
      some,
      ENGINE_ROUNDS,
      ENGINE_ROUND_MS,
    )
    fastest = Math.min(fastest, figure.median)
    const ratio = figure.median / ours.median
    console.log(
      `  ${engine.name}: ${shown(figure)}, ${ratio.toFixed(0)} times as long, ${differences} of ${some.length} events differ`,
    )
    if (differences > 0) failed = true
  }
  check('times as fast as the fastest of them', fastest / ours.median, 100, true)
}
if (failed) process.exitCode = 1
