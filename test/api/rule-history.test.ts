// The audit log, the versions of a rule and rollback, over HTTP.

import t, { type Test } from 'tap'
import { errorOf } from '../helpers/client.ts'
import { type Answer, CONDITIONS, openServer, RULE } from '../helpers/rest-surface.ts'

const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/
const UNKNOWN = 'rul_00000000000000000000'

async function open(t: Test) {
  const server = await openServer(t)
  const { send, secret: key } = server
  const put = (id: string, body: unknown, headers: Record<string, string> = {}) =>
    send('PUT', `/v1/rules/${id}`, { key, body, headers })
  const get = (path: string, by = key) => send('GET', path, { key: by })
  const rollback = (id: string, body: unknown, headers: Record<string, string> = {}) =>
    send('POST', `/v1/rules/${id}/rollback`, { key, body, headers })
  const made = await send('POST', '/v1/rules', { key, body: { ...RULE, status: 'live' } })
  return { ...server, key, put, get, rollback, made, id: made.body.id as string }
}

const refused = (answer: Answer) => {
  const { code, field } = errorOf({ ...answer, text: JSON.stringify(answer.body) })
  return [answer.status, code, ...(field === undefined ? [] : [field])]
}

t.test('every write of a rule is in the audit log, newest first, with what it changed', async (t) => {
  const { send, key, put, get, id, admin } = await open(t)
  await put(id, { name: 'Renamed' })
  await put(id, {})
  await put(id, { status: 'paused', action: { verdict: 'allow' } })
  const before = await get(`/v1/rules/${id}`)
  await send('DELETE', `/v1/rules/${id}`, { key })
  const { status, body } = await get(`/v1/audit?resource=rule&id=${id}`)
  t.equal(status, 200)
  t.same(Object.keys(body), ['data', 'hasMore', 'nextCursor'])
  t.match(body, { hasMore: false, nextCursor: null })
  t.same(Object.keys(body.data[0]), ['at', 'actor', 'by', 'resource', 'id', 'action', 'before', 'after'])
  t.same(
    body.data.map(({ action }: { action: string }) => action),
    ['delete', 'update', 'update', 'create'],
    'an update without changes is no entry',
  )
  const [deleted, paused, renamed, created] = body.data
  for (const entry of body.data) t.match(entry, { at: TIME, actor: key.slice(-4), resource: 'rule', id })
  t.match(created, { before: null, after: { id, name: 'Bots', status: 'live', conditions: CONDITIONS } })
  t.match(renamed, { before: { name: 'Bots' }, after: { name: 'Renamed', status: 'live' } })
  t.match(paused, { before: { action: { verdict: 'block' } }, after: { action: { verdict: 'allow' } } })
  const { stats: _, ...definition } = before.body
  t.same([deleted.before, deleted.after], [definition, null], 'the whole rule as it was')
  const text = JSON.stringify(body)
  t.notOk(text.includes(key) || text.includes('digest'), 'nothing of a key but its end')

  const other = await admin('POST', '/workspaces/ws_default/keys', { kind: 'secret', environment: 'live' })
  const { body: second } = await send('POST', '/v1/rules', { key: other.body.key, body: RULE })
  const { body: newest } = await get('/v1/audit?limit=1')
  t.match(newest, { data: [{ id: second.id, actor: other.body.key.slice(-4), action: 'create' }], hasMore: true })
})

t.test('the log is read page by page, and a cursor is good only for its question', async (t) => {
  const { put, get, id, testSecret, send, key } = await open(t)
  for (let i = 0; i < 6; i++) await put(id, { name: `Name ${i}` })
  await send('POST', '/v1/rules', { key, body: RULE })
  for (const [query, count] of [
    ['?resource=rule', 8],
    [`?resource=rule&id=${id}`, 7],
  ] as const) {
    const seen: string[] = []
    let cursor: string | null = ''
    while (cursor !== null) {
      const path: string = `/v1/audit${query}&limit=3`
      const { status, body }: Answer = await get(cursor === '' ? path : `${path}&cursor=${cursor}`)
      t.equal(status, 200)
      t.equal(body.hasMore, body.nextCursor !== null)
      seen.push(...body.data.map((entry: { after: { name: string; updatedAt: string } }) => entry.after.name))
      cursor = body.nextCursor
    }
    t.equal(seen.length, count, query)
    t.same(seen.slice(-7), ['Name 5', 'Name 4', 'Name 3', 'Name 2', 'Name 1', 'Name 0', 'Bots'])
  }
  const { body: first } = await get('/v1/audit?limit=2')
  t.same(refused(await get(`/v1/audit?resource=rule&limit=2&cursor=${first.nextCursor}`)), BAD_CURSOR, 'other filter')
  t.same(
    refused(await get(`/v1/audit?limit=2&cursor=${first.nextCursor}`, testSecret)),
    BAD_CURSOR,
    'other environment',
  )
  t.same(refused(await get(`/v1/audit?cursor=${first.nextCursor}x`)), BAD_CURSOR, 'tampered')
  t.same(refused(await get('/v1/audit?cursor=AAAA')), BAD_CURSOR)
  t.match(
    (await get('/v1/audit?resource=rule', testSecret)).body,
    { data: [], hasMore: false },
    'environments see their own',
  )
})

const BAD_CURSOR = [400, 'validation_error', 'cursor']

t.test('versions show every state of a rule, and end with it', async (t) => {
  const { send, key, put, get, made, id } = await open(t)
  const renamed = await put(id, { name: 'Renamed' })
  const { status, body } = await get(`/v1/rules/${id}/versions`)
  t.equal(status, 200)
  t.match(body, { hasMore: false, nextCursor: null })
  t.same(
    body.data.map(({ version, etag, action }: Record<string, unknown>) => [version, etag, action]),
    [
      [2, renamed.headers.get('etag'), 'update'],
      [1, made.headers.get('etag'), 'create'],
    ],
  )
  t.same(Object.keys(body.data[0]), ['version', 'etag', 'at', 'actor', 'action', 'rule'])
  const { stats: _, ...now } = (await get(`/v1/rules/${id}`)).body
  t.same(body.data[0].rule, now)
  t.match(body.data[1], { at: TIME, actor: key.slice(-4), rule: { name: 'Bots' } })
  const page = await get(`/v1/rules/${id}/versions?limit=1`)
  t.equal(page.body.hasMore, true)
  const next = await get(`/v1/rules/${id}/versions?limit=1&cursor=${page.body.nextCursor}`)
  t.same([...page.body.data, ...next.body.data], body.data)

  await send('DELETE', `/v1/rules/${id}`, { key })
  const left = await get(`/v1/rules/${id}/versions`)
  t.match(left.body.data[0], { version: 3, action: 'delete', rule: null })
  t.same(left.body.data.slice(1), body.data, 'they outlive the rule')
  t.same(refused(await get(`/v1/rules/${UNKNOWN}/versions`)), [404, 'not_found'])
  t.equal((await get(`/v1/audit?resource=rule&id=${id}`)).body.data.length, 3, 'the audit log keeps it')
})

t.test('a rollback brings a version back as a new one, whole', async (t) => {
  const { put, get, rollback, made, id } = await open(t)
  const first = (await get(`/v1/rules/${id}`)).body
  const version = Number(made.headers.get('etag')?.slice(1, -1))
  const nested = { operator: 'OR', rules: [CONDITIONS.rules[0], CONDITIONS] }
  const sideEffects = [{ type: 'log', level: 'warn' }]
  await put(id, {
    name: 'Other',
    priority: 77,
    status: 'paused',
    conditions: nested,
    action: { verdict: 'challenge', challengeType: 'otp', sideEffects },
  })
  const back = await rollback(id, { version })
  t.equal(back.status, 200)
  t.same(Object.keys(back.body), ['id', 'name', 'status', 'priority', 'updatedAt', 'propagated', 'propagationMs'])
  t.match(back.body, { id, name: 'Bots', status: 'live', priority: first.priority, updatedAt: TIME, propagated: true })
  const now = await get(`/v1/rules/${id}`)
  t.same(now.body, { ...first, updatedAt: back.body.updatedAt })
  t.equal(now.headers.get('etag'), back.headers.get('etag'))
  t.not(now.headers.get('etag'), made.headers.get('etag'), 'a version of its own')
  t.match((await get(`/v1/audit?limit=1`)).body.data, [
    { action: 'rollback', before: { name: 'Other' }, after: { name: 'Bots' } },
  ])
  t.equal((await get('/v1/rules?status=live')).body.total, 1, 'counted as live again')
  t.equal((await rollback(id, { version: 2 })).body.name, 'Other', 'by its number')
  t.equal((await rollback(id, { version: 1 })).body.name, 'Bots')
})

t.test('If-Match protects every write, and what cannot be rolled back is refused', async (t) => {
  const { send, key, put, get, rollback, made, id, testSecret } = await open(t)
  const old = made.headers.get('etag') ?? ''
  const version = Number(old.slice(1, -1))
  const renamed = await put(id, { name: 'Renamed' }, { 'If-Match': old })
  t.equal(renamed.status, 200)
  const newest = renamed.headers.get('etag') ?? ''
  t.same(refused(await put(id, { name: 'Lost' }, { 'If-Match': old })), [409, 'conflict'])
  t.same(refused(await put(id, {}, { 'If-Match': old })), [409, 'conflict'], 'even without a change')
  t.same(refused(await rollback(id, { version }, { 'If-Match': old })), [409, 'conflict'])
  t.same(refused(await send('DELETE', `/v1/rules/${id}`, { key, headers: { 'If-Match': old } })), [409, 'conflict'])
  t.same(refused(await put(id, { name: 'x' }, { 'If-Match': 'W/"1"' })), [409, 'conflict'])
  t.same(refused(await rollback(id, { version }, { 'If-Match': '"another"' })), [409, 'conflict'])
  t.same(refused(await rollback(id, { version }, { 'If-Match': '1' })), [400, 'validation_error', 'If-Match'])
  t.equal((await rollback(id, { version }, { 'If-Match': newest })).status, 200)
  t.equal((await put(id, { name: 'Any' }, { 'If-Match': '*' })).status, 200)

  t.same(refused(await rollback(id, {})), [400, 'validation_error', 'version'])
  t.same(refused(await rollback(id, { version: '1' })), [400, 'validation_error', 'version'])
  t.same(refused(await rollback(id, { version: 0 })), [400, 'validation_error', 'version'])
  t.same(refused(await rollback(id, { version, status: 'live' })), [400, 'validation_error', 'status'])
  t.same(refused(await rollback(id, { version: 999_999 })), [404, 'not_found'])
  t.same(refused(await rollback(UNKNOWN, { version })), [404, 'not_found'])
  const { body: other, headers } = await send('POST', '/v1/rules', { key, body: RULE })
  t.same(
    refused(await rollback(id, { version: Number(headers.get('etag')?.slice(1, -1)) })),
    [404, 'not_found'],
    other.id,
  )
  const foreign = await send('POST', `/v1/rules/${id}/rollback`, { key: testSecret, body: { version } })
  t.same(refused(foreign), [404, 'not_found'], 'another environment')

  t.same(refused(await get('/v1/rules/nonsense/versions')), [404, 'not_found'])
  t.same(refused(await get(`/v1/rules/${id}/versions?limit=101`)), [400, 'validation_error', 'limit'])
  t.same(refused(await get('/v1/audit?resource=nothing')), [400, 'validation_error', 'resource'])
  t.same(refused(await get(`/v1/audit?id=${id}`)), [400, 'validation_error', 'resource'])
  t.same(refused(await get('/v1/audit?resource=rule&id=a/b')), [400, 'validation_error', 'id'])
})

t.test('a version is brought back only if a body that says the same would be taken', async (t) => {
  const { send, key, put, get, rollback, id, admin } = await open(t)
  const make = async (path: string, body: unknown) => (await send('POST', path, { key, body })).body.id as string
  const listId = await make('/v1/lists', { name: 'gone', type: 'ip' })
  const webhookId = await make('/v1/webhooks', { url: 'https://hooks.example.com/a', events: ['*'] })
  const oneOf = (field: string, operator: string, value: unknown) => ({
    operator: 'AND',
    rules: [{ field, operator, value }],
  })
  const slack = { type: 'slack', url: 'https://hooks.slack.com/services/T0/B0/secret' }
  for (const changes of [
    { conditions: oneOf('ip', 'in', 'gone') },
    { conditions: oneOf('scores.bot', 'gt', 0.5), action: { verdict: 'block', sideEffects: [] } },
    { conditions: CONDITIONS, action: { verdict: 'block', sideEffects: [{ type: 'webhook', webhookId }] } },
    { sideEffects: [{ type: 'addToList', list: 'gone' }] },
    { sideEffects: [slack, { type: 'log' }] },
  ]) {
    t.equal((await put(id, changes)).status, 200, JSON.stringify(changes))
  }
  await send('DELETE', `/v1/lists/${listId}`, { key })
  await send('DELETE', `/v1/webhooks/${webhookId}`, { key })
  await admin('PATCH', '/workspaces/ws_default', { plan: 'starter' })
  const before = await get(`/v1/rules/${id}`)
  t.same(refused(await rollback(id, { version: 2 })), [400, 'validation_error', 'conditions.rules[0].value'])
  t.same(refused(await rollback(id, { version: 3 })), [403, 'plan_required', 'conditions.rules[0].field'])
  t.same(refused(await rollback(id, { version: 4 })), [400, 'validation_error', 'action.sideEffects[0].webhookId'])
  t.same(refused(await rollback(id, { version: 5 })), [400, 'validation_error', 'action.sideEffects[0].list'])
  t.same((await get(`/v1/rules/${id}`)).body, before.body, 'nothing came of it')
  t.equal((await rollback(id, { version: 1 })).status, 200)
  t.equal((await rollback(id, { version: 6 })).status, 200, 'a kept address is sealed and stays')
  t.same((await get(`/v1/rules/${id}`)).body.action, before.body.action)
})

t.test('scopes: reading needs rules:read, rolling back rules:write', async (t) => {
  const { admin, send, id, publicKey, made } = await open(t)
  const keyWith = async (...scopes: string[]) =>
    (await admin('POST', '/workspaces/ws_default/keys', { kind: 'secret', environment: 'live', scopes })).body.key
  const [reader, writer] = [await keyWith('rules:read'), await keyWith('rules:write')]
  const body = { version: Number(made.headers.get('etag')?.slice(1, -1)) }
  const FORBIDDEN = [403, 'insufficient_permissions']
  for (const path of ['/v1/audit', `/v1/rules/${id}/versions`]) {
    t.equal((await send('GET', path, { key: reader })).status, 200)
    t.same(refused(await send('GET', path, { key: writer })), FORBIDDEN)
    t.same(refused(await send('GET', path, { key: publicKey })), FORBIDDEN)
    t.equal((await send('GET', path, { key: null })).status, 401)
  }
  t.same(refused(await send('POST', `/v1/rules/${id}/rollback`, { key: reader, body })), FORBIDDEN)
  t.equal((await send('POST', `/v1/rules/${id}/rollback`, { key: writer, body })).status, 200)
})
