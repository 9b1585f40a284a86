import t from 'tap'
import { keyForm } from '../../src/domain/keys.ts'
import { type Clock, systemClock } from '../../src/lib/clock.ts'
import { scanAll } from '../../src/records/scopes.ts'
import { OPERATOR_TOKEN, openServer } from '../helpers/rest-surface.ts'

t.test('workspaces are created, read, listed and changed', async (t) => {
  const { admin } = await openServer(t)
  const made = await admin('POST', '/workspaces', { name: 'Shop', plan: 'pro', settings: { clientResult: 'verdict' } })
  t.equal(made.status, 201)
  t.same(Object.keys(made.body), ['id', 'name', 'plan', 'apiVersion', 'settings', 'createdAt'])
  t.match(made.body, { name: 'Shop', plan: 'pro', apiVersion: '2026-11-01', settings: { clientResult: 'verdict' } })
  t.same((await admin('GET', `/workspaces/${made.body.id}`)).body, made.body)
  const changed = await admin('PATCH', `/workspaces/${made.body.id}`, { name: 'Store', settings: {} })
  t.match(changed, { status: 200, body: { ...made.body, name: 'Store' } })
  t.same((await admin('PATCH', `/workspaces/${made.body.id}`, {})).body, changed.body)
  const list = await admin('GET', '/workspaces')
  t.equal(list.body.total, 2)
  t.match(list.body.data.map(({ name }: { name: string }) => name).sort(), ['Store', 'default'])
  t.equal((await admin('GET', '/workspaces?limit=1&offset=1')).body.data.length, 1)
})

t.test('a key is shown once, works at once, and is listed without its text', async (t) => {
  const { admin, send, kv, log } = await openServer(t)
  const { body: workspace } = await admin('POST', '/workspaces', { name: 'Shop' })
  const keys = `/workspaces/${workspace.id}/keys`
  const made = await admin('POST', keys, {
    kind: 'secret',
    environment: 'test',
    scopes: ['rules:read'],
    label: 'reader',
    expiresAt: '2099-01-01T00:00:00Z',
  })
  t.equal(made.status, 201)
  const { key, ...shown } = made.body
  t.same(keyForm(key), { kind: 'secret', env: 'test' })
  t.match(shown, {
    id: /^key_/,
    kind: 'secret',
    environment: 'test',
    prefix: 'sk_test_',
    last4: key.slice(-4),
    label: 'reader',
    scopes: ['rules:read'],
    origins: null,
    expiresAt: '2099-01-01T00:00:00.000Z',
  })
  t.equal((await send('GET', '/v1/rules', { key })).status, 200)
  t.same((await admin('GET', keys)).body, { data: [shown], total: 1 })

  const kept = await log.read('changes', 0, 0, { recordsMax: 1_000, bytesMax: 50_000_000, waitMsMax: 0 })
  t.notOk(
    kept.some(({ bytes }) => Buffer.from(bytes).includes(key)),
    'its text is not in the log',
  )
  for (const collection of ['key', 'key-digest', 'outcome', 'meta']) {
    for await (const entry of scanAll(kv, 'system', collection)) t.notOk(JSON.stringify(entry).includes(key))
  }

  t.same((await admin('DELETE', `${keys}/${shown.id}`)).body, { deleted: true, keyId: shown.id })
  t.equal((await send('GET', '/v1/rules', { key })).status, 401)
  t.match(await admin('DELETE', `${keys}/${shown.id}`), { status: 404, body: { error: { code: 'not_found' } } })
  t.same((await admin('GET', keys)).body, { data: [], total: 0 })
})

t.test('rotation ends all older keys of that kind and environment, and no other', async (t) => {
  const { admin, send, ...keys } = await openServer(t)
  const path = '/workspaces/ws_default/keys'
  const second = await admin('POST', path, { kind: 'secret', environment: 'live', scopes: ['rules:read'] })
  const rotated = await admin('POST', `${path}/rotate`, { kind: 'secret', environment: 'live' })
  t.equal(rotated.status, 201)
  t.equal(rotated.body.revoked.length, 2)
  const status = async (key: string) => (await send('GET', '/v1/meta', { key })).status
  t.equal(await status(keys.secret), 401)
  t.equal(await status(second.body.key), 401)
  t.equal(await status(rotated.body.key), 200)
  for (const other of [keys.publicKey, keys.testSecret, keys.testPublic]) t.equal(await status(other), 200)
})

t.test(
  'a repeated POST with an Idempotency-Key makes one workspace and one key, and shows the key again',
  async (t) => {
    const { admin, send, kv, secret } = await openServer(t)
    const again = async (path: string, body: object, name: string, more = {}) => {
      const options = { key: OPERATOR_TOKEN, body, headers: { 'Idempotency-Key': name } }
      const [first, second] = [
        await send('POST', `/admin/v1${path}`, options),
        await send('POST', `/admin/v1${path}`, options),
      ]
      t.equal(first.status, 201)
      t.equal(first.headers.get('idempotent-replayed'), null)
      t.equal(second.status, 201)
      t.equal(second.headers.get('idempotent-replayed'), 'true')
      t.same(second.body, { ...first.body, ...more })
      return first.body
    }
    const { id } = await again('/workspaces', { name: 'Shop' }, 'one')
    t.equal((await admin('GET', '/workspaces')).body.total, 2)
    const path = `/workspaces/${id}/keys`
    const made = await again(path, { kind: 'secret', environment: 'live', label: 'a' }, 'two', { replayed: true })
    const rotated = await again(`${path}/rotate`, { kind: 'secret', environment: 'live' }, 'two', { replayed: true })
    t.same(rotated.revoked, [made.id])
    const replay = async (path: string, body: object) =>
      (await send('POST', `/admin/v1${path}`, { key: OPERATOR_TOKEN, body, headers: { 'Idempotency-Key': 'two' } }))
        .body
    const dead = await replay(path, { kind: 'secret', environment: 'live', label: 'a' })
    t.same(dead, { ...made, key: null, replayed: true }, 'a key that was replaced is not shown again')
    t.equal((await admin('GET', path)).body.total, 1)
    t.equal((await send('GET', '/v1/rules', { key: rotated.key })).status, 200)
    const other = { key: OPERATOR_TOKEN, body: { name: 'Other' }, headers: { 'Idempotency-Key': 'one' } }
    t.match(await send('POST', '/admin/v1/workspaces', other), {
      ...{ status: 400, body: { error: { code: 'idempotency_key_mismatch' } } },
    })
    const list = { key: secret, body: { name: 'l', type: 'ip' }, headers: { 'Idempotency-Key': 'one' } }
    t.equal((await send('POST', '/v1/lists', list)).status, 201, 'keys of others are theirs')
    let records = 0
    for await (const entry of scanAll(kv, 'system', 'idempotency')) {
      records++
      for (const { key } of [made, rotated])
        t.notOk(JSON.stringify(entry).includes(key), 'the text of a key is not kept')
    }
    t.equal(records, 3)
  },
)

t.test('a key and a workspace are made once, though the answer to the first attempt was lost', async (t) => {
  const { submit, admin } = await openServer(t)
  const key = {
    id: 'key_00000000000000000000',
    kind: 'secret' as const,
    digest: 'd'.repeat(64),
    last4: 'xxxx',
    label: null,
    scopes: null,
    origins: null,
    expiresAt: null,
  }
  const draft = { workspace: 'ws_default', env: 'live' as const, actor: 'test', data: { key, keysMax: 100 } }
  const first = await submit({ ...draft, type: 'key.rotate' })
  t.match(first, { ok: true, revoked: [/^key_/] })
  const second = await submit({ ...draft, type: 'key.rotate' })
  t.match(second, { ok: true, revoked: first.ok ? first.revoked : [] }, 'the same command once more')
  t.equal((await admin('GET', '/workspaces/ws_default/keys')).body.total, 4)
  t.match(await submit({ ...draft, type: 'key.create', data: { key: { ...key, id: 'key_1' }, keysMax: 100 } }), {
    ok: false,
    code: 'conflict',
  })
})

t.test('a workspace has at most a hundred keys', async (t) => {
  const { admin, submit } = await openServer(t)
  const { body: workspace } = await admin('POST', '/workspaces', { name: 'Full' })
  const add = (i: number) => {
    const key = {
      id: `key_${i}`,
      kind: 'public' as const,
      digest: i.toString(16).padStart(64, '0'),
      last4: 'xxxx',
      label: null,
      scopes: null,
      origins: null,
      expiresAt: null,
    }
    const draft = { type: 'key.create' as const, workspace: workspace.id, env: 'live' as const, actor: 'test' }
    return submit({ ...draft, data: { key, keysMax: 100 } })
  }
  const added = await Promise.all(Array.from({ length: 99 }, (_, i) => add(i)))
  t.same(
    added.filter(({ ok }) => !ok),
    [],
  )
  const path = `/workspaces/${workspace.id}/keys`
  const create = () => admin('POST', path, { kind: 'secret', environment: 'live' })
  t.equal((await create()).status, 201)
  t.match(await create(), { status: 409, body: { error: { code: 'resource_limit_reached' } } })
  t.equal((await admin('POST', `${path}/rotate`, { kind: 'public', environment: 'live' })).status, 201)
  t.equal((await create()).status, 201)
})

t.test('only the operator comes in, and without a token there is no door', async (t) => {
  // Attempts are counted by the minute, and this one does not end.
  const now = systemClock.now()
  const clock: Clock = { ...systemClock, now: () => now }
  const { send, secret, publicKey } = await openServer(t, { clock })
  const path = '/admin/v1/workspaces'
  const refusals: [string | null, number, string][] = [
    [null, 401, 'invalid_api_key'],
    ['', 401, 'invalid_api_key'],
    [OPERATOR_TOKEN.slice(1), 401, 'invalid_api_key'],
    [`${OPERATOR_TOKEN}x`, 401, 'invalid_api_key'],
    [OPERATOR_TOKEN.toLowerCase().replace('o', 'O'), 401, 'invalid_api_key'],
    [secret, 403, 'insufficient_permissions'],
    [publicKey, 403, 'insufficient_permissions'],
  ]
  for (const [key, status, code] of refusals) {
    t.match(await send('GET', path, { key }), { status, body: { error: { code } } }, `${code} for ${key?.slice(0, 8)}`)
  }
  const headers = { 'x-probe-address': '203.0.113.44' }
  const failed = await Promise.all(Array.from({ length: 65 }, () => send('GET', path, { headers })))
  t.same(
    failed.map(({ status }) => status).toSorted(),
    [...Array(60).fill(401), ...Array(5).fill(429)],
    'sixty failures of an address a minute, and no more',
  )
  t.equal((await send('GET', path, { key: OPERATOR_TOKEN, headers })).status, 200)

  const off = await openServer(t, { operatorToken: null })
  t.match(await off.send('GET', path, { key: OPERATOR_TOKEN }), {
    status: 404,
    body: { error: { code: 'route_not_found' } },
  })
})

t.test('limits of a workspace are lifted with null', async (t) => {
  const { admin } = await openServer(t)
  const limits = { serverPerMinute: 5, mgmtPerMinute: null }
  const path = '/workspaces/ws_default'
  t.match((await admin('PATCH', path, { settings: { limits } })).body, { settings: { limits } })
  const lifted = await admin('PATCH', path, { settings: { limits: null } })
  t.same([lifted.status, Object.keys(lifted.body.settings)], [200, ['clientResult']])
  t.same((await admin('GET', path)).body, lifted.body)
  const made = await admin('POST', '/workspaces', { name: 'x', settings: { limits: null } })
  t.same([made.status, made.body.settings], [201, { clientResult: 'id' }])
})

t.test('what is invalid is named, and what is unknown is not found', async (t) => {
  const { admin } = await openServer(t)
  const key = { kind: 'secret', environment: 'live' }
  const keys = '/workspaces/ws_default/keys'
  const cases: [string, string, unknown, string][] = [
    ['POST', '/workspaces', {}, 'name'],
    ['POST', '/workspaces', { name: '' }, 'name'],
    ['POST', '/workspaces', { name: 'x', plan: 'free' }, 'plan'],
    ['POST', '/workspaces', { name: 'x', apiVersion: '2020-01-01' }, 'apiVersion'],
    ['POST', '/workspaces', { name: 'x', settings: { clientResult: 'all' } }, 'settings.clientResult'],
    ['POST', '/workspaces', { name: 'x', tokenSecret: 'mine' }, 'tokenSecret'],
    ['PATCH', '/workspaces/ws_default', { id: 'ws_other' }, 'id'],
    ['GET', '/workspaces?limit=0', undefined, 'limit'],
    ['POST', keys, { kind: 'secret' }, 'environment'],
    ['POST', keys, { ...key, kind: 'master' }, 'kind'],
    ['POST', keys, { ...key, scopes: [] }, 'scopes'],
    ['POST', keys, { ...key, scopes: ['rules:read', 'root'] }, 'scopes[1]'],
    ['POST', keys, { ...key, scopes: ['rules:read', 'rules:read'] }, 'scopes'],
    ['POST', keys, { ...key, kind: 'public', scopes: ['identify'] }, 'scopes'],
    ['POST', keys, { ...key, origins: ['https://a.example'] }, 'origins'],
    ['POST', keys, { ...key, kind: 'public', origins: ['https://a.example', 'https://b.example/path'] }, 'origins[1]'],
    ['POST', keys, { ...key, kind: 'public', origins: ['javascript:alert(1)'] }, 'origins[0]'],
    ['POST', keys, { ...key, expiresAt: '2001-01-01T00:00:00Z' }, 'expiresAt'],
    ['POST', keys, { ...key, expiresAt: 'tomorrow' }, 'expiresAt'],
    ['POST', `${keys}/rotate`, { ...key, label: 'x' }, 'label'],
  ]
  for (const [method, path, body, field] of cases) {
    t.match(
      await admin(method, path, body),
      { status: 400, body: { error: { code: 'validation_error', field } } },
      `${path} ${field}`,
    )
  }
  for (const [method, path, body] of [
    ['GET', '/workspaces/ws_unknown', undefined],
    ['GET', '/workspaces/%00', undefined],
    ['PATCH', '/workspaces/ws_unknown', { name: 'x' }],
    ['GET', '/workspaces/ws_unknown/keys', undefined],
    ['POST', '/workspaces/ws_unknown/keys', key],
    ['POST', '/workspaces/ws_unknown/keys/rotate', key],
    ['DELETE', '/workspaces/ws_unknown/keys/key_1', undefined],
    ['DELETE', '/workspaces/ws_default/keys/key_unknown', undefined],
    ['DELETE', '/workspaces/ws_default/keys/~', undefined],
  ] as const) {
    t.match(
      await admin(method, path, body),
      { status: 404, body: { error: { code: 'not_found' } } },
      `${method} ${path}`,
    )
  }
})

t.test('meta answers any key with its version and the build', async (t) => {
  const { send, publicKey, testSecret } = await openServer(t)
  for (const key of [publicKey, testSecret]) {
    t.match(await send('GET', '/v1/meta', { key }), {
      status: 200,
      body: { apiVersion: '2026-11-01', apiVersions: ['2026-11-01'], build: { version: '0.0.0-test' } },
    })
  }
})
