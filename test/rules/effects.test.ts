// Side effects as they are decided: of the deciding rule alone, with values and messages of the event, and unchanged on their way
// through the log.

import t from 'tap'
import type { Rule, SideEffect } from '../../src/domain/rule.ts'
import type { DecidedItem } from '../../src/events/packed-items.ts'
import { decodeEventsRecord, encodeEventsRecord } from '../../src/events/record.ts'
import { LINES_MAX } from '../../src/records/effects.ts'
import { maskSideEffect } from '../../src/rules/parse-effects.ts'
import { encodeSnapshot, openSnapshot } from '../../src/rules/snapshot.ts'
import { FACTS, makeRule, WORKSPACE } from '../helpers/facts.ts'

const ALWAYS: Rule['conditions'] = {
  operator: 'AND',
  rules: [{ field: 'visitorFound', operator: 'exists', value: true }],
}
const HOOK = 'https://hooks.slack.com/services/T0/B0/secret'

const rule = (id: string, sideEffects: readonly SideEffect[], more: Partial<Rule> = {}): Rule =>
  makeRule(id, ALWAYS, { action: { verdict: 'block', sideEffects }, ...more })
const evaluate = (rules: readonly Rule[], facts = FACTS) =>
  openSnapshot(encodeSnapshot({ workspace: WORKSPACE, env: 'live', revision: 1, rules })).evaluate(facts)

const EFFECTS: readonly SideEffect[] = [
  { type: 'log', level: 'info', message: 'x' },
  { type: 'addToList', list: 'Seen', value: 'visitorId', ttl: 60, reason: 'burst' },
  { type: 'removeFromList', list: 'nets', value: 'ip' },
  { type: 'webhook', webhookId: 'whk_a' },
  { type: 'slack', url: HOOK, message: '{{rule.name}} in {{ip.country}} from {{ip}}, {{linkedId}}' },
  { type: 'slack', url: HOOK },
]

t.test('the deciding rule alone has side effects, each in its place', async (t) => {
  const outcome = evaluate([
    rule('rul_watch', EFFECTS, { status: 'monitor', priority: 1 }),
    rule('rul_first', EFFECTS, { priority: 2 }),
    rule('rul_second', EFFECTS, { priority: 3 }),
  ])
  const place = { ruleId: 'rul_first' }
  t.same(outcome.effects.slice(0, 3), [
    { ...place, index: 1, type: 'addToList', list: 'Seen', value: FACTS.visitorId, ttl: 60, reason: 'burst' },
    { ...place, index: 2, type: 'removeFromList', list: 'nets', value: '203.0.113.9' },
    { ...place, index: 3, type: 'webhook', webhookId: 'whk_a' },
  ])
  t.match(outcome.effects[3], { ...place, index: 4, type: 'slack', url: HOOK, message: /in CZ from 203\.0\.113\.\*, / })
  t.match(outcome.effects[4], { index: 5, message: new RegExp(FACTS.requestId) })
  t.equal(outcome.effects.length, 5)
  t.equal(outcome.effectsSkipped, 0)
  t.same(evaluate([rule('rul_watch', EFFECTS, { status: 'monitor' })]).effects, [])
})

t.test('a value that is missing, or can be no entry, is left out and counted', async (t) => {
  const add = (value: string): SideEffect => ({ type: 'addToList', list: 'l', value })
  const tag = { text: 'a@b.example', long: 'x'.repeat(321), number: 7, empty: '' }
  const paths = ['tag.text', 'tag.long', 'tag.number', 'tag.empty', 'tag.none', 'visitorId']
  const { effects, effectsSkipped } = evaluate([rule('rul_a', paths.map(add))], { ...FACTS, tag })
  t.same(
    effects.map((effect) => [effect.index, 'value' in effect ? effect.value : null]),
    [
      [0, 'a@b.example'],
      [5, FACTS.visitorId],
    ],
  )
  t.equal(effectsSkipped, 4)
})

t.test('with verifiedOnly, what only a page claims is left out and counted', async (t) => {
  const paths = ['email', 'linkedId', 'tag.text', 'visitorId']
  const effects = paths.map((value): SideEffect => ({ type: 'addToList', list: 'l', value, verifiedOnly: true }))
  const all = { ...FACTS, email: 'a@b.example', linkedId: 'user 1', tag: { text: 'x' } }
  const added = (some: readonly SideEffect[], keyKind: (typeof FACTS)['keyKind']) => {
    const outcome = evaluate([rule('rul_a', some)], { ...all, keyKind })
    for (const effect of outcome.effects) t.notOk('verifiedOnly' in effect)
    return [outcome.effects.map(({ index }) => index), outcome.effectsSkipped]
  }
  t.same(added(effects, 'public'), [[3], 3])
  t.same(added(effects, null), [[3], 3])
  t.same(added(effects, 'secret'), [[0, 1, 2, 3], 0])
  const trusting = effects.map((effect) => ({ ...effect, verifiedOnly: false }))
  t.same(added(trusting, 'public'), [[0, 1, 2, 3], 0], 'by default a claim is taken')
})

t.test('side effects come back out of a record of events as they went in', async (t) => {
  const { effects } = evaluate([rule('rul_a', EFFECTS)])
  const item: DecidedItem = {
    seq: 1,
    requestId: FACTS.requestId,
    workspace: 'ws',
    env: 'live',
    visitorId: FACTS.visitorId,
    state: new Uint8Array(0),
    indexed: [],
    matches: [],
    nonceHash: 0,
    bodyHash: 0,
    acceptedAt: 1,
    keyKind: 'secret',
    replyTo: '',
    rowBytes: 3,
  }
  const rows = Buffer.from('[]\n[]\n')
  const record = encodeEventsRecord({
    from: 1,
    to: 2,
    items: [
      { ...item, effects },
      { ...item, seq: 2 },
    ],
    rows,
  })
  const { items } = decodeEventsRecord(record)
  t.same(items[0]?.effects, effects)
  t.notOk('effects' in (items[1] ?? {}), 'most events have none')
})

t.test('an address that is a secret is never shown whole', async (t) => {
  t.same(maskSideEffect({ type: 'slack', url: HOOK, message: 'm' }), {
    type: 'slack',
    url: 'https://hooks.slack.com/****',
    message: 'm',
  })
  const [log] = EFFECTS
  if (log !== undefined) t.same(maskSideEffect(log), log)
})

t.test('however many rules log, an event makes fifty lines, those of the first rules', async (t) => {
  const ten: SideEffect[] = Array.from({ length: 10 }, (_, at) => ({ type: 'log', level: 'info', message: `${at}` }))
  const rules = Array.from({ length: 40 }, (_, at) =>
    rule(`rul_${String(at).padStart(2, '0')}`, ten, { status: 'monitor', priority: at }),
  )
  const { logs } = evaluate(rules)
  t.equal(logs.length, LINES_MAX)
  t.same(logs.at(-1), { ruleId: 'rul_04', index: 9, level: 'info', message: '9' })
  t.equal(evaluate([rule('rul_one', ten)]).logs.length, 10)
})
