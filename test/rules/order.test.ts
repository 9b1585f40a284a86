// What an evaluated ruleset answers: who decides, what is recorded, what is logged, and which challenge is asked for.

import t from 'tap'
import type { Facts } from '../../src/domain/event.ts'
import type { Rule } from '../../src/domain/rule.ts'
import type { Plan } from '../../src/domain/workspace.ts'
import { createRulesetCache, encodeSnapshot, openSnapshot, type Snapshot } from '../../src/rules/snapshot.ts'
import { ALWAYS, FACTS, makeRule, NEVER, signals } from '../helpers/facts.ts'
import { rng } from '../helpers/rng.ts'

const workspace = (plan: Plan = 'enterprise', id = 'ws_a') => ({
  id,
  plan,
  settings: { clientResult: 'id' } as const,
  tokenSecret: 's3cret',
  apiVersion: '2026-11-01',
})
const snapshot = (rules: readonly Rule[], plan: Plan = 'enterprise', revision = 1): Snapshot =>
  encodeSnapshot({ workspace: workspace(plan), env: 'live', revision, rules })
const evaluate = (rules: readonly Rule[], facts: Facts = FACTS, options = {}, plan: Plan = 'enterprise') =>
  openSnapshot(snapshot(rules, plan)).evaluate(facts, options)

const ids = (matches: readonly { id: string }[]) => matches.map((match) => match.id)

t.test('no live rule: no verdict, whatever else there is', async (t) => {
  const nothing = {
    verdict: null,
    challengeType: null,
    matchedRule: null,
    matchedRules: [],
    monitorMatches: [],
    logs: [],
    effects: [],
    effectsSkipped: 0,
  }
  t.same(evaluate([]), nothing)
  t.same(evaluate([makeRule('a', ALWAYS, { status: 'draft' }), makeRule('b', ALWAYS, { status: 'paused' })]), nothing)
  const watched = evaluate([makeRule('a', ALWAYS, { status: 'monitor' })])
  t.equal(watched.verdict, null)
  t.same(ids(watched.monitorMatches), ['a'])
})

t.test('live rules that do not match allow', async (t) => {
  const outcome = evaluate([makeRule('a', NEVER)])
  t.equal(outcome.verdict, 'allow')
  t.equal(outcome.matchedRule, null)
  t.equal(openSnapshot(snapshot([makeRule('a', NEVER), makeRule('b', NEVER, { status: 'monitor' })])).liveCount, 1)
})

t.test('priority, then createdAt, then id decide, whatever order the rules come in', async (t) => {
  const rules = [
    makeRule('never', NEVER, { priority: -5 }),
    makeRule('z', ALWAYS, { priority: 1, createdAt: 9, action: { verdict: 'challenge', challengeType: 'webauthn' } }),
    makeRule('B', ALWAYS, { priority: 2, createdAt: 1 }),
    makeRule('a', ALWAYS, { priority: 2, createdAt: 1, action: { verdict: 'allow' } }),
    makeRule('A', ALWAYS, { priority: 2, createdAt: 3 }),
    makeRule('d', ALWAYS, { priority: 10 }),
  ]
  const r = rng(7)
  for (let i = 0; i < 20; i++) {
    const outcome = evaluate(r.shuffle(rules))
    t.same(ids(outcome.matchedRules), ['z', 'B', 'a', 'A', 'd'])
    t.same(outcome.matchedRule, { id: 'z', name: 'Rule z', priority: 1 })
    t.equal(outcome.verdict, 'challenge')
    t.equal(outcome.challengeType, 'webauthn')
  }
})

t.test('exactly one match decides, and all are recorded', async (t) => {
  const outcome = evaluate([
    makeRule('a', NEVER, { priority: 1 }),
    makeRule('b', ALWAYS, { priority: 2, action: { verdict: 'allow' } }),
    makeRule('c', ALWAYS, { priority: 3 }),
    makeRule('m', ALWAYS, { priority: 0, status: 'monitor' }),
  ])
  t.same(outcome.matchedRules, [
    { id: 'b', name: 'Rule b', priority: 2, verdict: 'allow', deciding: true },
    { id: 'c', name: 'Rule c', priority: 3, verdict: 'block', deciding: false },
  ])
  t.same(outcome.monitorMatches, [{ id: 'm', name: 'Rule m', priority: 0, verdict: 'block', deciding: false }])
  t.equal(outcome.verdict, 'allow')
})

t.test('only the deciding rule and monitors log', async (t) => {
  const log = (verdict: 'allow' | 'block', message?: string) => ({
    verdict,
    sideEffects: [
      { type: 'log', level: 'warn', ...(message === undefined ? {} : { message }) },
      { type: 'log' },
    ] as const,
  })
  const { logs } = evaluate([
    makeRule('a', ALWAYS, { priority: 1, action: log('block', 'from {{ ip.country }}') }),
    makeRule('b', ALWAYS, { priority: 2, action: log('block', 'never said') }),
    makeRule('m', ALWAYS, { priority: 3, status: 'monitor', action: log('allow', 'seen {{visitorFound}}') }),
    makeRule('n', NEVER, { priority: 4, status: 'monitor', action: log('allow', 'never said') }),
  ])
  t.same(logs, [
    { ruleId: 'a', index: 0, level: 'warn', message: 'from CZ' },
    { ruleId: 'a', index: 1, level: 'info', message: 'Rule a' },
    { ruleId: 'm', index: 0, level: 'warn', message: 'seen true' },
    { ruleId: 'm', index: 1, level: 'info', message: 'Rule m' },
  ])
})

t.test('messages are rendered once, masked and bounded', async (t) => {
  const say = (message: string, facts: Facts = FACTS, plan: Plan = 'enterprise', name = 'N') =>
    evaluate(
      [makeRule('a', ALWAYS, { name, action: { verdict: 'block', sideEffects: [{ type: 'log', message }] } })],
      facts,
      {},
      plan,
    ).logs[0]?.message
  t.equal(say('{{ip}} {{ip.address}} {{email}}'), '203.0.113.* 203.0.113.* a***@b.example')
  t.equal(say('{{ip}}', { ...FACTS, ip: { ...FACTS.ip, address: '2001:db8:1:2::3' } }), '2001:db8:1::*')
  t.equal(say('{{timestamp}} {{requestId}} {{rule.id}}'), `2026-11-20T18:30:00.000Z ${FACTS.requestId} a`)
  t.equal(say('[{{device.model}}{{tag.nothing}}{{tag.no.such}}]'), '[]')
  t.equal(say('{{tag.cart}}'), JSON.stringify(FACTS.tag.cart))
  t.equal(
    say('{{rule.name}}', FACTS, 'enterprise', '{{email}} $\u007bprocess.exit()}'),
    '{{email}} $\u007bprocess.exit()}',
    'a value is not a template',
  )
  t.equal(say('{{tag.action}}', { ...FACTS, tag: { action: '{{ip}}' } }), '{{ip}}')
  t.equal(say('{{scores.suspect}}'), '42.5')
  t.equal(say('[{{scores.suspect}}]', FACTS, 'starter'), '[]')
  t.equal(say('{ {{ }x} {{{visitorFound}}}'), '{ {{ }x} {true}', 'odd braces stay')
  t.equal(say('[{{firstSeenAt}}]', { ...FACTS, firstSeenAt: 1e300 }), '[]', 'a moment beyond the calendar')
  const long = say('{{tag.x}}{{tag.x}}!', { ...FACTS, tag: { x: '😀'.repeat(1_000) } }) ?? ''
  t.ok(Buffer.byteLength(long) <= 2_048 && Buffer.byteLength(long) > 2_040, `${Buffer.byteLength(long)} bytes`)
  t.match(long, /^(😀)+$/u, 'no character is cut in two')
})

t.test('the challenge asked for when the rule names none', async (t) => {
  const rules = [makeRule('a', ALWAYS, { action: { verdict: 'challenge' } })]
  const scores = (bot: number, ato: number) => ({ ...FACTS, scores: { ...FACTS.scores, bot, ato } })
  const bot = { ...scores(0, 0.9), signals: signals(['bot']) }
  const ask = (facts: Facts, newDeviceForLinkedId = false) =>
    evaluate(rules, facts, { newDeviceForLinkedId }).challengeType
  t.equal(ask(bot, true), 'captcha')
  t.equal(ask(scores(0.5, 0.9), true), 'captcha')
  t.equal(ask(scores(0.4999, 0.5)), 'otp')
  t.equal(ask(scores(0, 0.4999), true), 'otp')
  t.equal(ask(scores(0, 0.4999)), 'captcha')
  t.equal(ask({ ...scores(0, 0), signals: signals([], ['bot']) }), 'captcha')
  t.equal(evaluate([makeRule('a', ALWAYS)], bot).challengeType, null, 'a block asks for none')
})

t.test('a rule this build does not understand never matches and stops nothing', async (t) => {
  const odd = [
    { field: 'no.such.field', operator: 'exists', value: true },
    { field: 'url', operator: 'sounds_like', value: 'x' },
    { field: 'url', operator: 'equals', value: null },
    { field: 'firstSeenAt', operator: 'gt', value: 'never' },
    { field: 'visitorId', operator: 'in', value: { a: 1 } },
    { field: 'url', operator: 'exists', value: 'yes' },
  ]
  const rules = odd.map((leaf, i) => makeRule(`odd${i}`, { operator: 'AND', rules: [leaf as never] }, { priority: i }))
  const outcome = evaluate([...rules, makeRule('last', ALWAYS, { priority: 99, action: { verdict: 'allow' } })])
  t.same(ids(outcome.matchedRules), ['last'])
})

t.test('no list exists yet, so list conditions hold for nobody', async (t) => {
  for (const operator of ['in', 'not_in'] as const) {
    const rule = makeRule('a', { operator: 'AND', rules: [{ field: 'visitorId', operator, value: 'friends' }] })
    t.same(evaluate([rule]).matchedRules, [], operator)
  }
})

t.test('a snapshot carries the workspace and only what is evaluated', async (t) => {
  const made = snapshot(
    [makeRule('a', ALWAYS), makeRule('d', ALWAYS, { status: 'draft', name: 'unfinished' })],
    'pro',
    5,
  )
  t.type(made.bytes, SharedArrayBuffer)
  t.notMatch(Buffer.from(made.bytes).toString(), /unfinished/)
  const opened = openSnapshot(made)
  t.same(opened.workspace, workspace('pro'))
  t.same([opened.revision, opened.env], [5, 'live'])
})

t.test('a thread compiles once per revision and keeps a bounded number of rulesets', async (t) => {
  const cache = createRulesetCache(2)
  const of = (id: string, revision: number, env: 'live' | 'test' = 'live') =>
    encodeSnapshot({ workspace: workspace('pro', id), env, revision, rules: [makeRule('a', ALWAYS)] })
  const first = cache.open(of('ws_a', 1))
  t.equal(cache.open(of('ws_a', 1)), first, 'the same revision is not compiled again')
  const second = cache.open(of('ws_a', 2))
  t.not(second, first)
  t.equal(second.revision, 2)
  t.not(cache.open(of('ws_a', 2, 'test')), second, 'environments are apart')
  t.equal(cache.open(of('ws_a', 2)), second)
  cache.open(of('ws_b', 1))
  t.equal(cache.open(of('ws_a', 2)), second, 'the one used last is kept')
})
