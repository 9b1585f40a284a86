import t from 'tap'
import { makeKey } from '../../src/domain/keys.ts'
import { type Clock, systemClock } from '../../src/lib/clock.ts'
import { Unavailable } from '../../src/lib/failures.ts'
import { openAuth } from '../../src/records/auth.ts'
import { openKeyDirectory } from '../../src/records/key-directory.ts'
import { keyDigest } from '../../src/records/keys.ts'
import { eventually } from '../helpers/client.ts'
import { random } from '../helpers/control-plane.ts'
import { faulty } from '../helpers/faulty.ts'
import { type Answer, openServer, RULE, type Send } from '../helpers/rest-surface.ts'

const MINUTE_MS = 60_000
const UNKNOWN_RULE = '/v1/rules/rul_00000000000000000000'

type Server = Awaited<ReturnType<typeof openServer>>
async function makeRestricted({ admin }: Server, scopes: readonly string[], more: object = {}): Promise<string> {
  const made = await admin('POST', '/workspaces/ws_default/keys', {
    kind: 'secret',
    environment: 'live',
    scopes,
    ...more,
  })
  if (made.status !== 201) throw new Error(JSON.stringify(made.body))
  return made.body.key
}

t.test('each role may call exactly its routes', async (t) => {
  let skippedMs = 0
  const clock: Clock = { ...systemClock, now: () => systemClock.now() + skippedMs }
  const server = await openServer(t, { clock })
  const { send } = server
  const revoked = await server.admin('POST', '/workspaces/ws_default/keys', { kind: 'secret', environment: 'live' })
  await server.admin('DELETE', `/workspaces/ws_default/keys/${revoked.body.id}`)
  const expiresAt = new Date(Date.now() + 600_000).toISOString()
  const expired = await makeRestricted(server, ['rules:read'], { expiresAt })
  t.equal((await send('GET', '/v1/rules', { key: expired })).status, 200)
  skippedMs = 600_000

  const routes: [string, string, Send, string, number][] = [
    ['POST', '/v1/rules', { body: RULE }, 'rules:write', 201],
    ['GET', '/v1/rules', {}, 'rules:read', 200],
    ['GET', '/v1/rules/fields', {}, 'rules:read', 200],
    ['GET', UNKNOWN_RULE, {}, 'rules:read', 404],
    ['PUT', UNKNOWN_RULE, { body: {} }, 'rules:write', 404],
    ['DELETE', UNKNOWN_RULE, {}, 'rules:write', 404],
    ['GET', '/v1/meta', {}, 'any', 200],
  ]
  const nobody: [string, string | null][] = [
    ['no key', null],
    ['an empty key', ''],
    ['a malformed key', 'sk_live_short'],
    ['an unknown key', makeKey('secret', 'live', random)],
    ['a key with a wrong checksum', `${server.secret.slice(0, -1)}${server.secret.endsWith('0') ? '1' : '0'}`],
    ['the operator token', 'operator-token-of-forty-characters-0001!'],
    ['a revoked key', revoked.body.key],
    ['an expired key', expired],
  ]
  const roles: [string, string, readonly string[] | 'all'][] = [
    ['public live', server.publicKey, []],
    ['public test', server.testPublic, []],
    ['secret live', server.secret, 'all'],
    ['secret test', server.testSecret, 'all'],
    ['read only', await makeRestricted(server, ['rules:read']), ['rules:read']],
    ['write only', await makeRestricted(server, ['rules:write', 'identify']), ['rules:write']],
    ['events only', await makeRestricted(server, ['events:read', 'events:write']), []],
  ]
  for (const [method, path, sent, scope, status] of routes) {
    let first: unknown = null
    for (const [who, key] of nobody) {
      const answer = await send(method, path, {
        ...sent,
        key,
        headers: { 'x-probe-address': `203.0.113.${nobody.length}` },
      })
      t.match(answer, { status: 401, body: { error: { code: 'invalid_api_key' } } }, `${who}: ${method} ${path}`)
      t.equal(answer.headers.get('www-authenticate'), 'Bearer')
      first ??= answer.body
      t.same(answer.body, first, 'the same body whatever is wrong')
    }
    for (const [who, key, scopes] of roles) {
      const may = scope === 'any' || scopes === 'all' || scopes.includes(scope)
      const answer = await send(method, path, { ...sent, key })
      t.equal(answer.status, may ? status : 403, `${who}: ${method} ${path}`)
      if (may) continue
      t.equal(answer.body.error.code, 'insufficient_permissions')
      t.match(answer.body.error.message, scope, 'the message names the missing scope')
    }
  }
})

t.test('the header is read as HTTP and RFC 6750 have it', async (t) => {
  const { send, secret } = await openServer(t)
  for (const [header, status] of [
    [`Bearer ${secret}`, 200],
    [`bearer ${secret}`, 200],
    [`BEARER   ${secret}`, 200],
    [secret, 401],
    [`Basic ${secret}`, 401],
    [`Bearer${secret}`, 401],
    [`Bearer ${secret} x`, 401],
    [`Bearer ${secret},`, 401],
  ] as const) {
    t.equal((await send('GET', '/v1/meta', { headers: { Authorization: header } })).status, status, header.slice(0, 8))
  }
})

t.test('an object of another workspace or environment is as unknown as one that never was', async (t) => {
  const server = await openServer(t)
  const { send, admin } = server
  const { body: other } = await admin('POST', '/workspaces', { name: 'other' })
  const foreign = await admin('POST', `/workspaces/${other.id}/keys`, { kind: 'secret', environment: 'live' })
  const { body: rule } = await send('POST', '/v1/rules', { key: server.secret, body: RULE })
  const path = `/v1/rules/${rule.id}`
  for (const key of [foreign.body.key, server.testSecret]) {
    for (const [method, sent] of [
      ['GET', {}],
      ['PUT', { body: { name: 'mine' } }],
      ['PUT', { body: {} }],
      ['DELETE', {}],
    ] as const) {
      const theirs = await send(method, path, { key, ...sent })
      const unknown = await send(method, UNKNOWN_RULE, { key, ...sent })
      t.equal(theirs.status, 404)
      t.same(theirs.body, unknown.body)
    }
    t.same((await send('GET', '/v1/rules', { key })).body, { data: [], total: 0 })
  }
  t.match(await send('GET', path, { key: server.secret }), { status: 200, body: { name: 'Bots' } })
})

t.test('an address that fails too often is slowed down, a valid key never', async (t) => {
  let now = Math.floor(systemClock.now() / MINUTE_MS) * MINUTE_MS
  const clock: Clock = { ...systemClock, now: () => now }
  const server = await openServer(t, { clock })
  const headers = { 'x-probe-address': '203.0.113.99' }
  const answers: Answer[] = []
  for (let i = 0; i < 62; i++) answers.push(await server.send('GET', '/v1/rules', { headers }))
  t.same(
    answers.map(({ status }) => status),
    [...Array(60).fill(401), 429, 429],
  )
  const { body, headers: sent } = answers.at(-1) as Answer
  t.match(body.error, { code: 'rate_limited' })
  t.equal(sent.get('retry-after'), String(body.error.retryAfter))
  t.equal(body.error.retryAfter, 60)
  t.equal((await server.send('GET', '/v1/rules', { key: server.secret, headers })).status, 200)
  t.equal((await server.send('GET', '/v1/rules')).status, 401, 'another address is not concerned')
  now += body.error.retryAfter * 1_000
  t.equal((await server.send('GET', '/v1/rules', { headers })).status, 401, 'and after the wait it may try again')
})

t.test('a revoked key stops working at once here, and within a second where the hint is lost', async (t) => {
  const server = await openServer(t)
  const asleep: { readonly ms: number; readonly wake: () => void }[] = []
  const clock: Clock = {
    ...systemClock,
    sleep: (ms, signal) =>
      new Promise((wake) => {
        asleep.push({ ms, wake })
        signal?.addEventListener('abort', () => wake())
      }),
  }
  const bus = { ...server.bus, isLossy: true, subscribe: () => () => {} }
  const elsewhere = await openKeyDirectory({
    ...server,
    bus,
    clock,
    sealer: null,
    report: (error) => t.fail(String(error)),
  })
  t.teardown(() => elsewhere.close())
  const keys = '/workspaces/ws_default/keys'
  for (let i = 0; i < 2; i++) {
    const { body: made } = await server.admin('POST', keys, { kind: 'secret', environment: 'live' })
    t.equal((await server.send('GET', '/v1/meta', { key: made.key })).status, 200)
    await elsewhere.reload()
    t.ok(elsewhere.find(keyDigest(made.key)))
    await server.admin('DELETE', `${keys}/${made.id}`)
    t.equal((await server.send('GET', '/v1/meta', { key: made.key })).status, 401)
    t.ok(elsewhere.find(keyDigest(made.key)), 'nobody has told it')
    await eventually(
      async () => asleep.length,
      (count) => count > 0,
    )
    const [poll] = asleep.splice(0)
    t.ok(poll !== undefined && poll.ms <= 1_000, 'it asks every second')
    poll?.wake()
    // It sleeps again when that one look is over.
    await eventually(
      async () => asleep.length,
      (count) => count > 0,
    )
    t.equal(elsewhere.find(keyDigest(made.key)), null)
  }
})

t.test('who cannot confirm keys for 10 s says unavailable, never invalid', async (t) => {
  const server = await openServer(t)
  let storeDown = false
  let logDown = false
  let skippedMs = 0
  let polls = 0
  const clock: Clock = {
    ...systemClock,
    monotonic: () => systemClock.monotonic() + skippedMs,
    sleep: (ms, signal) => systemClock.sleep(ms / 20, signal),
  }
  const failing = (isDown: () => boolean) => () =>
    isDown() ? ({ kind: 'before', error: new Unavailable('down') } as const) : null
  const directory = await openKeyDirectory({
    sealer: null,
    kv: faulty(
      server.kv,
      failing(() => storeDown),
    ),
    log: faulty(server.log, () => {
      polls += 1
      return failing(() => logDown)()
    }),
    bus: server.bus,
    clock,
    report: (error) => t.fail(String(error)),
  })
  t.teardown(() => directory.close())
  const auth = openAuth(directory, clock)
  const unknown = makeKey('secret', 'live', random)
  const outcome = (key: string | null) => {
    try {
      return auth.authenticate(key, '203.0.113.1').workspace.id
    } catch (error) {
      return (error as { code: string }).code
    }
  }
  const isCertain = () =>
    eventually(
      async () => outcome(server.secret),
      (answer) => answer === 'ws_default',
    )
  /** The next but one begins when the next is over. */
  const polledAgain = async () => {
    const until = polls + 2
    await eventually(
      async () => polls,
      (count) => count >= until,
    )
  }
  await polledAgain()
  t.equal(outcome(server.secret), 'ws_default')

  storeDown = true
  skippedMs += 10_000
  t.equal(await isCertain(), 'ws_default', 'while `changes` shows no new command, keys are certain')

  logDown = true
  skippedMs += 10_000
  t.equal(outcome(server.secret), 'unavailable')
  await polledAgain()
  t.equal(outcome(server.secret), 'unavailable', 'however often it asks')
  t.equal(outcome(unknown), 'unavailable')
  t.equal(outcome(null), 'invalid_api_key')
  t.equal(outcome('sk_live_short'), 'invalid_api_key')

  storeDown = false
  logDown = false
  t.equal(await isCertain(), 'ws_default')
  t.equal(outcome(unknown), 'invalid_api_key')
})
