// What somebody who is not signed in, or whose page a signed-in person opens, may try against the console over HTTP.

import { createHash } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { setupToken } from '../../src/api/console/links.ts'
import { openPasswords } from '../../src/api/console/passwords.ts'
import { type ApiRoute, keyed } from '../../src/api/routes.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { HOUR_MS, MINUTE_MS } from '../../src/lib/durations.ts'
import { OWNER, openBrowser, PASSWORD } from '../helpers/console.ts'
import { random } from '../helpers/control-plane.ts'
import { openServer } from '../helpers/rest-surface.ts'

async function openOwned(t: Test, isSecure = false, routes: readonly ApiRoute[] = []) {
  const ahead = { ms: 0 }
  const work: { readonly saltBytes: number; readonly cost: object }[] = []
  const passwords = openPasswords(random, async (password, salt, cost) => {
    work.push({ saltBytes: salt.length, cost })
    return createHash('sha256').update(salt).update(password).digest()
  })
  // Windows of counters begin with the hour, so that none ends while something is counted.
  const start = Math.ceil(systemClock.now() / HOUR_MS) * HOUR_MS
  const clock = { ...systemClock, now: () => start + ahead.ms }
  const server = await openServer(t, { passwords, isSecure, clock, routes })
  const owner = openBrowser(server.base, '203.0.113.1')
  const setUp = await owner.ask('POST', '/console/api/setup', { token: setupToken(server.sealer), ...OWNER })
  t.equal(setUp.status, 201)
  return { ...server, owner, ahead, work, setUp }
}

const SESSION = 'fingerpost_session'
const RULE = {
  name: 'Bots',
  conditions: { operator: 'AND', rules: [{ field: 'signals.bot.detected', operator: 'equals', value: true }] },
  action: { verdict: 'block' },
}

t.test('a cookie that was planted before the sign-in is worth nothing after it', async (t) => {
  const { base, owner } = await openOwned(t)
  const planted = 'A'.repeat(43)
  const victim = openBrowser(base)
  victim.cookies.set(SESSION, planted)
  t.equal((await victim.signIn(OWNER.email, PASSWORD)).status, 200)
  t.not(victim.cookies.get(SESSION), planted)
  const attacker = openBrowser(base)
  attacker.cookies.set(SESSION, planted)
  t.equal((await attacker.ask('GET', '/console/api/session')).status, 401)
  // Nor is a session of the attacker's own, planted in the victim's browser.
  const own = owner.cookies.get(SESSION) ?? ''
  const other = openBrowser(base)
  other.cookies.set(SESSION, own)
  t.equal((await other.signIn(OWNER.email, PASSWORD)).status, 200)
  t.not(other.cookies.get(SESSION), own)
  t.equal((await owner.ask('GET', '/console/api/session')).status, 401, 'it is over, not shared')
})

t.test('a page of another origin makes nothing happen, whatever it sends', async (t) => {
  const { owner, base, secret, send } = await openOwned(t)
  const port = new URL(base).port
  const foreign: Readonly<Record<string, string>>[] = [
    { Origin: 'https://evil.example' },
    { Origin: 'null' },
    { Origin: `http://127.0.0.1:${Number(port) + 1}` },
    { Origin: `http://127.0.0.1.evil.example:${port}` },
    { Origin: '', 'Sec-Fetch-Site': 'cross-site' },
    { Origin: '', 'Sec-Fetch-Site': 'same-site' },
    { 'X-Fingerpost-CSRF': '' },
    { 'X-Fingerpost-CSRF': 'A'.repeat(43) },
    { 'X-Fingerpost-CSRF': `${owner.csrf}A` },
  ]
  const writes: readonly (readonly [string, string, unknown?])[] = [
    ['POST', '/v1/rules', RULE],
    ['GET', '/v1/rules'],
    ['DELETE', '/console/api/sessions'],
    ['POST', '/console/api/sign-out'],
    ['POST', '/console/api/members', { email: 'eve@evil.example', role: 'admin' }],
    ['POST', '/console/api/password', { current: PASSWORD, password: 'chosen by somebody else' }],
  ]
  for (const headers of foreign) {
    for (const [method, path, body] of writes) {
      const { status } = await owner.ask(method, path, body, headers)
      t.equal(status, 403, `${method} ${path} with ${JSON.stringify(headers)}`)
    }
  }
  // A form cannot send JSON, and a sign-in by somebody else's page is refused as well.
  const form = { 'Content-Type': 'application/x-www-form-urlencoded' }
  t.equal((await owner.ask('POST', '/v1/rules', RULE, form)).status, 415)
  const credentials = { email: OWNER.email, password: PASSWORD }
  const signIn = (headers: Readonly<Record<string, string>>) =>
    openBrowser(base).ask('POST', '/console/api/sign-in', credentials, headers)
  t.equal((await signIn({ Origin: 'https://evil.example' })).status, 403)
  t.equal((await signIn({ 'Content-Type': 'text/plain' })).status, 415)
  t.equal((await owner.ask('GET', '/console/api/session', undefined, { Origin: 'https://evil.example' })).status, 403)
  t.match((await send('GET', '/v1/rules', { key: secret })).body, { total: 0 }, 'nothing happened')
})

t.test('no answer may be framed, sniffed, read by another origin or kept', async (t) => {
  const { owner, base, setUp } = await openOwned(t)
  const answers = [
    setUp,
    await owner.ask('GET', '/console/api/state'),
    await owner.ask('GET', '/console/api/session'),
    await owner.ask('GET', '/v1/rules'),
    await owner.ask('GET', '/v1/rules/rul_00000000000000000000'),
    await openBrowser(base).ask('GET', '/console/api/session'),
    await openBrowser(base).ask('POST', '/console/api/sign-in', {}),
  ]
  for (const { headers } of answers) {
    t.equal(headers.get('x-frame-options'), 'DENY')
    t.equal(headers.get('content-security-policy'), "default-src 'none'; frame-ancestors 'none'")
    t.equal(headers.get('x-content-type-options'), 'nosniff')
    t.equal(headers.get('cross-origin-resource-policy'), 'same-origin')
    t.equal(headers.get('cache-control'), 'no-store')
    t.equal(headers.get('access-control-allow-origin'), null)
  }
})

t.test('cookies are out of reach for scripts and other sites, and under HTTPS for other hosts', async (t) => {
  const { setUp } = await openOwned(t, true)
  const cookies = setUp.headers.getSetCookie()
  t.equal(cookies.length, 2)
  for (const cookie of cookies)
    t.match(cookie, /^__Host-fingerpost_\w+=[\w.-]+; Path=\/; Max-Age=\d+; HttpOnly; SameSite=Strict; Secure$/)
})

t.test('a session is no key and a key is no session', async (t) => {
  const { owner, base, secret, publicKey } = await openOwned(t)
  const token = owner.cookies.get(SESSION) ?? ''
  const status = async (path: string, headers: Record<string, string>) => (await fetch(base + path, { headers })).status
  t.equal(await status('/v1/rules', { Authorization: `Bearer ${token}` }), 401)
  for (const key of [secret, publicKey]) {
    t.equal(await status('/console/api/session', { Authorization: `Bearer ${key}` }), 401)
    t.equal(await status('/console/api/members', { Authorization: `Bearer ${key}` }), 401)
  }
  t.equal((await owner.ask('GET', '/v1/rules', undefined, { Authorization: 'Bearer sk_live_short' })).status, 401)
  t.equal((await owner.ask('GET', '/admin/v1/workspaces')).status, 401, 'an admin is no operator')
})

t.test('a sign-in does the same work whether there is somebody or not', async (t) => {
  const { owner, base, work } = await openOwned(t)
  await owner.ask('POST', '/console/api/members', { email: 'invited@shop.example', role: 'viewer' })
  const tries = [
    ['known', OWNER.email],
    ['unknown', 'nobody@shop.example'],
    ['invited', 'invited@shop.example'],
    ['no address at all', 'nobody'],
  ] as const
  const answers: string[] = []
  for (const [who, email] of tries) {
    work.length = 0
    const { status, body } = await openBrowser(base, `198.51.100.${answers.length + 20}`).signIn(
      email,
      'a wrong password',
    )
    answers.push(JSON.stringify([status, body]))
    t.same(work, [{ saltBytes: 16, cost: { logN: 15, r: 8, p: 3 } }], who)
  }
  t.equal(new Set(answers).size, 1, 'and nobody is told which it was')
})

t.test('guesses are bounded for an address and for an account, before anything is compared', async (t) => {
  const { base, ahead, work } = await openOwned(t)
  const attacker = openBrowser(base, '192.0.2.66')
  work.length = 0
  const statuses = await Promise.all(Array.from({ length: 12 }, (_, i) => attacker.signIn(OWNER.email, `guess ${i}`)))
  t.equal(statuses.filter(({ status }) => status === 401).length, 5)
  const refused = statuses.filter(({ status }) => status === 429)
  t.equal(refused.length, 7)
  t.ok(refused.every(({ headers, body }) => Number(headers.get('retry-after')) === body.error.retryAfter))
  t.equal(work.length, 5)
  ahead.ms += MINUTE_MS
  t.equal((await attacker.signIn(OWNER.email, 'once more')).status, 401)
})

t.test('whoever guesses from everywhere does not lock out a browser that signed in before', async (t) => {
  const { base, owner, ahead } = await openOwned(t)
  await owner.ask('POST', '/console/api/sign-out')
  let guesses = 0
  for (let i = 0; i < 60; i++) {
    if ((await openBrowser(base, `192.0.2.${i}`).signIn(OWNER.email, 'guess')).status === 401) guesses++
  }
  t.equal(guesses, 30)
  t.equal((await openBrowser(base, '198.51.100.200').signIn(OWNER.email, PASSWORD)).status, 429, 'a new browser waits')
  t.equal((await owner.signIn(OWNER.email, PASSWORD)).status, 200, 'the owner’s own does not')
  const forged = openBrowser(base, '198.51.100.201')
  forged.cookies.set('fingerpost_device', `${'A'.repeat(22)}.${'B'.repeat(43)}`)
  t.equal((await forged.signIn(OWNER.email, 'guess')).status, 429)
  const stolen = openBrowser(base, '198.51.100.202')
  stolen.cookies.set('fingerpost_device', owner.cookies.get('fingerpost_device') ?? '')
  const further = await Promise.all(Array.from({ length: 20 }, () => stolen.signIn(OWNER.email, 'guess')))
  t.ok(further.filter(({ status }) => status === 401).length <= 10, 'a stolen one is bounded by itself')
  const altered = Array.from({ length: 20 }, (_, i) => {
    const browser = openBrowser(base, `198.51.100.${220 + i}`)
    browser.cookies.set('fingerpost_device', `${owner.cookies.get('fingerpost_device')}.${i}`)
    return browser.signIn(OWNER.email, 'guess')
  })
  for (const { status } of await Promise.all(altered)) t.equal(status, 429, 'one with something behind it is none')
  ahead.ms += HOUR_MS
  t.equal((await openBrowser(base, '198.51.100.200').signIn(OWNER.email, PASSWORD)).status, 200)
})

t.test('a page that listens, and asks nothing, keeps nobody signed in', async (t) => {
  const listening = keyed({
    method: 'GET',
    path: '/v1/listening',
    access: 'any-key',
    handle: () => ({ body: null, stream: (stream) => void stream.write('event: listening\n\n') }),
  })
  const { owner, ahead } = await openOwned(t, false, [listening])
  const stream = owner.ask('GET', '/v1/listening')
  // A look at whether it is still allowed comes twice a second.
  await sleep(1_200)
  ahead.ms += 11 * HOUR_MS
  await sleep(1_200)
  ahead.ms += 2 * HOUR_MS
  t.match((await stream).body, /listening/, 'it ends with the session')
  t.equal((await owner.ask('GET', '/console/api/session')).status, 401)
})
