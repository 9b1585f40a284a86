// What a client may write as conditions and actions: every refused form with the member that the error names.

import t from 'tap'
import { ApiError } from '../../src/domain/errors.ts'
import type { ListType } from '../../src/domain/list.ts'
import type { RuleAction } from '../../src/domain/rule.ts'
import type { Plan } from '../../src/domain/workspace.ts'
import { parseConditions } from '../../src/rules/parse.ts'
import { type ActionInput, parseAction } from '../../src/rules/parse-action.ts'

const LISTS = new Map<string, { type: ListType }>([
  ['visitors', { type: 'visitor' }],
  ['addresses', { type: 'ip' }],
  ['mails', { type: 'email' }],
])
const parse = (input: unknown, plan: Plan = 'pro') =>
  parseConditions(input, { plan, lists: (name) => LISTS.get(name.toLowerCase()) ?? null })

const leaf = (field: unknown, operator: unknown, value: unknown) => ({ field, operator, value })
const all = (...rules: unknown[]) => ({ operator: 'AND', rules })
const nest = (levels: number): unknown =>
  levels === 1 ? all(leaf('visitorFound', 'equals', true)) : all(nest(levels - 1))

/** `code field` of the refusal, or 'accepted'. */
function refusal(run: () => unknown): string {
  try {
    run()
    return 'accepted'
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    return `${error.code} ${error.detail.field}`
  }
}

const PV = 'pv_7Hq2LmZx90TbVcRk4WsE'
const REFUSED: readonly (readonly [string, unknown, string])[] = [
  ['no object', null, 'conditions'],
  ['an array', [], 'conditions'],
  ['a text', 'AND', 'conditions'],
  ['no operator', { rules: [leaf('visitorFound', 'equals', true)] }, 'conditions.operator'],
  ['lower-case operator', { operator: 'and', rules: [leaf('visitorFound', 'equals', true)] }, 'conditions.operator'],
  ['no rules', { operator: 'AND' }, 'conditions.rules'],
  ['rules no array', { operator: 'AND', rules: {} }, 'conditions.rules'],
  ['empty rules', all(), 'conditions.rules'],
  ['empty rules inside', all(leaf('visitorFound', 'equals', true), all()), 'conditions.rules[1].rules'],
  ['unknown member of a group', { ...all(leaf('visitorFound', 'equals', true)), not: true }, 'conditions.not'],
  ['an item that is no object', all(7), 'conditions.rules[0]'],
  ['an item that is null', all(null), 'conditions.rules[0]'],
  ['unknown member of a leaf', all({ ...leaf('visitorFound', 'equals', true), x: 1 }), 'conditions.rules[0].x'],
  ['leaf and group at once', all({ ...leaf('visitorFound', 'equals', true), rules: [] }), 'conditions.rules[0].rules'],
  ['five levels', nest(5), 'conditions.rules[0].rules[0].rules[0].rules[0]'],
  ['51 leaves', all(...Array.from({ length: 51 }, () => leaf('visitorFound', 'equals', true))), 'conditions'],
  [
    '51 leaves in groups',
    all(
      ...Array.from({ length: 17 }, () =>
        all(...Array.from({ length: 3 }, () => leaf('visitorFound', 'equals', true))),
      ),
    ),
    'conditions',
  ],
  ['no field', all({ operator: 'equals', value: 1 }), 'conditions.rules[0].field'],
  ['field no text', all(leaf(7, 'equals', 1)), 'conditions.rules[0].field'],
  [
    'unknown field',
    all(leaf('visitorFound', 'equals', true), leaf('device.shoeSize', 'equals', 1)),
    'conditions.rules[1].field',
  ],
  ['a prefix of fields', all(leaf('device', 'exists', true)), 'conditions.rules[0].field'],
  ['tag alone', all(leaf('tag', 'exists', true)), 'conditions.rules[0].field'],
  ['tag without key', all(leaf('tag.', 'exists', true)), 'conditions.rules[0].field'],
  ['tag with an empty key', all(leaf('tag.a..b', 'exists', true)), 'conditions.rules[0].field'],
  ['an endless tag', all(leaf(`tag.${'a'.repeat(253)}`, 'exists', true)), 'conditions.rules[0].field'],
  ['unknown operator', all(leaf('url', 'matches', 'x')), 'conditions.rules[0].operator'],
  ['no operator in a leaf', all({ field: 'url', value: 'x' }), 'conditions.rules[0].operator'],
  ['an operator in an array', all(leaf('url', ['equals'], 'x')), 'conditions.rules[0].operator'],
  ['contains on a number', all(leaf('confidence', 'contains', 1)), 'conditions.rules[0].operator'],
  ['gt on a text', all(leaf('url', 'gt', 'x')), 'conditions.rules[0].operator'],
  ['in on a boolean', all(leaf('visitorFound', 'in', [true])), 'conditions.rules[0].operator'],
  [
    'not_equals on a datetime',
    all(leaf('timestamp', 'not_equals', '2026-01-01T00:00Z')),
    'conditions.rules[0].operator',
  ],
  ['in on a datetime', all(leaf('timestamp', 'in', ['2026-01-01T00:00Z'])), 'conditions.rules[0].operator'],
  ['equals on an array', all(leaf('ip.blocklists', 'equals', 'x')), 'conditions.rules[0].operator'],
  ['no value', all({ field: 'url', operator: 'equals' }), 'conditions.rules[0].value'],
  ['null', all(leaf('url', 'equals', null)), 'conditions.rules[0].value'],
  ['text for a number', all(leaf('confidence', 'gt', '0.5')), 'conditions.rules[0].value'],
  ['an endless number', all(leaf('confidence', 'lt', Number.POSITIVE_INFINITY)), 'conditions.rules[0].value'],
  ['number for a text', all(leaf('url', 'equals', 7)), 'conditions.rules[0].value'],
  ['text for a boolean', all(leaf('visitorFound', 'equals', 'true')), 'conditions.rules[0].value'],
  ['number for a boolean', all(leaf('visitorFound', 'equals', 1)), 'conditions.rules[0].value'],
  ['exists with a text', all(leaf('url', 'exists', 'true')), 'conditions.rules[0].value'],
  ['exists without a value', all({ field: 'url', operator: 'exists' }), 'conditions.rules[0].value'],
  ['number for a datetime', all(leaf('timestamp', 'gt', 1_700_000_000)), 'conditions.rules[0].value'],
  ['number in an array field', all(leaf('ip.blocklists', 'contains', 7)), 'conditions.rules[0].value'],
  ['an object for a tag', all(leaf('tag.a', 'equals', {})), 'conditions.rules[0].value'],
  ['an array for a tag', all(leaf('tag.a', 'equals', ['x'])), 'conditions.rules[0].value'],
  ['an endless number for a tag', all(leaf('tag.a', 'equals', Number.POSITIVE_INFINITY)), 'conditions.rules[0].value'],
  ['1,025 characters', all(leaf('url', 'contains', 'x'.repeat(1_025))), 'conditions.rules[0].value'],
  ['half a character', all(leaf('url', 'contains', '\ud83d')), 'conditions.rules[0].value'],
  [
    '1,001 literals',
    all(
      leaf(
        'url',
        'in',
        Array.from({ length: 1_001 }, () => 'x'),
      ),
    ),
    'conditions.rules[0].value',
  ],
  ['a wrong literal', all(leaf('url', 'in', ['x', 7])), 'conditions.rules[0].value'],
  ['a long literal', all(leaf('url', 'in', ['x'.repeat(1_025)])), 'conditions.rules[0].value'],
  ['no literal', all(leaf('url', 'in', [])), 'conditions.rules[0].value'],
  ['no literal to be none of', all(leaf('url', 'not_in', [])), 'conditions.rules[0].value'],
  ['a short visitor id', all(leaf('visitorId', 'equals', 'pv_short')), 'conditions.rules[0].value'],
  ['a short visitor id to differ from', all(leaf('visitorId', 'not_equals', 'pv_short')), 'conditions.rules[0].value'],
  [
    'a short visitor id among literals',
    all(leaf('visitorId', 'not_in', [PV, 'pv_short'])),
    'conditions.rules[0].value',
  ],
  ['a range of addresses', all(leaf('ip', 'in', ['192.0.2.1', '10.0.0.0/8'])), 'conditions.rules[0].value'],
  ['in with a number', all(leaf('visitor.totalVisits', 'in', 7)), 'conditions.rules[0].value'],
  ['an unknown list', all(leaf('ip', 'in', 'nobody')), 'conditions.rules[0].value'],
  ['a list named by a prototype', all(leaf('ip', 'in', '__proto__')), 'conditions.rules[0].value'],
  ['a list of another type', all(leaf('ip', 'in', 'visitors')), 'conditions.rules[0].value'],
  ['a list on an unsuited field', all(leaf('ip.country', 'not_in', 'addresses')), 'conditions.rules[0].value'],
  ['a list on a number', all(leaf('ip.asn', 'in', 'addresses')), 'conditions.rules[0].value'],
]

t.test('every malformed condition is refused by the member at fault', async (t) => {
  for (const [name, input, at] of REFUSED)
    t.equal(
      refusal(() => parse(input)),
      `validation_error ${at}`,
      name,
    )
})

t.test('a visitor id that a rule compares with already may stay, whatever its form', async (t) => {
  const context = { plan: 'pro' as const, lists: () => null, known: new Set(['pv_short']) }
  const kept = all(leaf('visitorId', 'equals', 'pv_short'), leaf('visitorId', 'in', ['pv_short', PV]))
  t.same(parseConditions(kept, context), kept)
  t.equal(
    refusal(() => parseConditions(all(leaf('visitorId', 'in', ['pv_other'])), context)),
    'validation_error conditions.rules[0].value',
  )
})

t.test('addresses and e-mails are compared in the spelling that events have', async (t) => {
  const table: readonly (readonly [field: string, operator: string, written: unknown, stored: unknown])[] = [
    ['email', 'equals', ' FOO@ex.com', 'foo@ex.com'],
    ['ip', 'equals', '2001:DB8:0::1', '2001:db8::1'],
    ['ip.address', 'not_equals', '::ffff:1.2.3.4', '1.2.3.4'],
    ['ip', 'in', ['192.0.2.1/32', '2001:db8::2'], ['192.0.2.1', '2001:db8::2']],
    ['email', 'not_in', ['A@b.example'], ['a@b.example']],
    ['email', 'contains', 'FOO@', 'FOO@'],
    ['ip', 'contains', '10.0.', '10.0.'],
    ['linkedId', 'equals', 'FOO@ex.com', 'FOO@ex.com'],
    ['ip', 'equals', 'No address', 'No address'],
    ['email', 'in', ['B.Example'], ['B.Example']],
  ]
  for (const [field, operator, written, stored] of table) {
    t.same(parse(all(leaf(field, operator, written))), all(leaf(field, operator, stored)), `${field} ${operator}`)
  }
  const known = new Set(['FOO@ex.com', '10.0.0.0/8'])
  const old = all(leaf('email', 'equals', 'FOO@ex.com'), leaf('ip', 'in', ['10.0.0.0/8']))
  t.same(parseConditions(old, { plan: 'pro', lists: () => null, known }), old, 'what a rule says already stays')
})

t.test('impossible and ambiguous moments are refused, every spelling of RFC 3339 is taken', async (t) => {
  const at = (value: string) => refusal(() => parse(all(leaf('firstSeenAt', 'gt', value))))
  for (const good of [
    '2026-11-20T18:00:00Z',
    '2026-11-20T18:00Z',
    '2024-02-29T00:00:00.5Z',
    '2026-11-20t18:00:00.123456789+05:30',
    '0001-01-01T00:00z',
    '9999-12-31T23:59:59-23:59',
  ]) {
    t.equal(at(good), 'accepted', good)
  }
  for (const bad of [
    '',
    '2026-11-20',
    '2026-11-20T18:00:00',
    '2026-11-20 18:00:00Z',
    '2026-02-29T00:00:00Z',
    '2026-13-01T00:00:00Z',
    '2026-00-10T00:00:00Z',
    '2026-11-31T00:00Z',
    '2026-11-20T24:00:00Z',
    '2026-11-20T18:60Z',
    '2026-11-20T18:00:60Z',
    '2026-11-20T18:00+24:00',
    '2026-11-20T18:00+0100',
    '20261120T180000Z',
    'yesterday',
    '1700000000',
    ' 2026-11-20T18:00Z',
    '2026-11-20T18:00Z\n',
  ]) {
    t.equal(at(bad), 'validation_error conditions.rules[0].value', JSON.stringify(bad))
  }
})

t.test('what is allowed comes back as it was written', async (t) => {
  const input = {
    operator: 'OR',
    rules: [
      leaf('signals.bot', 'equals', true),
      leaf('signals.bot.detected', 'not_equals', false),
      leaf('scores.suspect', 'gte', 80),
      leaf('visitorId', 'in', 'VISITORS'),
      leaf('ip', 'in', 'addresses'),
      leaf('ip.address', 'not_in', 'addresses'),
      leaf('email', 'in', 'mails'),
      leaf('linkedId', 'in', 'mails'),
      leaf('tag.any.key', 'in', 'addresses'),
      leaf('tag.a', 'gt', 'text'),
      leaf('tag.a', 'in', [1, 'x', true]),
      leaf('ip.blocklists', 'contains', 'tor'),
      leaf('url', 'contains', 'x'.repeat(1_024)),
      leaf('firstSeenAt', 'lt', '2026-11-20T18:00Z'),
      leaf('time.hourUtc', 'in', [0]),
      leaf('visitorId', 'in', [PV]),
      leaf('visitorId', 'contains', 'pv_short'),
      all(all(all(leaf('email', 'exists', false)))),
    ],
  }
  t.same(parse(input), input)
  t.same(parse(nest(4)), nest(4))
  t.equal(parse(all(...Array.from({ length: 50 }, () => leaf('visitorFound', 'equals', true)))).rules.length, 50)
})

t.test('scores need a plan that has them', async (t) => {
  const at = (plan: Plan) =>
    refusal(() => parse(all(leaf('visitorFound', 'equals', true), leaf('scores.bot', 'gt', 0.5)), plan))
  t.same(
    [at('starter'), at('pro'), at('enterprise')],
    ['plan_required conditions.rules[1].field', 'accepted', 'accepted'],
  )
  const log = { verdict: 'block', sideEffects: [{ type: 'log', message: '{{scores.bot}}' }] }
  t.equal(
    refusal(() => parseAction({ plan: 'starter', action: log })),
    'plan_required action.sideEffects[0].message',
  )
})

t.test('every malformed action is refused by the member at fault', async (t) => {
  const effect = (...sideEffects: unknown[]) => ({ verdict: 'block', sideEffects })
  const refused: readonly (readonly [unknown, string])[] = [
    [undefined, 'action'],
    [null, 'action'],
    ['block', 'action'],
    [{}, 'action.verdict'],
    [{ verdict: 'deny' }, 'action.verdict'],
    [{ verdict: ['block'] }, 'action.verdict'],
    [{ verdict: 'block', note: 1 }, 'action.note'],
    [{ verdict: 'block', challengeType: 'otp' }, 'action.challengeType'],
    [{ verdict: 'challenge', challengeType: 'sms' }, 'action.challengeType'],
    [{ verdict: 'challenge', challengeType: null }, 'action.challengeType'],
    [{ verdict: 'block', sideEffects: {} }, 'action.sideEffects'],
    [effect(...Array.from({ length: 11 }, () => ({ type: 'log' }))), 'action.sideEffects'],
    [effect({ type: 'log' }, 'log'), 'action.sideEffects[1]'],
    [effect({}), 'action.sideEffects[0].type'],
    [effect({ type: 'addToList', list: 'x' }), 'action.sideEffects[0].list'],
    [effect({ type: '__proto__' }), 'action.sideEffects[0].type'],
    [effect({ type: 'log', level: 'debug' }), 'action.sideEffects[0].level'],
    [effect({ type: 'log', text: 'x' }), 'action.sideEffects[0].text'],
    [effect({ type: 'log', message: 7 }), 'action.sideEffects[0].message'],
    [effect({ type: 'log', message: 'x'.repeat(1_025) }), 'action.sideEffects[0].message'],
    [effect({ type: 'log', message: 'from {{ip.planet}}' }), 'action.sideEffects[0].message'],
    [effect({ type: 'log', message: '{{}}' }), 'action.sideEffects[0].message'],
    [effect({ type: 'log', message: '{{__proto__}}' }), 'action.sideEffects[0].message'],
  ]
  for (const [action, at] of refused) {
    t.equal(
      refusal(() => parseAction({ plan: 'pro', action })),
      `validation_error ${at}`,
      JSON.stringify(action)?.slice(0, 80),
    )
  }
  t.match(
    (() => {
      try {
        return parseAction({ plan: 'pro', action: effect({ type: 'email' }) })
      } catch (error) {
        return (error as Error).message
      }
    })(),
    /log/,
    'the message lists what is accepted',
  )
})

t.test('side effects may stand inside the action or beside it, and stay until they are replaced', async (t) => {
  const log = (message: string) => ({ type: 'log', level: 'info', message }) as const
  const current: RuleAction = { verdict: 'allow', sideEffects: [log('old')] }
  const got = (input: Omit<ActionInput, 'plan'>) => parseAction({ plan: 'pro', ...input })
  t.same(got({ action: { verdict: 'block' } }), { verdict: 'block' })
  t.same(got({ action: { verdict: 'block', sideEffects: [{ type: 'log' }] } }), {
    verdict: 'block',
    sideEffects: [{ type: 'log', level: 'info' }],
  })
  t.same(got({ action: { verdict: 'block' }, sideEffects: [log('new')] }), {
    verdict: 'block',
    sideEffects: [log('new')],
  })
  t.same(
    got({ action: { verdict: 'block', sideEffects: [{ message: 'same', type: 'log' }] }, sideEffects: [log('same')] }),
    { verdict: 'block', sideEffects: [log('same')] },
    'equal in both places',
  )
  t.equal(
    refusal(() => got({ action: { verdict: 'block', sideEffects: [log('one')] }, sideEffects: [log('two')] })),
    'validation_error sideEffects',
  )
  t.equal(
    refusal(() => got({ action: { verdict: 'block' }, sideEffects: [{ type: 'webhook' }] })),
    'validation_error sideEffects[0].webhookId',
  )
  t.same(got({ current }), current, 'nothing given changes nothing')
  t.same(
    got({ current, action: { verdict: 'block' } }),
    { verdict: 'block', sideEffects: [log('old')] },
    'an action without keeps them',
  )
  t.same(
    got({ current, action: { verdict: 'block', sideEffects: [] } }),
    { verdict: 'block', sideEffects: [] },
    '[] clears',
  )
  t.same(got({ current, sideEffects: [] }), { verdict: 'allow', sideEffects: [] })
  t.same(got({ current, sideEffects: [log('new')] }), { verdict: 'allow', sideEffects: [log('new')] })
})
