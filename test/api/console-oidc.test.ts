// Signing in with an OpenID provider: with a real one whom it lets in and as whom, and with one that lies that whatever does not fit is
// refused with nothing created.

import t, { type Test } from 'tap'
import { setupToken } from '../../src/api/console/links.ts'
import type { OidcSettings } from '../../src/api/console/provider.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { MINUTE_MS } from '../../src/lib/durations.ts'
import { type Browser, OWNER, openBrowser, PASSWORD, tokenOf } from '../helpers/console.ts'
import { openLyingProvider, settingsOf, signInThere, startProvider, type Twist } from '../helpers/openid.ts'
import { freePort } from '../helpers/port.ts'
import { openServer } from '../helpers/rest-surface.ts'

const SESSION = 'fingerpost_session'
const TRIP = 'fingerpost_oidc'
const ACCOUNTS = {
  'sub-vic': { email: 'Vic@Shop.example', email_verified: true, name: 'Vic at the provider' },
  'sub-other': { email: 'vic@shop.example', email_verified: true, name: 'Another Vic' },
  'sub-ada': { email: OWNER.email, email_verified: true, name: 'Ada' },
  'sub-eve': { email: 'eve@elsewhere.example', email_verified: true, name: 'Eve' },
  'sub-unverified': { email: 'una@shop.example', email_verified: false, name: 'Una' },
  'sub-new': { email: 'new@partner.example', email_verified: true, name: 'New' },
}

/** A console whose owner is signed in. */
async function openOwned(t: Test, oidc: OidcSettings) {
  const ahead = { ms: 0 }
  const clock = { ...systemClock, now: () => systemClock.now() + ahead.ms }
  const server = await openServer(t, { oidc, clock })
  const { base, sealer } = server
  const owner = openBrowser(base)
  const setUp = () => owner.ask('POST', '/console/api/setup', { token: setupToken(sealer), ...OWNER })
  const returnTo = `${base}/console/oidc`
  /** Without when they were here last. */
  const people = async (): Promise<{ email: string; role: string; status: string; id: string }[]> => {
    const { body } = await owner.ask('GET', '/console/api/members')
    return body.data.map(({ lastSeenAt: _, ...person }: { lastSeenAt: string }) => person)
  }
  const invite = (email: string, role: string) => owner.ask('POST', '/console/api/members', { email, role })
  return { ...server, ahead, owner, setUp, returnTo, people, invite }
}

const begin = async (browser: Browser): Promise<string> => (await browser.ask('POST', '/console/api/oidc')).body.url
const comeBack = (browser: Browser, returned: object) => browser.ask('POST', '/console/api/oidc/return', returned)

async function openReal(t: Test, more: Partial<OidcSettings> = {}) {
  const issuer = `http://127.0.0.1:${await freePort()}`
  const made = await openOwned(t, settingsOf(issuer, more))
  await startProvider(t, issuer, made.returnTo, ACCOUNTS)
  /** As somebody goes there and comes back. */
  const signIn = async (browser: Browser, login: string) =>
    comeBack(browser, await signInThere(await begin(browser), made.returnTo, login))
  return { ...made, issuer, signIn }
}

t.test('who was added by e-mail comes in with a session of its own, in the role that was given', async (t) => {
  const { base, owner, setUp, people, invite, signIn } = await openReal(t)
  t.match((await owner.ask('GET', '/console/api/state')).body, { needsSetup: true, oidc: { label: 'Example' } })
  t.equal((await signIn(openBrowser(base), 'sub-vic')).status, 401, 'the first one comes by the setup link')
  t.equal((await setUp()).status, 201)
  const { body: invited } = await invite('vic@shop.example', 'analyst')
  const vic = openBrowser(base)
  vic.cookies.set(SESSION, 'planted')
  const { status, body, headers } = await signIn(vic, 'sub-vic')
  t.equal(status, 200)
  t.match(body, { person: { email: 'vic@shop.example', role: 'analyst', name: 'vic' }, session: { id: /^ses_/ } })
  t.not(vic.cookies.get(SESSION), 'planted')
  t.notOk(vic.cookies.has(TRIP), 'what the way back needed is gone')
  for (const set of headers.getSetCookie()) t.match(set, /; HttpOnly; SameSite=Strict$/)
  t.equal((await vic.ask('GET', '/v1/rules')).status, 200)
  t.equal((await vic.ask('GET', '/console/api/members')).status, 403)
  t.match(
    (await people()).find(({ email }) => email === 'vic@shop.example'),
    { status: 'active', role: 'analyst' },
  )
  const late = { token: tokenOf(invited.link), password: PASSWORD }
  t.equal((await openBrowser(base).ask('POST', '/console/api/join', late)).status, 401, 'the link is used up')
  t.equal((await signIn(openBrowser(base), 'sub-vic')).body.person.id, body.person.id, 'and comes again')
  t.match(await signIn(openBrowser(base), 'sub-other'), {
    status: 401,
    body: { error: { message: /another account/ } },
  })
  const { body: audit } = await owner.ask('GET', '/v1/audit?resource=person')
  t.same(
    audit.data.map((entry: { action: string }) => entry.action),
    ['oidc', 'invite', 'create'],
  )
  t.notMatch(JSON.stringify(audit), /@|sub-/)
})

t.test('somebody with a password comes in either way, and the last admin stays', async (t) => {
  const { base, owner, setUp, people, signIn, invite } = await openReal(t)
  await setUp()
  const ada = openBrowser(base)
  t.match((await signIn(ada, 'sub-ada')).body, { person: { email: OWNER.email, role: 'admin' } })
  t.equal((await openBrowser(base).signIn(OWNER.email, PASSWORD)).status, 200)
  await invite('vic@shop.example', 'admin')
  const vic = openBrowser(base)
  t.equal((await signIn(vic, 'sub-vic')).status, 200)
  const [first, second] = await people()
  t.equal((await vic.ask('DELETE', `/console/api/members/${first?.id}`)).status, 200)
  t.equal((await owner.ask('GET', '/console/api/session')).status, 401)
  t.match((await owner.ask('GET', '/console/api/state')).body, { needsSetup: false }, 'the setup link stays used up')
  t.equal((await vic.ask('DELETE', `/console/api/members/${second?.id}`)).status, 409)
})

t.test('the real provider’s answers count once, in the browser that went there', async (t) => {
  const { base, setUp, people, invite, returnTo, signIn } = await openReal(t)
  await setUp()
  await invite('vic@shop.example', 'viewer')
  await invite('una@shop.example', 'viewer')
  const before = await people()
  const refused = { status: 401, body: { error: { code: 'sign_in_failed' } } }

  const browser = openBrowser(base)
  const returned = await signInThere(await begin(browser), returnTo, 'sub-vic')
  t.match(await comeBack(openBrowser(base), returned), refused, 'in a browser that began nothing')
  const other = openBrowser(base)
  await begin(other)
  t.match(await comeBack(other, returned), refused, 'in one that began something else')
  t.match(await comeBack(other, { ...returned, state: 'x'.repeat(43) }), refused, 'with another state')
  t.match(await signIn(openBrowser(base), 'sub-eve'), refused, 'somebody nobody has added')
  t.match(await signIn(openBrowser(base), 'sub-unverified'), refused, 'an e-mail that is not verified')
  t.match(await signInThere(await begin(openBrowser(base)), returnTo, 'refuses'), { error: 'access_denied' })
  t.same(await people(), before, 'nobody was created and nothing changed')

  const trip = browser.cookies.get(TRIP) ?? ''
  t.equal((await comeBack(browser, returned)).status, 200)
  browser.cookies.set(TRIP, trip)
  t.match(await comeBack(browser, returned), refused, 'a second time with the same cookie')
  const again = openBrowser(base)
  const { searchParams } = new URL(await begin(again))
  t.match(
    await comeBack(again, { ...returned, state: searchParams.get('state') }),
    refused,
    'an old code with a new state',
  )
})

t.test('whoever has an e-mail of a named domain comes in with the role that is set, and nobody else', async (t) => {
  const { base, setUp, people, signIn } = await openReal(t, { domains: ['partner.example'], role: 'analyst' })
  t.equal((await signIn(openBrowser(base), 'sub-new')).status, 401, 'not as the first one')
  await setUp()
  t.match((await signIn(openBrowser(base), 'sub-new')).body, {
    person: { email: 'new@partner.example', name: 'New', role: 'analyst' },
  })
  t.equal((await signIn(openBrowser(base), 'sub-new')).status, 200)
  t.equal((await signIn(openBrowser(base), 'sub-eve')).status, 401)
  t.equal((await people()).length, 2)
})

t.test('a token that lies lets nobody in', async (t) => {
  const lying = await openLyingProvider(t)
  const { base, ahead, setUp, people, invite } = await openOwned(t, settingsOf(lying.issuer))
  await setUp()
  await invite('vic@shop.example', 'viewer')
  const before = await people()
  const now = Math.floor(Date.now() / 1_000)

  async function tryWith(twist: Twist, returned: object = {}, waitMs = 0) {
    const browser = openBrowser(base, `198.51.100.${1 + (lying.asked % 200)}`)
    const { searchParams } = new URL(await begin(browser))
    Object.assign(lying, { twist, nonce: searchParams.get('nonce') })
    ahead.ms += waitMs
    const answer = await comeBack(browser, { code: 'a-code', state: searchParams.get('state'), ...returned })
    return { answer, isIn: browser.cookies.has(SESSION) }
  }
  const cut = (token: string) => token.split('.').slice(0, 2).join('.')
  const rows: readonly (readonly [string, Twist, object?, number?])[] = [
    ['another nonce', { claims: { nonce: 'another' } }],
    ['no nonce', { claims: { nonce: undefined } }],
    ['another issuer', { claims: { iss: 'https://login.example' } }],
    ['another audience', { claims: { aud: 'somebody' } }],
    ['several audiences, for another party', { claims: { aud: ['console', 'x'], azp: 'x' } }],
    ['no signature, alg none', { header: { alg: 'none' }, signedBy: 'nobody' }],
    ['the right alg without a signature', { signedBy: 'nobody' }],
    ['no third part', { alter: cut }],
    ['a foreign key', { signedBy: 'foreign' }],
    ['a key that nobody has published', { signedBy: 'foreign', header: { kid: 'two' } }],
    ['the client secret as key', { header: { alg: 'HS256' }, signedBy: 'client secret' }],
    ['an algorithm there is not', { header: { alg: 'RS1' } }],
    ['an expired token', { claims: { iat: now - 900, exp: now - 600 } }],
    ['a token without an end', { claims: { exp: undefined } }],
    ['a token without a subject', { claims: { sub: undefined } }],
    ['a subject of another type', { claims: { sub: 7 } }],
    ['a subject that is too long', { claims: { sub: 'x'.repeat(256) } }],
    ['an e-mail that is not verified', { claims: { email_verified: false } }],
    ['an e-mail said to be verified in words', { claims: { email_verified: 'true' } }],
    ['an e-mail nobody speaks of', { claims: { email_verified: undefined } }],
    ['no e-mail', { claims: { email: undefined } }],
    ['no e-mail address', { claims: { email: 'vic' } }],
    ['a list of e-mails', { claims: { email: ['vic@shop.example'] } }],
    ['an e-mail nobody has added', { claims: { email: 'eve@shop.example' } }],
    ['no token', { alter: () => '' }],
    ['something else', { alter: () => 'not.a.token' }],
    ['a refusal', { status: 400 }],
    ['an answer of another provider', {}, { iss: 'https://login.example' }],
    ['another state', {}, { state: 'x'.repeat(43) }],
    ['a way back that took too long', {}, {}, 11 * MINUTE_MS],
  ]
  for (const [what, twist, returned, waitMs] of rows) {
    const { answer, isIn } = await tryWith(twist, returned, waitMs)
    t.match(answer, { status: 401, body: { error: { code: 'sign_in_failed' } } }, what)
    t.notOk(isIn, `${what}: no session`)
  }
  t.same(await people(), before, `nothing was created in ${rows.length} attempts`)
  const failing = await tryWith({ status: 503 })
  t.match(failing.answer, { status: 503, body: { error: { code: 'unavailable', message: /password/ } } })
  t.equal((await tryWith({})).answer.status, 200, 'and the same without a lie comes in')
})

t.test('what is sent back is bounded, and no page of another origin may send it', async (t) => {
  const lying = await openLyingProvider(t)
  const { base, setUp } = await openOwned(t, settingsOf(lying.issuer))
  await setUp()
  const browser = openBrowser(base)
  for (const body of [
    { code: '', state: 'x' },
    { code: 'x'.repeat(4_097), state: 'x' },
    { code: 'x', state: 'x'.repeat(101) },
    { code: 'x', state: 'x', more: 1 },
    { state: 'x' },
  ]) {
    t.equal((await comeBack(browser, body)).status, 400)
  }
  browser.cookies.set(TRIP, 'planted')
  t.equal((await comeBack(browser, { code: 'x', state: 'x' })).status, 401)
  const foreign = { Origin: 'https://evil.example' }
  t.equal((await browser.ask('POST', '/console/api/oidc', undefined, foreign)).status, 403)
  t.equal((await browser.ask('POST', '/console/api/oidc/return', { code: 'x', state: 'x' }, foreign)).status, 403)
  t.equal(lying.asked, 0, 'and the provider was asked nothing')
})

t.test('a provider that cannot be reached is no way in, and passwords are', async (t) => {
  const { base, setUp } = await openOwned(t, settingsOf(`http://127.0.0.1:${await freePort()}`))
  await setUp()
  const { status, body } = await openBrowser(base).ask('POST', '/console/api/oidc')
  t.match(
    { status, code: body.error.code, retryAfter: body.error.retryAfter },
    { status: 503, code: 'unavailable', retryAfter: 5 },
  )
  t.equal((await openBrowser(base).signIn(OWNER.email, PASSWORD)).status, 200)
})
