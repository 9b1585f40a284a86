// Simulation, the report of a monitored rule and the statistics of rules, against a whole server.

import t from 'tap'
import { type Answer, browserBody, errorOf, eventually } from '../helpers/client.ts'
import { cleanUp } from '../helpers/server.ts'
import { openTenant } from '../helpers/tenant.ts'

t.teardown(cleanUp)
const { server, ...client } = await openTenant()
const key = server.keys.testSecret

const post = (path: string, body: unknown, by = key) => client.send('POST', path, { key: by, body })
const simulate = (body: unknown, by = key) => post('/v1/rules/simulate', body, by)
const refused = (answer: Answer) => {
  const { code, field } = errorOf(answer)
  return [answer.status, code, ...(field === undefined ? [] : [field])]
}
const one = (field: string, operator: string, value: unknown) => ({
  operator: 'AND',
  rules: [{ field, operator, value }],
})

async function makeRule(name: string, conditions: unknown, verdict: string, more = {}): Promise<string> {
  const made = await post('/v1/rules', { name, conditions, action: { verdict }, status: 'live', ...more })
  if (made.status !== 201) throw new Error(made.text)
  return made.body.id
}

interface Mock {
  readonly country?: string
  readonly ip?: string
  readonly bot?: boolean
  readonly suspect?: number
}

/** A visit that is what the mock says and nothing else. */
async function identify({ bot = false, suspect = 5, ...where }: Mock, more = {}) {
  const mock = { ...where, signals: { bot: { detected: bot } }, scores: { suspect } }
  const answer = await client.identify({ ...browserBody(), ...more, mock }, { key })
  if (answer.status !== 200) throw new Error(answer.text)
  const { storageToken: _, ...event } = answer.body
  return event
}

const watched = await makeRule('From Japan', one('ip.country', 'equals', 'JP'), 'challenge', {
  status: 'monitor',
  priority: 15,
})
const bots = await makeRule('Bots', one('signals.bot', 'equals', true), 'block', { priority: 10 })
const high = await makeRule('High', one('scores.suspect', 'gte', 50), 'block', { priority: 20 })
const draft = await makeRule('Draft', one('visitorFound', 'equals', false), 'block', { status: 'draft' })

const MOCKS: readonly Mock[] = [
  {},
  { country: 'JP' },
  { country: 'JP', bot: true },
  { country: 'CZ', bot: true, suspect: 99 },
  { country: 'JP', suspect: 80 },
  { country: 'JP', ip: '203.0.113.9', suspect: 10 },
]
// biome-ignore lint/suspicious/noExplicitAny: what the service answers
const events: any[] = []

t.test('a stored event simulates to what was decided, by the whole ruleset and rule by rule', async (t) => {
  for (const [i, mock] of MOCKS.entries()) {
    events.push(await identify(mock, { linkedId: `user_${i}`, email: `Some.Body${i}@shop.example`, tag: { n: i } }))
  }
  for (const event of events) {
    const { status, body } = await simulate({ requestId: event.requestId })
    t.equal(status, 200)
    t.same(Object.keys(body), ['matched', 'verdict', 'matchedRules', 'monitorMatches', 'trace'])
    const { verdict, matchedRules, monitorMatches } = event
    t.match(body, { matched: matchedRules.length > 0, verdict, matchedRules, monitorMatches })
    t.equal(body.trace.length, 3, 'one condition each of what is live or monitored')
    for (const { ruleId, result } of body.trace) {
      const ids = [...matchedRules, ...monitorMatches].map(({ id }: { id: string }) => id)
      t.equal(result, ids.includes(ruleId))
    }
    const alone = (await simulate({ requestId: event.requestId, ruleId: watched })).body
    const isWatched = monitorMatches.length > 0
    t.match(alone, { matched: isWatched, verdict: isWatched ? 'challenge' : 'allow', monitorMatches: [] })
    t.same(alone.matchedRules.length, isWatched ? 1 : 0)
    const pasted = (await simulate({ event })).body
    t.match(pasted, { verdict, matchedRules, monitorMatches }, 'its public form is enough')
  }
  t.match((await simulate({ requestId: events[0].requestId, ruleId: draft })).body, { matched: true, verdict: 'block' })
  // Counts follow a moment later, in the order of the events.
  const counted = (count: number) =>
    eventually(
      async () => (await client.get(`/v1/rules/${bots}`, key)).body.stats.matchCount,
      (matchCount: number) => matchCount >= count,
    )
  const matches = events.filter(({ matchedRules }) => matchedRules.some(({ id }: { id: string }) => id === bots)).length
  t.equal(await counted(matches), matches)
  await simulate({ requestId: events[2].requestId })
  await identify({ bot: true })
  t.equal(await counted(matches + 1), matches + 1, 'a trial counts for nothing')
})

t.test('the trace says what each condition saw, masked, whatever the others came to', async (t) => {
  const conditions = {
    operator: 'OR',
    rules: [
      { field: 'ip', operator: 'equals', value: '203.0.113.9' },
      {
        operator: 'AND',
        rules: [
          { field: 'email', operator: 'contains', value: 'some.body5@' },
          { field: 'tag.n', operator: 'gt', value: 7 },
        ],
      },
      { field: 'tag.absent', operator: 'exists', value: false },
      { field: 'timestamp', operator: 'gt', value: '2020-01-01T00:00:00Z' },
    ],
  }
  const { status, body } = await simulate({ requestId: events[5].requestId, conditions })
  t.equal(status, 200)
  t.same(body, {
    matched: true,
    verdict: null,
    matchedRules: [],
    monitorMatches: [],
    trace: [
      trace('conditions.rules[0]', conditions.rules[0], '203.0.113.*', true),
      trace('conditions.rules[1].rules[0]', conditions.rules[1]?.rules?.[0], 's***@shop.example', true),
      trace('conditions.rules[1].rules[1]', conditions.rules[1]?.rules?.[1], 5, false),
      trace('conditions.rules[2]', conditions.rules[2], null, true),
      trace('conditions.rules[3]', conditions.rules[3], events[5].timestamp, true),
    ],
  })
})
const trace = (path: string, leaf: unknown, actual: unknown, result: boolean) => ({
  path,
  ...(leaf as object),
  actual,
  result,
})

t.test('of a given event what is left out is missing, flags included', async (t) => {
  const of = async (event: unknown, field: string, operator: string, value: unknown) => {
    const { status, body, text } = await simulate({ event, conditions: one(field, operator, value) })
    t.equal(status, 200, text)
    return body.matched
  }
  for (const field of ['visitorFound', 'signals.bot', 'signals.vpn.detected', 'ip.datacenter']) {
    t.equal(await of({}, field, 'equals', false), false, field)
    t.equal(await of({}, field, 'not_equals', true), false, field)
    t.equal(await of({}, field, 'exists', false), true, field)
  }
  for (const field of [
    'ip',
    'ip.blocklists',
    'email',
    'scores.bot',
    'visitor.ageSeconds',
    'time.hourUtc',
    'url.host',
  ]) {
    t.equal(await of({}, field, 'exists', false), true, field)
    t.equal(await of({ ip: null, scores: null, signals: null, device: null }, field, 'exists', true), false, field)
  }
  t.equal(await of({ signals: { bot: { detected: true } } }, 'signals.bot', 'equals', true), true)
  t.equal(await of({ signals: { bot: true } }, 'signals.bot.detected', 'equals', true), true)
  t.equal(await of({ signals: { vpn: { detected: false } } }, 'signals.vpn', 'equals', false), true)
  t.equal(
    await of({ signals: { vpn: { detected: true, provider: 'X' } } }, 'signals.vpn.provider', 'equals', 'X'),
    true,
  )
  t.equal(await of({ ip: { blocklists: ['tor'] } }, 'ip.blocklists', 'contains', 'tor'), true)
  t.equal(await of({ ip: { address: '::ffff:203.0.113.9' } }, 'ip', 'equals', '203.0.113.9'), true)
  t.equal(await of({ email: ' A@B.example ' }, 'email', 'equals', 'a@b.example'), true)
  t.equal(await of({ device: { os: 'iOS' } }, 'device.platform', 'equals', 'iOS'), true)
  t.equal(await of({ url: 'https://Shop.example/a?b' }, 'url.host', 'equals', 'shop.example'), true)
  t.equal(await of({ timestamp: '2026-01-01T23:10:00Z' }, 'time.hourUtc', 'equals', 23), true)
  t.equal(await of({ tag: { cart: { items: 3 } } }, 'tag.cart.items', 'gte', 3), true)
  t.equal(await of({ tag: { n: 3, a: { b: { c: {} } } } }, 'tag.n', 'gte', 3), true, 'four levels, the last one empty')
  t.equal(await of({ scores: { bot: 0.80004 } }, 'scores.bot', 'equals', 0.8), true, 'rounded before rules see it')
})

t.test('what cannot be simulated is refused by name', async (t) => {
  const { requestId } = events[0]
  const conditions = one('visitorFound', 'equals', true)
  const cases: [unknown, unknown[]][] = [
    [{}, [400, 'validation_error', 'requestId']],
    [{ conditions }, [400, 'validation_error', 'requestId']],
    [{ requestId, event: {} }, [400, 'validation_error', 'event']],
    [{ requestId, conditions, ruleId: bots }, [400, 'validation_error', 'ruleId']],
    [{ requestId, ruleId: 'nonsense' }, [400, 'validation_error', 'ruleId']],
    [{ requestId: 'nonsense' }, [400, 'validation_error', 'requestId']],
    [{ requestId, conditions: one('no.such', 'equals', 1) }, [400, 'validation_error', 'conditions.rules[0].field']],
    [{ requestId, conditions: { operator: 'AND', rules: [] } }, [400, 'validation_error', 'conditions.rules']],
    [{ requestId, extra: 1 }, [400, 'validation_error', 'extra']],
    [{ event: { surprise: 1 } }, [400, 'validation_error', 'event.surprise']],
    [{ event: { device: { colour: 'x' } } }, [400, 'validation_error', 'event.device.colour']],
    [{ event: { confidence: 2 } }, [400, 'validation_error', 'event.confidence']],
    [{ event: { timestamp: 'yesterday' } }, [400, 'validation_error', 'event.timestamp']],
    [{ event: { tag: { a: { b: { c: { d: { e: 1 } } } } } } }, [400, 'validation_error', 'event.tag']],
    [{ event: { tag: { a: { b: { c: { d: [] } } } } } }, [400, 'validation_error', 'event.tag']],
    [{ event: { tag: { a: 'x'.repeat(5_000) } } }, [400, 'validation_error', 'event.tag']],
    [{ event: { ip: { blocklists: Array(65).fill('x') } } }, [400, 'validation_error', 'event.ip.blocklists']],
    [{ requestId: 'req_01KAH2M6J8000000000000000A' }, [404, 'not_found']],
    [{ requestId, ruleId: 'rul_00000000000000000000' }, [404, 'not_found']],
    [[], [400, 'validation_error', 'body']],
  ]
  for (const [body, wanted] of cases) t.same(refused(await simulate(body)), wanted, JSON.stringify(body).slice(0, 80))
  t.same(refused(await simulate({ requestId }, server.keys.secret)), [404, 'not_found'], 'of another environment')
  t.same(refused(await simulate({ requestId }, server.keys.testPublic)), [403, 'insufficient_permissions'])
  const raw = await client.send('POST', '/v1/rules/simulate', { key, raw: '{' })
  t.same(refused(raw), [400, 'invalid_json'])
  const { body: writer } = await client.admin('POST', `/workspaces/${server.workspace}/keys`, {
    kind: 'secret',
    environment: 'test',
    scopes: ['rules:write'],
  })
  t.same(refused(await simulate({ requestId }, writer.key)), [403, 'insufficient_permissions'])
  t.same(refused(await client.get(`/v1/rules/${bots}/monitor`, writer.key)), [403, 'insufficient_permissions'])
})

t.test('below Pro scores are missing, and naming one is refused', async (t) => {
  const { body: small } = await client.admin('POST', '/workspaces', { name: 'small', plan: 'starter' })
  const { body: made } = await client.admin('POST', `/workspaces/${small.id}/keys`, {
    kind: 'secret',
    environment: 'live',
  })
  const event = { scores: { suspect: 90 }, visitorFound: true }
  const asked = await simulate({ event, conditions: one('scores.suspect', 'gt', 1) }, made.key)
  t.same(refused(asked), [403, 'plan_required', 'conditions.rules[0].field'])
  const whole = await simulate({ event }, made.key)
  t.match(whole.body, { matched: false, verdict: null, matchedRules: [], trace: [] }, 'no rule is live there')
})

t.test('the report of a monitored rule counts what it saw and what it would have changed', async (t) => {
  const report = async (id: string, query = '') => (await client.get(`/v1/rules/${id}/monitor${query}`, key)).body
  const seen = await eventually(
    () => report(watched),
    ({ evaluated }) => evaluated >= MOCKS.length + 1,
  )
  t.same(Object.keys(seen), ['evaluated', 'matched', 'wouldChange', 'since'])
  // The bot is blocked before, by a rule of higher precedence; the high score would be challenged first.
  t.match(seen, {
    evaluated: MOCKS.length + 1,
    matched: 4,
    wouldChange: { 'allow→challenge': 2, 'block→challenge': 1 },
  })
  t.same(Object.keys(seen.wouldChange).length, 2)
  const rule = (await client.get(`/v1/rules/${watched}`, key)).body
  t.equal(seen.since, rule.createdAt, 'since it is monitored')
  t.same(await report(watched, '?days=90'), seen)
  t.match(await report(high), { evaluated: 0, matched: 0, wouldChange: {} }, 'never monitored')

  await client.send('PUT', `/v1/rules/${watched}`, { key, body: { name: 'From Nippon', priority: 16 } })
  t.match(await report(watched), { evaluated: seen.evaluated, matched: 4, since: seen.since }, 'the same rule still')
  const changed = await client.send('PUT', `/v1/rules/${watched}`, {
    key,
    body: { conditions: one('tag.n', 'gte', 0) },
  })
  t.match(await report(watched), { evaluated: 0, matched: 0, since: changed.body.updatedAt }, 'another rule now')
  await identify({ country: 'JP' }, { tag: { n: 1 } })
  await client.send('PUT', `/v1/rules/${watched}`, { key, body: { status: 'paused' } })
  await identify({ country: 'JP' }, { tag: { n: 1 } })
  const last = await eventually(
    () => report(watched),
    ({ matched }) => matched >= 1,
  )
  t.match(last, { evaluated: 1, matched: 1, wouldChange: { 'allow→challenge': 1 } }, 'not while it was paused')

  for (const [query, field] of [
    ['?days=0', 'days'],
    ['?days=91', 'days'],
    ['?days=x', 'days'],
    ['?hours=1', 'hours'],
  ] as const) {
    t.same(refused(await client.get(`/v1/rules/${watched}/monitor${query}`, key)), [400, 'validation_error', field])
  }
  t.same(refused(await client.get('/v1/rules/rul_00000000000000000000/monitor', key)), [404, 'not_found'])
  t.same(refused(await client.get('/v1/rules/nonsense/monitor', key)), [404, 'not_found'])
})

t.test(
  'of rules with one priority the report puts the older one first, whatever their ids and whether they are there still',
  async (t) => {
    const deciding: string[] = []
    const decider = async () => {
      const n = deciding.length
      deciding.push(await makeRule(`Tie ${n}`, one('tag.tie', 'equals', n), 'block', { priority: 900 }))
    }
    for (let i = 0; i < 4; i++) await decider()
    const monitored = await makeRule('Ties', one('tag.tie', 'gte', 0), 'challenge', {
      status: 'monitor',
      priority: 900,
    })
    for (let i = 0; i < 4; i++) await decider()
    for (let tie = 0; tie < 8; tie++) await identify({}, { tag: { tie } })
    for (const n of [0, 7]) await client.send('DELETE', `/v1/rules/${deciding[n]}`, { key })
    const { body } = await eventually(
      () => client.get(`/v1/rules/${monitored}/monitor`, key),
      ({ body }) => body.matched >= 8,
    )
    t.match(body, { matched: 8, wouldChange: { 'block→challenge': 4 } })
    for (const id of [monitored, ...deciding]) await client.send('DELETE', `/v1/rules/${id}`, { key })
  },
)

t.test('counters of a given event are read as those of a decided one', async (t) => {
  const conditions = one('velocity.visitor.events.5m', 'gte', 5)
  const ask = (events: object) => simulate({ conditions, event: { velocity: { visitor: { events } } } })
  t.equal((await ask({ '5m': 5 })).body.matched, true)
  t.equal((await ask({ '5m': 4 })).body.matched, false)
  t.equal((await ask({ '1h': 9 })).body.matched, false, 'what is not given is missing')
  t.same(refused(await ask({ '7d': 9 })), [400, 'validation_error', 'event.velocity.visitor.events.7d'])
})

t.test('statistics count every match once', async (t) => {
  const rules = [bots, high, watched]
  const stats = async () => Promise.all(rules.map(async (id) => (await client.get(`/v1/rules/${id}`, key)).body.stats))
  const wanted = [
    { matchCount: 3, monitorMatchCount: 0 },
    { matchCount: 2, monitorMatchCount: 0 },
    { matchCount: 0, monitorMatchCount: 5, lastMatchAt: null },
  ]
  const isComplete = (found: { matchCount: number; monitorMatchCount: number }[]) =>
    found.reduce((sum, { matchCount, monitorMatchCount }) => sum + matchCount + monitorMatchCount, 0) >= 10
  const before = await eventually(stats, isComplete)
  t.match(before, wanted)
  t.ok(Math.abs(Date.parse(before[1].lastMatchAt) - Date.parse(events[4].timestamp)) < 30_000, 'when it matched last')
})
