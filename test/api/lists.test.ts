// Lists as a client sees them: the contract's endpoints over HTTP, on real backends with an owner that applies.

import t from 'tap'
import { openLists, PV } from './list-surface.ts'

const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/
const LIST_ID = /^lst_[0-9A-Za-z]{20}$/

t.test('a list is made, read, changed, listed and deleted', async (t) => {
  const { send, key, make, patch } = await openLists(t)
  const made = await send('POST', '/v1/lists', { key, body: { name: 'bad_devices', type: 'visitor' } })
  t.equal(made.status, 201)
  t.match(made.body, {
    id: LIST_ID,
    name: 'bad_devices',
    type: 'visitor',
    entryCount: 0,
    ttl: null,
    createdAt: TIME,
  })
  const { id } = made.body
  await make('Office.ips', 'ip', { description: 'Our offices', ttl: 60 })
  const read = await send('GET', `/v1/lists/${id}`, { key })
  t.same(read.body, { ...made.body, usedByRules: [] })

  const changed = await send('PUT', `/v1/lists/${id}`, { key, body: { description: 'Bots', ttl: 3600 } })
  t.match(changed, { status: 200, body: { id, description: 'Bots', ttl: 3600, entryCount: 0 } })
  t.match((await send('PUT', `/v1/lists/${id}`, { key, body: { ttl: null } })).body, { description: 'Bots', ttl: null })
  t.equal((await send('PUT', `/v1/lists/${id}`, { key, raw: '' })).status, 200, 'nothing given changes nothing')
  t.equal((await patch(id, { add: [PV(1)] })).body.entryCount, 1)

  const listed = await send('GET', '/v1/lists', { key })
  t.equal(listed.body.total, 2)
  t.same(
    listed.body.data.map((list: object) => Object.keys(list)),
    new Array(2).fill(['id', 'name', 'type', 'entryCount', 'createdAt', 'updatedAt']),
  )
  t.match((await send('GET', '/v1/lists?type=ip', { key })).body, { total: 1, data: [{ name: 'Office.ips' }] })
  t.match((await send('GET', '/v1/lists?type=email', { key })).body, { total: 0, data: [] })
  t.match((await send('GET', '/v1/lists?limit=1&offset=1', { key })).body, { total: 2, data: [{ name: 'Office.ips' }] })

  const gone = await send('DELETE', `/v1/lists/${id}`, { key })
  t.same(gone.body, { deleted: true, listId: id, affectedRules: [] })
  for (const [method, path, body] of [
    ['GET', `/v1/lists/${id}`, undefined],
    ['DELETE', `/v1/lists/${id}`, undefined],
    ['PUT', `/v1/lists/${id}`, { ttl: 1 }],
    ['GET', `/v1/lists/${id}/entries`, undefined],
    ['PATCH', `/v1/lists/${id}/entries`, { add: [PV(1)] }],
    ['POST', `/v1/lists/${id}/entries/check`, { values: [PV(1)] }],
  ] as const) {
    const answer = await send(method, path, { key, ...(body === undefined ? {} : { body }) })
    t.match(answer, { status: 404, body: { error: { code: 'not_found' } } }, `${method} ${path}`)
  }
  const again = await make('bad_devices', 'visitor')
  t.not(again.id, id)
  t.equal((await send('GET', `/v1/lists/${again.id}`, { key })).body.entryCount, 0, 'the old entries stay gone')
})

t.test('names are unique without regard to case, in each environment', async (t) => {
  const { send, key, testSecret, make } = await openLists(t)
  await make('Mixed_Case', 'ip')
  const second = await send('POST', '/v1/lists', { key, body: { name: 'mixed_CASE', type: 'email' } })
  t.match(second, { status: 409, body: { error: { code: 'conflict', field: 'name' } } })
  const elsewhere = await send('POST', '/v1/lists', { key: testSecret, body: { name: 'mixed_case', type: 'email' } })
  t.equal(elsewhere.status, 201)
  t.equal((await send('GET', `/v1/lists/${elsewhere.body.id}`, { key })).status, 404, 'not of this environment')
})

t.test('what cannot be a list is refused with the member at fault', async (t) => {
  const { send, key } = await openLists(t)
  const good = { name: 'x', type: 'ip' }
  const cases: [unknown, string][] = [
    [{ type: 'ip' }, 'name'],
    [{ name: 'x' }, 'type'],
    [{ ...good, type: 'device' }, 'type'],
    [{ ...good, ttl: 0 }, 'ttl'],
    [{ ...good, ttl: 1.5 }, 'ttl'],
    [{ ...good, ttl: '60' }, 'ttl'],
    [{ ...good, ttl: 400_000_000 }, 'ttl'],
    [{ ...good, description: 5 }, 'description'],
    [{ ...good, description: 'x'.repeat(501) }, 'description'],
    [{ ...good, entries: [] }, 'entries'],
    ...['', ' x', '_x', '-x', 'a b', 'a/b', 'ä', 'a\0b', 'x'.repeat(65), 'a\n', '__proto__', 5, null].map(
      (name): [unknown, string] => [{ ...good, name }, 'name'],
    ),
  ]
  for (const [body, field] of cases) {
    const answer = await send('POST', '/v1/lists', { key, body })
    t.match(answer, { status: 400, body: { error: { code: 'validation_error', field } } }, JSON.stringify(body))
  }
  for (const name of ['constructor', 'toString', 'hasOwnProperty']) {
    t.equal((await send('POST', '/v1/lists', { key, body: { name, type: 'ip' } })).status, 201, name)
  }
  for (const query of ['type=x', 'limit=0', 'limit=101', 'offset=10001', 'offset=-1', 'sort=name']) {
    const answer = await send('GET', `/v1/lists?${query}`, { key })
    t.match(answer, { status: 400, body: { error: { field: query.split('=')[0] } } }, query)
  }
  for (const body of [{ name: 'y' }, { type: 'ip' }, { ttl: -1 }]) {
    const answer = await send('PUT', '/v1/lists/lst_00000000000000000000', { key, body })
    t.match(answer, { status: 400, body: { error: { field: Object.keys(body)[0] } } }, JSON.stringify(body))
  }
  for (const id of ['lst_short', 'x', 'lst_00000000000000000000', '%00', '..%2f']) {
    t.match(await send('GET', `/v1/lists/${id}`, { key }), { status: 404, body: { error: { code: 'not_found' } } }, id)
  }
})

t.test('keys need the scope of lists, and see the lists of their workspace alone', async (t) => {
  const { send, admin, key, publicKey, make } = await openLists(t)
  const { id } = await make('mine', 'visitor')
  const keyWith = async (scopes: readonly string[], workspace = 'ws_default') =>
    (await admin('POST', `/workspaces/${workspace}/keys`, { kind: 'secret', environment: 'live', scopes })).body.key
  const reader = await keyWith(['lists:read'])
  const writer = await keyWith(['lists:write'])
  const calls = [
    ['POST', '/v1/lists', { name: 'new', type: 'ip' }, 'write'],
    ['GET', '/v1/lists', undefined, 'read'],
    ['GET', `/v1/lists/${id}`, undefined, 'read'],
    ['PUT', `/v1/lists/${id}`, { ttl: 5 }, 'write'],
    ['GET', `/v1/lists/${id}/entries`, undefined, 'read'],
    ['PATCH', `/v1/lists/${id}/entries`, { add: [PV(1)] }, 'write'],
    ['POST', `/v1/lists/${id}/entries/check`, { values: [PV(1)] }, 'read'],
    ['DELETE', `/v1/lists/${id}`, undefined, 'write'],
  ] as const
  for (const [method, path, body, scope] of calls) {
    const with_ = (one: string | null) => send(method, path, { key: one, ...(body === undefined ? {} : { body }) })
    const refused = await with_(scope === 'read' ? writer : reader)
    t.match(refused, { status: 403, body: { error: { code: 'insufficient_permissions' } } }, `${method} ${path}`)
    t.equal((await with_(publicKey)).status, 403)
    t.equal((await with_(null)).status, 401)
  }
  const { body: workspace } = await admin('POST', '/workspaces', { name: 'other' })
  const stranger = await keyWith(['lists:read', 'lists:write'], workspace.id)
  t.equal((await send('GET', `/v1/lists/${id}`, { key: stranger })).status, 404)
  t.equal((await send('DELETE', `/v1/lists/${id}`, { key: stranger })).status, 404)
  t.equal((await send('GET', '/v1/lists', { key: stranger })).body.total, 0)
  t.equal((await send('GET', `/v1/lists/${id}`, { key })).status, 200)
})

t.test('every write of a list is in the audit log, and no entry of it', async (t) => {
  const { send, key, make, patch } = await openLists(t)
  const made = await make('Devices', 'visitor')
  await patch(made.id, { add: [PV(77)] })
  const { body: changed } = await send('PUT', `/v1/lists/${made.id}`, { key, body: { description: 'seen twice' } })
  await send('PUT', `/v1/lists/${made.id}`, { key, body: {} })
  await send('DELETE', `/v1/lists/${made.id}`, { key })
  const { status, body } = await send('GET', `/v1/audit?resource=list&id=${made.id}`, { key })
  t.equal(status, 200)
  const entry = { actor: key.slice(-4), resource: 'list', id: made.id }
  t.same(
    body.data.map(({ at: _, by: __, ...one }: { at: string; by: unknown }) => one),
    [
      { ...entry, action: 'delete', before: changed, after: null },
      {
        ...entry,
        action: 'update',
        before: { ...changed, description: null, updatedAt: body.data[1].before.updatedAt },
        after: changed,
      },
      {
        ...entry,
        action: 'entries',
        before: null,
        after: { id: made.id, added: 1, removed: 0, refreshed: 0, source: 'api' },
      },
      { ...entry, action: 'create', before: null, after: made },
    ],
  )
  t.notMatch(JSON.stringify(body), /pv_secret/)
})

t.test('rules name lists that exist and suit the field, and a list knows its rules', async (t) => {
  const { send, key, make } = await openLists(t)
  const visitors = await make('Devices', 'visitor')
  await make('ips', 'ip')
  await make('mails', 'email')
  const rule = (field: string, value: unknown, more: object = {}, operator = 'in') => ({
    name: 'r',
    conditions: { operator: 'AND', rules: [{ field, operator, value }] },
    action: { verdict: 'block', ...more },
    status: 'draft',
  })
  const put = (body: unknown) => send('POST', '/v1/rules', { key, body })
  const accepted = [
    rule('visitorId', 'devices'),
    rule('ip', 'IPS', {}, 'not_in'),
    rule('ip.address', 'ips'),
    rule('email', 'mails'),
    rule('linkedId', 'devices'),
    rule('tag.mail', 'mails'),
    rule('visitorId', [PV(1)]),
    rule(
      'visitorFound',
      true,
      { sideEffects: [{ type: 'addToList', list: 'DEVICES', ttl: 60, reason: 'x' }] },
      'equals',
    ),
    rule('visitorFound', true, { sideEffects: [{ type: 'removeFromList', list: 'ips', value: 'tag.ip' }] }, 'equals'),
  ]
  const made: string[] = []
  for (const body of accepted) {
    const answer = await put(body)
    t.equal(answer.status, 201, JSON.stringify(answer.body))
    made.push(answer.body.id)
  }
  const effects = (...sideEffects: unknown[]) => rule('visitorFound', true, { sideEffects }, 'equals')
  const at = 'action.sideEffects[0]'
  const leaf = 'conditions.rules[0].value'
  const hook = 'https://hooks.slack.com/services/T0/B0/secret'
  const refused: [unknown, string][] = [
    [rule('visitorId', 'nowhere'), leaf],
    [rule('visitorId', 'ips'), leaf],
    [rule('ip', 'mails', {}, 'not_in'), leaf],
    [rule('email', 'devices'), leaf],
    [rule('device.type', 'devices'), leaf],
    [rule('visitorId', ''), leaf],
    [rule('visitorId', '__proto__'), leaf],
    [rule('visitorId', 'constructor'), leaf],
    [effects({ type: 'addToList' }), `${at}.list`],
    [effects({ type: 'addToList', list: 'nowhere' }), `${at}.list`],
    [effects({ type: 'addToList', list: 5 }), `${at}.list`],
    [effects({ type: 'addToList', list: 'devices', value: 'ip' }), `${at}.value`],
    [effects({ type: 'addToList', list: 'devices', value: 'device.type' }), `${at}.value`],
    [effects({ type: 'addToList', list: 'devices', value: 'nothing' }), `${at}.value`],
    [effects({ type: 'addToList', list: 'devices', ttl: 0 }), `${at}.ttl`],
    [effects({ type: 'addToList', list: 'devices', reason: 5 }), `${at}.reason`],
    [effects({ type: 'removeFromList', list: 'devices', ttl: 5 }), `${at}.ttl`],
    [effects({ type: 'webhook', url: 'https://shop.example/hook' }), `${at}.url`],
    [effects({ type: 'webhook', webhookId: 'https://shop.example' }), `${at}.webhookId`],
    [effects({ type: 'slack', url: 'http://hooks.slack.com/x' }), `${at}.url`],
    [effects({ type: 'slack', url: 'https://user:pw@hooks.slack.com/x' }), `${at}.url`],
    [effects({ type: 'slack', url: 'https://127.0.0.1/x' }), `${at}.url`],
    [effects({ type: 'slack', url: 'https://[::1]/x' }), `${at}.url`],
    [effects({ type: 'slack', url: 'https://localhost/x' }), `${at}.url`],
    [effects({ type: 'slack', url: 'https://hooks.slack.com/****' }), `${at}.url`],
    [effects({ type: 'slack', url: hook, message: '{{nothing}}' }), `${at}.message`],
    [effects({ type: 'slack' }), `${at}.url`],
    [effects({ type: 'toString' }), `${at}.type`],
  ]
  for (const [body, field] of refused) {
    t.match(
      await put(body),
      { status: 400, body: { error: { code: 'validation_error', field } } },
      JSON.stringify(body),
    )
  }
  const { body: hooked } = await send('POST', '/v1/webhooks', { key, body: { url: 'https://shop.example/hook' } })
  const noted = await put(
    effects({ type: 'slack', url: hook, message: 'a {{ip.country}}' }, { type: 'webhook', webhookId: hooked.id }),
  )
  t.equal(noted.status, 201, JSON.stringify(noted.body))
  const { body: read } = await send('GET', `/v1/rules/${noted.body.id}`, { key })
  t.same(read.sideEffects[0], { type: 'slack', url: 'https://hooks.slack.com/****', message: 'a {{ip.country}}' })
  t.notMatch(JSON.stringify(read), /secret/)

  const { body: list } = await send('GET', `/v1/lists/${visitors.id}`, { key })
  const naming = [made[0], made[4], made[7]].sort()
  t.same([...list.usedByRules].sort(), naming)
  const { body: deleted } = await send('DELETE', `/v1/lists/${visitors.id}`, { key })
  t.same([...deleted.affectedRules].sort(), naming)
  t.equal((await put(rule('visitorId', 'devices'))).status, 400, 'it cannot be named any more')
})

t.test('hostile text in every member is refused or kept as it is', async (t) => {
  const { send, key, make, patch, entries } = await openLists(t)
  const { id } = await make('mails', 'email')
  const raw = (text: string) => send('PATCH', `/v1/lists/${id}/entries`, { key, raw: text })
  t.equal((await raw('{"add":["a\\ud800@b.example"]}')).status, 400)
  t.equal((await raw('{"add":[{"value":"a@b.example","reason":"\\udfff"}]}')).status, 400)
  t.match(await raw('{"add":[{"value":"a@b.example","__proto__":{"ttl":1}}]}'), { status: 400 })
  t.match(await raw('{"__proto__":{"add":["a@b.example"]}}'), { status: 400 })
  const reasons = ['\0', "'; DROP TABLE events; --", '{{visitorId}}', '<script>', '\u202e\u0007', '$(x)', '=cmd()']
  await patch(id, { add: reasons.map((reason, i) => ({ value: `u${i}@b.example`, reason })) })
  t.same(
    (await entries(id)).data.map(({ reason }: { reason: string }) => reason),
    reasons,
  )
  for (const q of ['%00', '%F4%8F%BF%BF', "'", '%25', '__proto__', '/', '..']) {
    t.equal((await send('GET', `/v1/lists/${id}/entries?q=${q}`, { key })).status, 200, q)
  }
})
