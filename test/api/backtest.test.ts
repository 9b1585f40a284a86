// Backtests against a real server whose test environment was filled with history through the real path.

import t from 'tap'
import { CHROME, errorOf, eventually } from '../helpers/client.ts'
import { sized } from '../helpers/depth.ts'
import { cleanUp } from '../helpers/server.ts'
import { openTenant } from '../helpers/tenant.ts'

t.teardown(cleanUp)

const { server, send, identify, admin } = await openTenant()
const { keys } = server
const key = keys.testSecret
const DAY_MS = 86_400_000
const HOUR_MS = 3_600_000

interface Made {
  readonly requestId: string
  readonly visitorId: string
  readonly country: string
  readonly suspect: number
  readonly daysAgo: number
}

/** Two visitors on each of ten days and the same token again a day later: forty events, scores and countries in turn. */
const made: Made[] = []
const COUNTRIES = ['CZ', 'JP', 'DE']
for (let day = 20; day > 0; day -= 2) {
  for (let visitor = 0; visitor < 2; visitor++) {
    let storageToken: string | null = null
    for (const daysAgo of [day, day - 1]) {
      const country = COUNTRIES[made.length % COUNTRIES.length] as string
      const suspect = (made.length * 13) % 100
      const at = new Date(Date.now() - daysAgo * DAY_MS + made.length * 1_000 + HOUR_MS).toISOString()
      const mock = { at, ip: '203.0.113.9', country, scores: { suspect, bot: 0.8 } }
      const body = { mock, storageToken, userAgent: CHROME, linkedId: `user_${made.length}`, tag: { n: made.length } }
      const answer = await identify(body, { key })
      if (answer.status !== 200) throw new Error(`identify: ${answer.status} ${answer.text}`)
      storageToken = answer.body.storageToken
      made.push({ requestId: answer.body.requestId, visitorId: answer.body.visitorId, country, suspect, daysAgo })
    }
  }
}

const leaf = (field: string, operator: string, value: unknown) => ({
  operator: 'AND',
  rules: [{ field, operator, value }],
})
const ALL = leaf('timestamp', 'exists', true)
const backtest = (body: object, call: object = {}) => send('POST', '/v1/rules/backtest', { key, body, ...call })
const block = { verdict: 'block' }

// Events are in backtests within two seconds of their answers.
await eventually(
  () => backtest({ conditions: ALL, days: 30 }),
  ({ body }) => body.totalEvents === made.length,
)

t.test('an unsaved rule: counts, days, verdicts and the newest matches', async (t) => {
  const conditions = {
    operator: 'OR',
    rules: [leaf('ip.country', 'in', ['JP', 'XX']), leaf('scores.suspect', 'gt', 90)],
  }
  const expected = made.filter(({ country, suspect }) => country === 'JP' || suspect > 90)
  const { status, body } = await backtest({ conditions, action: block, days: 30, sampleSize: 5 })
  t.equal(status, 200)
  t.same(Object.keys(body).sort(), [
    'byDay',
    'days',
    'durationMs',
    'estimatedFpr',
    'fprBasis',
    'fprInterval',
    'impact',
    'labeled',
    'listState',
    'matchCount',
    'matchRate',
    'precision',
    'recall',
    'ruleId',
    'sample',
    'totalEvents',
  ])
  t.match(body, {
    ruleId: null,
    matchCount: expected.length,
    totalEvents: made.length,
    matchRate: expected.length / made.length,
    days: 30,
    listState: 'current',
    labeled: { legitimate: 0, fraud: 0 },
    precision: null,
    recall: null,
    impact: { 'none→block': expected.length },
  })
  t.ok(Number.isInteger(body.durationMs) && body.durationMs >= 0)
  const newest = expected.toSorted((a, b) => (a.requestId < b.requestId ? 1 : -1)).slice(0, 5)
  t.same(
    body.sample.map(({ requestId, visitorId }: Made) => [requestId, visitorId]),
    newest.map(({ requestId, visitorId }) => [requestId, visitorId]),
  )
  for (const { timestamp } of body.sample) t.match(timestamp, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
  t.equal(body.byDay.length, 31)
  t.same(
    body.byDay.reduce((sum: number, { total }: { total: number }) => sum + total, 0),
    made.length,
  )
  t.same(
    body.byDay.reduce((sum: number, { matched }: { matched: number }) => sum + matched, 0),
    expected.length,
  )
})

t.test('a smaller sample is the beginning of a larger one', async (t) => {
  const sampleOf = async (sampleSize: number) =>
    (await backtest({ conditions: leaf('scores.suspect', 'gte', 30), days: 30, sampleSize })).body.sample
  const all = await sampleOf(100)
  t.equal(all.length, made.filter(({ suspect }) => suspect >= 30).length)
  for (const size of [1, 2, 7, all.length - 1]) t.same(await sampleOf(size), all.slice(0, size), `${size}`)
})

t.test('without labels the false positives are estimated among those who look harmless', async (t) => {
  const { body } = await backtest({ conditions: leaf('ip.country', 'equals', 'JP'), action: block, days: 30 })
  // Every visitor came on two days.
  const harmless = made.filter(({ suspect }) => suspect < 20)
  const hit = harmless.filter(({ country }) => country === 'JP')
  t.equal(body.fprBasis, 'proxy')
  t.equal(body.estimatedFpr, hit.length / harmless.length)
  t.ok(body.fprInterval[0] < body.estimatedFpr && body.fprInterval[1] > body.estimatedFpr)
  const allow = await backtest({ conditions: ALL, action: { verdict: 'allow' }, days: 30 })
  t.match(allow.body, { fprBasis: 'none', estimatedFpr: 0, fprInterval: null })
  t.same((await backtest({ conditions: ALL, days: 30 })).body.impact, {}, 'no action, no verdict it would have had')
})

t.test('a saved rule in any status, by default over seven days and with ten samples', async (t) => {
  const rule = { name: 'Suspects', conditions: leaf('scores.suspect', 'gte', 50), action: block, status: 'draft' }
  const { body: saved } = await send('POST', '/v1/rules', { key, body: rule })
  const path = `/v1/rules/${saved.id}/backtest`
  const recent = made.filter(({ daysAgo }) => daysAgo <= 7)
  const expected = recent.filter(({ suspect }) => suspect >= 50)
  for (const call of [{}, { body: {} }]) {
    const { status, body } = await send('POST', path, { key, ...call })
    t.equal(status, 200)
    t.match(body, { ruleId: saved.id, days: 7, matchCount: expected.length, totalEvents: recent.length })
    t.equal(body.sample.length, Math.min(10, expected.length))
  }
  t.equal((await send('POST', path, { key: keys.secret, body: {} })).status, 404, 'of the other environment')
  t.equal((await send('POST', path, { key: keys.testPublic, body: {} })).status, 403)
  t.equal((await send('POST', '/v1/rules/rul_00000000000000000000/backtest', { key, body: {} })).status, 404)
  t.equal((await send('POST', '/v1/rules/x/backtest', { key })).status, 404)
})

t.test('what cannot be asked is refused by name', async (t) => {
  const refused: [object, string][] = [
    [{}, 'conditions'],
    [{ conditions: ALL, days: 0 }, 'days'],
    [{ conditions: ALL, days: 31 }, 'days'],
    [{ conditions: ALL, days: 1.5 }, 'days'],
    [{ conditions: ALL, sampleSize: 101 }, 'sampleSize'],
    [{ conditions: ALL, sampleSize: '10' }, 'sampleSize'],
    [{ conditions: ALL, limit: 1 }, 'limit'],
    [{ conditions: { operator: 'AND', rules: [] } }, 'conditions.rules'],
    [{ conditions: leaf('nothing', 'equals', 1) }, 'conditions.rules[0].field'],
    [{ conditions: leaf('visitorId', 'in', 'no_such_list') }, 'conditions.rules[0].value'],
    [{ conditions: ALL, action: { verdict: 'perhaps' } }, 'action.verdict'],
  ]
  for (const [body, field] of refused) {
    const answer = await backtest(body)
    t.equal(answer.status, 400)
    t.same(errorOf(answer), { code: 'validation_error', field })
  }
})

t.test('hostile texts are compared like any other', async (t) => {
  const texts = ["'", '\\', "\\'; DROP TABLE events; --", '{p0:String}', '\u0000', '\n', '%', 'É😀', '`"']
  const fields = ['linkedId', 'tag.x', 'device.browser', 'ip']
  const operators = ['equals', 'contains', 'not_equals']
  /** One combination in so many, another for every text. */
  const every = sized({ quick: 4, usual: 2, long: 1 })
  let n = 0
  for (const text of texts) {
    n += 1
    for (const field of fields) {
      for (const operator of operators) {
        n += 1
        if (n % every !== 0) continue
        const { status, body } = await backtest({ conditions: leaf(field, operator, text), days: 30 })
        t.equal(status, 200)
        const all = operator === 'not_equals' && field !== 'tag.x'
        t.equal(body.matchCount, all ? made.length : 0, `${field} ${operator}`)
      }
    }
    const keyed = `tag.${text.replaceAll('.', '')}`
    t.equal((await backtest({ conditions: leaf(keyed, 'exists', true), days: 30 })).body.matchCount, 0)
  }
})

t.test('conditions as large as they may be are asked like any other', async (t) => {
  const texts = Array.from({ length: 1_000 }, (_, i) => (i === 500 ? 'user_7' : `${'é\\'.repeat(50)}${i}`))
  const numbers = Array.from({ length: 1_000 }, (_, i) => (i === 500 ? 7 : -i - 0.1))
  for (const [field, literals] of [
    ['linkedId', texts],
    ['tag.n', numbers],
  ] as const) {
    const inside = await backtest({ conditions: leaf(field, 'in', literals), days: 30 })
    t.equal(inside.status, 200)
    t.equal(inside.body.matchCount, 1, `${field} in`)
    const outside = await backtest({ conditions: leaf(field, 'not_in', literals), days: 30 })
    t.equal(outside.body.matchCount, made.length - 1, `${field} not_in`)
  }
  const rules = Array.from({ length: 50 }, (_, i) => leaf('url', 'contains', `${'\\'.repeat(1_000)}${i}`))
  const wide = await backtest({ conditions: { operator: 'OR', rules }, days: 30 })
  t.match([wide.status, wide.body.matchCount], [200, 0])
})

t.test('events of an erased visitor are gone from the next backtest', async (t) => {
  const [first] = made as [Made, ...Made[]]
  const conditions = leaf('visitorId', 'equals', first.visitorId)
  t.equal((await backtest({ conditions, days: 30 })).body.matchCount, 2)
  t.equal((await send('DELETE', `/v1/visitors/${first.visitorId}`, { key })).status, 200)
  t.match((await backtest({ conditions, days: 30 })).body, { matchCount: 0, totalEvents: made.length - 2, sample: [] })
})

t.test('below Pro scores are missing, as they are for the live rules', async (t) => {
  const rule = { name: 'Scores', conditions: leaf('scores.suspect', 'gte', 0), action: block }
  const { body: saved } = await send('POST', '/v1/rules', { key, body: rule })
  const path = `/workspaces/${server.workspace}`
  t.equal((await admin('PATCH', path, { plan: 'starter' })).status, 200)
  const answer = await eventually(
    () => send('POST', `/v1/rules/${saved.id}/backtest`, { key, body: { days: 30 } }),
    ({ body }) => body.matchCount === 0,
  )
  t.match(answer.body, { matchCount: 0, totalEvents: made.length - 2 })
  const unsaved = await backtest({ conditions: rule.conditions })
  t.equal(errorOf(unsaved).code, 'plan_required')
  await admin('PATCH', path, { plan: 'enterprise' })
})
