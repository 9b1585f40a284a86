// Who may call what: every endpoint of the document by every kind of caller, on a whole server. In the quick run one caller of
// each kind calls each endpoint, another one the next.

import t from 'tap'
import { endpointsOf, type Operation } from '../../src/api/reference/openapi.ts'
import { makeKey } from '../../src/domain/keys.ts'
import { DEFAULT_SCOPES, SCOPES } from '../../src/domain/workspace.ts'
import { random } from '../helpers/control-plane.ts'
import { sized } from '../helpers/depth.ts'
import { fetchDescription } from '../helpers/described.ts'
import { cleanUp } from '../helpers/server.ts'
import { openTenant } from '../helpers/tenant.ts'
import { askDescribed, bodyOf, fill, type Got } from './endpoints.ts'

t.teardown(cleanUp)

const { server } = await openTenant()
const description = await fetchDescription(server.url)
if (description === null) throw new Error('the server describes nothing')
const endpoints = [...endpointsOf(description.document)]

let address = 0
/** Every call from an address of its own: failures of one must not slow down another. */
async function call(method: string, path: string, operation: Operation | null, key: string | null): Promise<Got> {
  address += 1
  const body = operation?.requestBody === undefined ? undefined : (bodyOf(operation) ?? {})
  return askDescribed(server.url, description as NonNullable<typeof description>, {
    method,
    path,
    key,
    ...(body === undefined ? {} : { body }),
    headers: { 'X-Forwarded-For': `198.51.${Math.floor(address / 250) % 250}.${address % 250}` },
  })
}

async function admin(method: string, path: string, body: unknown) {
  const answer = await fetch(`${server.url}/admin/v1${path}`, {
    method,
    headers: { Authorization: `Bearer ${server.operatorToken}`, 'Content-Type': 'application/json' },
    body: JSON.stringify(body),
  })
  if (answer.status !== 201) throw new Error(await answer.text())
  return (await answer.json()) as { id: string; key: string }
}

const keys = `/workspaces/${server.workspace}/keys`
const makeSecret = async (scopes: readonly string[] = []) =>
  admin('POST', keys, { kind: 'secret', environment: 'live', ...(scopes.length === 0 ? {} : { scopes }) })
const only = new Map<string, string>()
const without = new Map<string, string>()
for (const scope of SCOPES) {
  only.set(scope, (await makeSecret([scope])).key)
  without.set(scope, (await makeSecret(SCOPES.filter((one) => one !== scope))).key)
}
const revoked = await makeSecret()
await fetch(`${server.url}/admin/v1${keys}/${revoked.id}`, {
  method: 'DELETE',
  headers: { Authorization: `Bearer ${server.operatorToken}` },
})
const other = await admin('POST', '/workspaces', { name: 'Other' })
const foreign = await admin('POST', `/workspaces/${other.id}/keys`, { kind: 'secret', environment: 'live' })

const { public: publicLive, secret, testPublic, testSecret } = server.keys
type Callers = readonly (readonly [who: string, key: string | null])[]
const NOBODY: Callers = [
  ['nobody', null],
  ['a revoked key', revoked.key],
  ['an unknown key', makeKey('secret', 'live', random)],
  ['a malformed key', 'sk_live_short'],
]
const PUBLIC = [
  ['a public key', publicLive],
  ['a public test key', testPublic],
] as const
const SECRET = [
  ['a secret key', secret],
  ['a secret test key', testSecret],
  ['a key of another workspace', foreign.key],
] as const

/** Live keys have no business there. */
const TEST_ONLY = new Set(['GET /v1/webhooks/listen'])

/** Their examples give scopes that a narrow key does not have. */
const GRANTING = new Set(['POST /v1/keys', 'POST /v1/keys/rotate'])

/** Refused for who asks, rather than for what. */
const isShutOut = ({ status, code }: Got) => status === 401 || code === 'insufficient_permissions'

const EACH = sized({ quick: 1, usual: 4, long: 4 })
const some = <T extends Callers>(callers: T, from: number): T[number][] =>
  callers.map((_, i) => callers[(from + i) % callers.length] as T[number]).slice(0, EACH)

for (const [n, { method, path, operation }] of endpoints.entries()) {
  const [nobodies, publics, secrets] = [some(NOBODY, n), some(PUBLIC, n), some(SECRET, n)]
  const name = `${method} ${path}`
  const to = fill(path)
  t.test(name, async (t) => {
    const schemes = new Set(operation.security.flatMap((one) => Object.keys(one)))
    const [scope] = operation.security.flatMap((one) => Object.values(one).flat())
    if (schemes.size === 0) {
      for (const [who, key] of [...nobodies, ...publics, ...secrets]) {
        t.notOk(isShutOut(await call(method, to, operation, key)), `${who} may`)
      }
      return
    }
    for (const [who, key] of nobodies) {
      const got = await call(method, to, operation, key)
      t.equal(got.code, 'invalid_api_key', who)
      t.equal(got.headers.get('www-authenticate'), 'Bearer')
    }
    if (schemes.has('operatorToken')) {
      for (const [who, key] of [...publics, ...secrets]) {
        t.equal((await call(method, to, operation, key)).code, 'insufficient_permissions', who)
      }
      t.notOk(isShutOut(await call(method, to, operation, server.operatorToken)), 'the operator may')
      return
    }
    t.equal((await call(method, to, operation, server.operatorToken)).code, 'invalid_api_key', 'the operator token')
    for (const [who, key] of publics) {
      const got = await call(method, to, operation, key)
      if (schemes.has('publicKey')) t.notOk(isShutOut(got), `${who} may`)
      else {
        t.equal(got.code, 'insufficient_permissions', who)
        t.match(got.message, scope, 'the message names the scope')
      }
    }
    const isWhole = (key: string) =>
      scope === undefined || DEFAULT_SCOPES.some((one) => one === scope) || key === only.get(scope)
    const isFor = (key: string) => isWhole(key) && (key === testSecret || !TEST_ONLY.has(name))
    for (const [who, key] of secrets) {
      const got = await call(method, to, operation, key)
      t.equal(isShutOut(got), !isFor(key), `${who} ${isFor(key) ? 'may' : 'may not'}`)
    }
    if (scope === undefined) return
    const narrow = only.get(scope) ?? ''
    const isRefused = !isFor(narrow) || GRANTING.has(name)
    t.equal(isShutOut(await call(method, to, operation, narrow)), isRefused, `a key with only ${scope}`)
    const refused = await call(method, to, operation, without.get(scope) ?? '')
    t.equal(refused.code, 'insufficient_permissions', `a key with all but ${scope}`)
    t.match(refused.message, scope)
  })
}

t.test('no endpoint of the document is left out', async (t) => t.ok(endpoints.length > 40))
