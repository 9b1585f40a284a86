// /v1/keys: a key that may make keys gives nothing beyond its own, stays in its environment, and what it ends is dead at once.

import t, { type Test } from 'tap'
import { setupToken } from '../../src/api/console/links.ts'
import { DEFAULT_SCOPES, SCOPES } from '../../src/domain/workspace.ts'
import { OWNER, openBrowser } from '../helpers/console.ts'
import { CONDITIONS, openServer } from '../helpers/rest-surface.ts'

async function open(t: Test) {
  const server = await openServer(t)
  const make = async (body: object) => {
    const { status, body: made } = await server.admin('POST', '/workspaces/ws_default/keys', {
      ...{ kind: 'secret', environment: 'live' },
      ...body,
    })
    t.equal(status, 201)
    return made as { id: string; key: string }
  }
  const ask = (key: string, method: string, path: string, body?: unknown, headers = {}) =>
    server.send(method, path, { key, headers, ...(body === undefined ? {} : { body }) })
  return { ...server, make, ask }
}

t.test(
  'a key makes, lists, rotates and revokes keys of its own environment, if that was said in so many words',
  async (t) => {
    const { make, ask, secret, testSecret } = await open(t)
    t.match(await ask(secret, 'GET', '/v1/keys'), {
      status: 403,
      body: { error: { message: /keys:write/ } },
    })
    const maker = await make({ scopes: SCOPES, label: 'maker' })
    const made = await ask(maker.key, 'POST', '/v1/keys', { kind: 'secret', label: 'reader', scopes: ['rules:read'] })
    t.match(made, {
      status: 201,
      body: { kind: 'secret', environment: 'live', scopes: ['rules:read'], key: /^sk_live_/ },
    })
    t.equal((await ask(made.body.key, 'GET', '/v1/rules')).status, 200)
    const usual = await ask(maker.key, 'POST', '/v1/keys', { kind: 'secret' })
    t.equal((await ask(usual.body.key, 'GET', '/v1/keys')).status, 403, 'what is not named is not given')
    const { body: listed } = await ask(maker.key, 'GET', '/v1/keys')
    t.ok(listed.data.some(({ id }: { id: string }) => id === made.body.id))
    t.ok(listed.data.every(({ environment }: { environment: string }) => environment === 'live'))
    t.notMatch(JSON.stringify(listed), /digest/)
    t.match(await ask(maker.key, 'DELETE', `/v1/keys/${made.body.id}`), { status: 200, body: { deleted: true } })
    t.equal((await ask(made.body.key, 'GET', '/v1/rules')).status, 401)
    t.equal((await ask(maker.key, 'DELETE', `/v1/keys/${made.body.id}`)).status, 404)
    const rotated = await ask(maker.key, 'POST', '/v1/keys/rotate', { kind: 'secret' })
    t.equal(rotated.status, 201)
    t.ok(rotated.body.revoked.includes(maker.id))
    t.equal((await ask(maker.key, 'GET', '/v1/keys')).status, 401)
    t.equal((await ask(rotated.body.key, 'GET', '/v1/rules')).status, 200)
    t.equal((await ask(testSecret, 'GET', '/v1/rules')).status, 200, 'the other environment has its own')
  },
)

t.test(
  'a key gives no scope, no expiry and no environment beyond its own, and ends no key that has more',
  async (t) => {
    const { make, ask, admin } = await open(t)
    const inAYear = new Date(Date.now() + 365 * 86_400_000).toISOString()
    const narrow = await make({ scopes: ['keys:write', 'rules:read', 'identify'] })
    const brief = await make({ scopes: SCOPES, expiresAt: inAYear })
    const other = await admin('POST', '/workspaces/ws_default/keys', {
      kind: 'secret',
      environment: 'test',
      scopes: SCOPES,
    })
    const wide = await make({})
    const refused: readonly (readonly [who: string, key: string, method: string, path: string, body?: object])[] = [
      ['a scope it lacks', narrow.key, 'POST', '/v1/keys', { kind: 'secret', scopes: ['rules:write'] }],
      ['every scope', narrow.key, 'POST', '/v1/keys', { kind: 'secret' }],
      ['another environment', narrow.key, 'POST', '/v1/keys', { kind: 'public', environment: 'test' }],
      ['all keys, of which one has more', narrow.key, 'POST', '/v1/keys/rotate', { kind: 'secret' }],
      ['a key that has more', narrow.key, 'DELETE', `/v1/keys/${wide.id}`],
      ['a key of the other environment', brief.key, 'DELETE', `/v1/keys/${other.body.id}`],
      ['rotation there', brief.key, 'POST', '/v1/keys/rotate', { kind: 'secret', environment: 'test' }],
      ['a key for ever', brief.key, 'POST', '/v1/keys', { kind: 'public' }],
      ['a key for longer', brief.key, 'POST', '/v1/keys', { kind: 'public', expiresAt: '2999-01-01T00:00:00Z' }],
      ['a rotation for ever', brief.key, 'POST', '/v1/keys/rotate', { kind: 'public' }],
    ]
    for (const [who, key, method, path, body] of refused) {
      t.match(
        await ask(key, method, path, body),
        { status: 403, body: { error: { code: 'insufficient_permissions' } } },
        who,
      )
    }
    t.equal((await ask(narrow.key, 'POST', '/v1/keys', { kind: 'public' })).status, 201)
    t.equal(
      (await ask(narrow.key, 'POST', '/v1/keys', { kind: 'secret', scopes: ['rules:read', 'keys:write'] })).status,
      201,
    )
    const soon = new Date(Date.now() + 86_400_000).toISOString()
    t.equal((await ask(brief.key, 'POST', '/v1/keys', { kind: 'secret', expiresAt: soon })).status, 201)
    t.equal((await ask(wide.key, 'GET', '/v1/rules')).status, 200, 'nothing happened to it')
  },
)

t.test('a key’s text is told once more under the same Idempotency-Key, while the key is valid', async (t) => {
  const { make, ask } = await open(t)
  const maker = await make({ scopes: SCOPES })
  const create = () => ask(maker.key, 'POST', '/v1/keys', { kind: 'public' }, { 'Idempotency-Key': 'once' })
  const first = await create()
  t.equal(first.status, 201)
  t.match((await create()).body, { id: first.body.id, key: first.body.key, replayed: true })
  await ask(maker.key, 'DELETE', `/v1/keys/${first.body.id}`)
  t.match((await create()).body, { id: first.body.id, key: null, replayed: true })
})

t.test(
  'an admin of the console makes and ends keys of either environment, and the audit log names that person',
  async (t) => {
    const { base, sealer, testSecret, ask } = await open(t)
    const admin = openBrowser(base)
    await admin.ask('POST', '/console/api/setup', { token: setupToken(sealer), ...OWNER })
    const inTest = { 'X-Fingerpost-Environment': 'test' }
    const made = await admin.ask('POST', '/v1/keys', { kind: 'secret', scopes: DEFAULT_SCOPES }, inTest)
    t.match(made, { status: 201, body: { environment: 'test', key: /^sk_test_/ } })
    const rule = { name: 'Bots', conditions: CONDITIONS, action: { verdict: 'block' }, status: 'draft' }
    t.equal((await ask(made.body.key, 'POST', '/v1/rules', rule)).status, 201)
    const rotated = await admin.ask('POST', '/v1/keys/rotate', { kind: 'secret' }, inTest)
    t.equal(rotated.status, 201)
    t.equal((await ask(testSecret, 'GET', '/v1/rules')).status, 401)
    t.equal((await admin.ask('DELETE', `/v1/keys/${rotated.body.id}`)).status, 403, 'from the environment it is of')
    t.equal((await admin.ask('DELETE', `/v1/keys/${rotated.body.id}`, undefined, inTest)).status, 200)
    const { body } = await admin.ask('GET', '/v1/audit?resource=key', undefined, inTest)
    t.match(
      body.data.slice(0, 3).map(({ action, by }: { action: string; by: object }) => ({ action, by })),
      ['revoke', 'rotate', 'create'].map((action) => ({ action, by: { type: 'person', label: 'Ada' } })),
    )
  },
)
