import t from 'tap'
import { CONDITIONS, openServer, RULE } from '../helpers/rest-surface.ts'

const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/

t.test('a created rule answers with the documented members, defaults and a confirmed revision', async (t) => {
  const { send, secret: key } = await openServer(t)
  const made = await send('POST', '/v1/rules', { key, body: RULE })
  t.equal(made.status, 201)
  t.same(Object.keys(made.body), ['id', 'name', 'priority', 'status', 'createdAt', 'propagated', 'propagationMs'])
  t.match(made.body, { name: 'Bots', priority: 10, status: 'draft', createdAt: TIME, propagated: true })
  t.match(made.body.id, /^rul_[0-9A-Za-z]{20}$/)
  t.ok(Number.isInteger(made.body.propagationMs) && made.body.propagationMs < 20_000)
  const next = await send('POST', '/v1/rules', { key, body: { ...RULE, priority: 25, status: 'live' } })
  t.match(next.body, { priority: 25, status: 'live' })
  t.equal((await send('POST', '/v1/rules', { key, body: { ...RULE, status: 'monitor' } })).body.priority, 35)
  for (const priority of [-(2 ** 31), 2 ** 31 - 1]) {
    t.match(await send('POST', '/v1/rules', { key, body: { ...RULE, priority } }), { status: 201, body: { priority } })
  }
  const full = await send('POST', '/v1/rules', { key, body: RULE })
  t.match(full, { status: 409, body: { error: { code: 'conflict' } } }, 'no room after the highest')
  for (const priority of [-(2 ** 31) - 1, 2 ** 31, 1.5]) {
    const refused = await send('POST', '/v1/rules', { key, body: { ...RULE, priority } })
    t.match(refused, { status: 400, body: { error: { field: 'priority' } } })
  }
})

t.test('a Slack address with characters that are none, without a host or with port 0 is refused', async (t) => {
  const { send, secret: key } = await openServer(t)
  for (const end of ['\0', '\u0007x', ' x', '\x7f']) {
    const sideEffects = [{ type: 'slack', url: `https://hooks.slack.com/services/${end}` }]
    const { status, body } = await send('POST', '/v1/rules', { key, body: { ...RULE, sideEffects } })
    t.match({ status, body }, { status: 400, body: { error: { field: 'sideEffects[0].url' } } }, JSON.stringify(end))
  }
  for (const url of ['https:///hooks.slack.com/x', 'https://hooks.slack.com:0/x']) {
    const { status } = await send('POST', '/v1/rules', {
      key,
      body: { ...RULE, sideEffects: [{ type: 'slack', url }] },
    })
    t.equal(status, 400, url)
  }
})

t.test('without a running evaluator a change is made but not called propagated', async (t) => {
  const { send, secret: key } = await openServer(t, { evaluator: false })
  const made = await send('POST', '/v1/rules', { key, body: RULE })
  t.match(made, { status: 201, body: { propagated: false } })
})

t.test('a rule reads back whole, with statistics', async (t) => {
  const lastMatchAt = Date.UTC(2026, 10, 1)
  const { send, secret: key } = await openServer(t, {
    ruleStats: async () => ({ matchCount: 3, lastMatchAt, monitorMatchCount: 1 }),
  })
  const sideEffects = [{ type: 'log', level: 'warn', message: 'seen {{visitorId}}' }]
  const action = { verdict: 'challenge', challengeType: 'otp', sideEffects }
  const { body: made } = await send('POST', '/v1/rules', { key, body: { ...RULE, action } })
  const read = await send('GET', `/v1/rules/${made.id}`, { key })
  t.same(read.body, {
    id: made.id,
    name: 'Bots',
    status: 'draft',
    priority: 10,
    conditions: CONDITIONS,
    action,
    sideEffects,
    stats: { matchCount: 3, lastMatchAt: '2026-11-01T00:00:00.000Z', monitorMatchCount: 1 },
    createdAt: made.createdAt,
    updatedAt: made.createdAt,
  })
})

t.test('rules are listed by priority with filter, page and total', async (t) => {
  const { send, secret: key } = await openServer(t)
  const nested = {
    operator: 'OR',
    rules: [CONDITIONS.rules[0], { ...CONDITIONS, rules: [...CONDITIONS.rules, ...CONDITIONS.rules] }],
  }
  for (const [name, priority, status] of [
    ['c', 30, 'live'],
    ['a', 10, 'draft'],
    ['b', 20, 'live'],
    ['d', 30, 'monitor'],
  ]) {
    await send('POST', '/v1/rules', { key, body: { ...RULE, conditions: nested, name, priority, status } })
  }
  const list = async (query: string) => {
    const { status, body } = await send('GET', `/v1/rules${query}`, { key })
    t.equal(status, 200)
    return { names: body.data.map((rule: { name: string }) => rule.name).join(''), total: body.total, data: body.data }
  }
  const all = await list('')
  t.match(all, { names: 'abcd', total: 4 })
  t.same(Object.keys(all.data[0]), ['id', 'name', 'status', 'priority', 'conditions', 'action', 'createdAt'])
  t.match(all.data[0], { conditions: { operator: 'OR', count: 3 }, action: 'block', createdAt: TIME })
  t.match(await list('?status=live'), { names: 'bc', total: 2 })
  t.match(await list('?status=paused'), { names: '', total: 0 })
  t.match(await list('?limit=2&offset=1'), { names: 'bc', total: 4 })
  t.match(await list('?limit=100&offset=10000'), { names: '', total: 4 })

  for (const [query, field] of [
    ['limit=0', 'limit'],
    ['limit=101', 'limit'],
    ['limit=abc', 'limit'],
    ['limit=1e1', 'limit'],
    ['limit=', 'limit'],
    ['limit=1.0', 'limit'],
    ['limit=0x10', 'limit'],
    ['limit=5&limit=6', 'limit'],
    ['offset=-1', 'offset'],
    ['offset=10001', 'offset'],
    ['status=nope', 'status'],
    ['sort=name', 'sort'],
    ['__proto__=1', '__proto__'],
    ['status=%ff', 'status'],
  ]) {
    const refused = await send('GET', `/v1/rules?${query}`, { key })
    t.match(refused, { status: 400, body: { error: { code: 'validation_error', field } } }, query as string)
  }
})

t.test('a partial update changes what it names and nothing else', async (t) => {
  const { send, secret: key } = await openServer(t)
  const sideEffects = [{ type: 'log', level: 'info', message: 'one' }]
  const { body: made } = await send('POST', '/v1/rules', {
    key,
    body: { ...RULE, action: { verdict: 'challenge', challengeType: 'otp' }, sideEffects },
  })
  const path = `/v1/rules/${made.id}`
  const read = async () => (await send('GET', path, { key })).body
  const put = (body: unknown) => send('PUT', path, { key, body })
  const before = await read()

  const renamed = await put({ name: 'New', status: 'paused' })
  t.equal(renamed.status, 200)
  t.same(Object.keys(renamed.body), ['id', 'name', 'status', 'priority', 'updatedAt', 'propagated', 'propagationMs'])
  t.match(renamed.body, { id: made.id, name: 'New', status: 'paused', priority: 10, updatedAt: TIME, propagated: true })
  t.same(await read(), { ...before, name: 'New', status: 'paused', updatedAt: renamed.body.updatedAt })

  await put({ action: { verdict: 'block' } })
  t.same((await read()).action, { verdict: 'block', sideEffects }, 'an action without side effects keeps them')
  const other = [{ type: 'log', level: 'error' }]
  await put({ sideEffects: other })
  t.same((await read()).action, { verdict: 'block', sideEffects: other }, 'side effects alone replace side effects')
  await put({ action: { verdict: 'allow', sideEffects }, sideEffects })
  t.same((await read()).action, { verdict: 'allow', sideEffects }, 'the same twice is no contradiction')
  await put({ sideEffects: [] })
  t.same((await read()).sideEffects, [], 'an empty array clears')
  const torn = await put({ action: { verdict: 'allow', sideEffects }, sideEffects: other })
  t.match(torn, { status: 400, body: { error: { code: 'validation_error', field: 'sideEffects' } } })

  const last = await read()
  for (const empty of [{ body: {} }, { raw: '' }]) {
    const nothing = await send('PUT', path, { key, ...empty })
    t.match(nothing, { status: 200, body: { updatedAt: last.updatedAt, propagated: true } })
  }
  t.same(await read(), last, 'an empty update changes nothing')
})

t.test('any move between the four states is allowed in an update', async (t) => {
  const { send, secret: key } = await openServer(t)
  const { body } = await send('POST', '/v1/rules', { key, body: RULE })
  for (const status of ['live', 'monitor', 'paused', 'draft', 'paused', 'live', 'draft', 'monitor', 'live']) {
    t.match(await send('PUT', `/v1/rules/${body.id}`, { key, body: { status } }), { status: 200, body: { status } })
  }
})

t.test('an ETag names one state of a rule, and If-Match writes to that state only', async (t) => {
  const { send, secret: key } = await openServer(t)
  const made = await send('POST', '/v1/rules', { key, body: RULE })
  const path = `/v1/rules/${made.body.id}`
  const etag = made.headers.get('etag') ?? ''
  t.match(etag, /^"\d+"$/)
  t.equal((await send('GET', path, { key })).headers.get('etag'), etag)
  const first = await send('PUT', path, { key, body: { name: 'x' }, headers: { 'If-Match': etag } })
  t.equal(first.status, 200)
  t.not(first.headers.get('etag'), etag)
  const conflict = { status: 409, body: { error: { code: 'conflict' } } }
  t.match(await send('PUT', path, { key, body: { name: 'y' }, headers: { 'If-Match': etag } }), conflict)
  t.match(await send('PUT', path, { key, body: {}, headers: { 'If-Match': etag } }), conflict)
  t.match(await send('DELETE', path, { key, headers: { 'If-Match': etag } }), conflict)
  for (const other of ['"yesterday"', `W/${first.headers.get('etag')}`, '"a", "b"', '""']) {
    t.match(await send('PUT', path, { key, body: { name: 'y' }, headers: { 'If-Match': other } }), conflict, other)
    t.match(await send('DELETE', path, { key, headers: { 'If-Match': other } }), conflict, other)
  }
  for (const none of ['yesterday', '"open', '"a" "b"', ',', '"1", "2"']) {
    t.match(
      await send('PUT', path, { key, body: { name: 'y' }, headers: { 'If-Match': none } }),
      { status: 400, body: { error: { code: 'validation_error', field: 'If-Match' } } },
      none,
    )
  }
  const among = `"a", ${first.headers.get('etag')}`
  t.equal((await send('PUT', path, { key, body: { name: 'z' }, headers: { 'If-Match': among } })).status, 200)
  t.equal((await send('PUT', path, { key, body: { name: 'y' }, headers: { 'If-Match': '*' } })).status, 200)
  const racers = await Promise.all(
    ['a', 'b', 'c'].map(async (name) => {
      const { headers } = await send('GET', path, { key })
      return send('PUT', path, { key, body: { name }, headers: { 'If-Match': headers.get('etag') ?? '' } })
    }),
  )
  t.ok(racers.some(({ status }) => status === 200))
  t.ok(racers.every(({ status }) => status === 200 || status === 409))
})

t.test('a deleted rule is gone, and deleting it again finds nothing', async (t) => {
  const { send, secret: key } = await openServer(t)
  const { body } = await send('POST', '/v1/rules', { key, body: { ...RULE, status: 'live' } })
  const path = `/v1/rules/${body.id}`
  const gone = await send('DELETE', path, { key })
  t.match(gone, { status: 200, body: { deleted: true, ruleId: body.id } })
  for (const [method, sent] of [
    ['GET', {}],
    ['PUT', { body: { name: 'x' } }],
    ['DELETE', {}],
  ] as const) {
    t.match(await send(method, path, { key, ...sent }), { status: 404, body: { error: { code: 'not_found' } } })
  }
  t.same((await send('GET', '/v1/rules', { key })).body, { data: [], total: 0 })
})

t.test('the maxima hold exactly, for rules and for active ones', async (t) => {
  const { send, secret: key } = await openServer(t, { maxima: { rulesMax: 3, activeMax: 1 } })
  const refused = { status: 409, body: { error: { code: 'resource_limit_reached' } } }
  const create = (status: string) => send('POST', '/v1/rules', { key, body: { ...RULE, status } })
  const live = await create('live')
  t.equal(live.status, 201)
  t.match(await create('monitor'), refused)
  const draft = await create('draft')
  t.equal(draft.status, 201)
  t.match(await send('PUT', `/v1/rules/${draft.body.id}`, { key, body: { status: 'monitor' } }), refused)
  t.equal((await send('PUT', `/v1/rules/${live.body.id}`, { key, body: { status: 'monitor' } })).status, 200)
  t.equal((await create('draft')).status, 201)
  t.match(await create('draft'), refused)
  await send('DELETE', `/v1/rules/${live.body.id}`, { key })
  t.equal((await create('live')).status, 201)
})

t.test('every invalid member of a rule is named', async (t) => {
  const { send, secret: key } = await openServer(t)
  const leaf = CONDITIONS.rules[0]
  const withLeaf = (more: object) => ({ ...RULE, conditions: { operator: 'AND', rules: [{ ...leaf, ...more }] } })
  const { name: _, ...nameless } = RULE
  const cases: [unknown, string][] = [
    [nameless, 'name'],
    [{ ...RULE, name: '' }, 'name'],
    [{ ...RULE, name: 'x'.repeat(201) }, 'name'],
    [{ ...RULE, name: 7 }, 'name'],
    [{ ...RULE, conditions: undefined }, 'conditions'],
    [{ ...RULE, conditions: [] }, 'conditions'],
    [{ ...RULE, conditions: { operator: 'XOR', rules: [leaf] } }, 'conditions.operator'],
    [{ ...RULE, conditions: { operator: 'AND', rules: [] } }, 'conditions.rules'],
    [withLeaf({ field: 'constructor.name' }), 'conditions.rules[0].field'],
    [withLeaf({ operator: 'gt' }), 'conditions.rules[0].operator'],
    [withLeaf({ value: 'yes' }), 'conditions.rules[0].value'],
    [withLeaf({ field: 'visitorId', operator: 'in', value: 'no_such_list' }), 'conditions.rules[0].value'],
    [{ ...RULE, action: undefined }, 'action'],
    [{ ...RULE, action: 'block' }, 'action'],
    [{ ...RULE, action: { verdict: 'deny' } }, 'action.verdict'],
    [{ ...RULE, action: { verdict: 'challenge', challengeType: 'riddle' } }, 'action.challengeType'],
    [{ ...RULE, sideEffects: [{ type: 'shout' }] }, 'sideEffects[0].type'],
    [{ ...RULE, priority: 1.5 }, 'priority'],
    [{ ...RULE, priority: 2 ** 31 }, 'priority'],
    [{ ...RULE, priority: -(2 ** 31) - 1 }, 'priority'],
    [{ ...RULE, status: 'paused' }, 'status'],
    [{ ...RULE, id: 'rul_mine' }, 'id'],
    [[], 'body'],
  ]
  for (const [body, field] of cases) {
    const refused = await send('POST', '/v1/rules', { key, body })
    t.match(refused, { status: 400, body: { error: { code: 'validation_error', field } } }, `${field}`)
  }
  const longest = await send('POST', '/v1/rules', {
    key,
    body: { ...RULE, name: '😀'.repeat(200), priority: -(2 ** 31) },
  })
  t.equal(longest.status, 201)
})

t.test('the fields a condition may name are listed with their operators', async (t) => {
  const { send, secret: key } = await openServer(t)
  const { status, body } = await send('GET', '/v1/rules/fields', { key })
  t.equal(status, 200)
  const byPath = new Map(body.data.map((field: { path: string }) => [field.path, field]))
  t.match(byPath.get('scores.suspect'), {
    type: 'number',
    category: 'scores',
    operators: ['equals', 'not_equals', 'gt'],
  })
  t.match(byPath.get('tag.<key>'), { type: 'any', nullable: true, list: 'any' })
  t.match(byPath.get('signals.bot.detected'), { type: 'boolean', nullable: false, list: null })
  t.match(byPath.get('email'), { type: 'string', nullable: true, list: 'email' })
  const MEMBERS = ['path', 'type', 'label', 'category', 'nullable', 'operators', 'list']
  for (const { note: _, ...field } of body.data) t.same(Object.keys(field), MEMBERS)
})

t.test('a rule on scores needs a plan that has them', async (t) => {
  const { send, admin } = await openServer(t)
  const { body: workspace } = await admin('POST', '/workspaces', { name: 'small', plan: 'starter' })
  const made = await admin('POST', `/workspaces/${workspace.id}/keys`, { kind: 'secret', environment: 'live' })
  const scores = { operator: 'AND', rules: [{ field: 'scores.bot', operator: 'gt', value: 0.5 }] }
  const body = { ...RULE, conditions: scores }
  t.match(await send('POST', '/v1/rules', { key: made.body.key, body }), {
    status: 403,
    body: { error: { code: 'plan_required', field: 'conditions.rules[0].field' } },
  })
  await admin('PATCH', `/workspaces/${workspace.id}`, { plan: 'pro' })
  t.equal((await send('POST', '/v1/rules', { key: made.body.key, body })).status, 201)
})
