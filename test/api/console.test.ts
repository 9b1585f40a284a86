// People and their sessions over HTTP: how the first one comes in, how others follow, what each changes about itself, and when a
// session is over. Passwords are cheap here; what they cost is not what is tried.

import { createHash } from 'node:crypto'
import t, { type Test } from 'tap'
import { resetLink, setupToken } from '../../src/api/console/links.ts'
import { openPasswords } from '../../src/api/console/passwords.ts'
import { totpCode, totpStep } from '../../src/api/console/totp.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { DAY_MS, HOUR_MS } from '../../src/lib/durations.ts'
import { type Browser, join, OWNER, openBrowser, PASSWORD, tokenOf } from '../helpers/console.ts'
import { random } from '../helpers/control-plane.ts'
import { openServer } from '../helpers/rest-surface.ts'

const NEW_PASSWORD = 'another long password'

async function openConsole(t: Test) {
  const ahead = { ms: 0 }
  const derived: string[] = []
  const passwords = openPasswords(random, async (password, salt) => {
    derived.push(password)
    return createHash('sha256').update(salt).update(password).digest()
  })
  const clock = { ...systemClock, now: () => systemClock.now() + ahead.ms }
  const server = await openServer(t, { passwords, clock })
  const { base, sealer } = server
  const owner = openBrowser(base)
  const setUp = (browser: Browser, token = setupToken(sealer)) =>
    browser.ask('POST', '/console/api/setup', { token, ...OWNER })
  return { ...server, clock, ahead, derived, owner, setUp }
}

/** The same with its owner signed in. */
async function openOwned(t: Test) {
  const made = await openConsole(t)
  t.equal((await made.setUp(made.owner)).status, 201)
  return made
}

t.test('the setup link makes the first admin, once', async (t) => {
  const { base, owner, setUp } = await openConsole(t)
  t.match((await owner.ask('GET', '/console/api/state')).body, { needsSetup: true, oidc: null })
  t.match(await setUp(openBrowser(base), 'x'.repeat(43)), { status: 401, body: { error: { code: 'sign_in_failed' } } })
  const [one, two] = await Promise.all([setUp(owner), setUp(openBrowser(base))])
  t.same([one.status, two.status].sort(), [201, 409], 'of two at once one is first')
  const made = one.status === 201 ? one : two
  t.match(made.body, {
    person: { id: /^per_/, email: OWNER.email, name: 'Ada', role: 'admin', totp: false },
    session: { id: /^ses_/ },
    workspace: { id: 'ws_default', plan: 'enterprise' },
  })
  t.notMatch(JSON.stringify(made.body), /scrypt|password/)
  t.match((await owner.ask('GET', '/console/api/state')).body, { needsSetup: false })
  const again = await openBrowser(base).ask('POST', '/console/api/setup', {
    ...{ token: 'x'.repeat(43), email: 'eve@shop.example', name: 'Eve', password: PASSWORD },
  })
  t.equal(again.status, 401)
})

t.test('what is typed at the set-up is bounded and checked', async (t) => {
  const { owner, sealer } = await openConsole(t)
  const token = setupToken(sealer)
  for (const [wrong, field] of [
    [{ email: 'nobody' }, 'email'],
    [{ email: `${'a'.repeat(320)}@b.example` }, 'email'],
    [{ password: 'short' }, 'password'],
    [{ password: 'x'.repeat(257) }, 'password'],
    [{ name: '' }, 'name'],
    [{ name: 'x'.repeat(201) }, 'name'],
    [{ role: 'admin' }, 'role'],
  ] as const) {
    const { status, body } = await owner.ask('POST', '/console/api/setup', { token, ...OWNER, ...wrong })
    t.same([status, body.error.field], [400, field])
  }
})

t.test(
  'a session reads and writes where the role may, in the environment it names, under the person’s name',
  async (t) => {
    const { owner, base } = await openOwned(t)
    const rule = {
      name: 'Bots',
      conditions: { operator: 'AND', rules: [{ field: 'signals.bot.detected', operator: 'equals', value: true }] },
      action: { verdict: 'block' },
      status: 'draft',
    }
    const inTest = { 'X-Fingerpost-Environment': 'test' }
    const { status, body: made } = await owner.ask('POST', '/v1/rules', rule, inTest)
    t.equal(status, 201)
    t.equal((await owner.ask('GET', `/v1/rules/${made.id}`, undefined, inTest)).status, 200)
    t.equal((await owner.ask('GET', `/v1/rules/${made.id}`)).status, 404, 'live is another environment')
    t.equal((await owner.ask('GET', '/v1/rules', undefined, { 'X-Fingerpost-Environment': 'prod' })).status, 400)
    const { body: audit } = await owner.ask('GET', '/v1/audit?resource=rule', undefined, inTest)
    t.match(audit.data, [{ actor: 'Ada', by: { type: 'person', id: /^per_/, label: 'Ada' }, action: 'create' }])
    const viewer = await join(owner, base, 'vic@shop.example', 'viewer')
    t.match(await viewer.ask('POST', '/v1/rules', rule), {
      status: 403,
      body: { error: { code: 'insufficient_permissions', message: /role lacks.*rules:write/ } },
    })
    const { body: people } = await owner.ask('GET', '/v1/audit?resource=person')
    t.same(
      people.data.map((entry: { action: string }) => entry.action),
      ['join', 'invite', 'create'],
      'who came is told in both environments',
    )
    t.notMatch(JSON.stringify(people), /@|scrypt|digest/, 'without addresses and secrets')
  },
)

t.test('an invitation lets one person in, once, and its role can be changed at once', async (t) => {
  const { owner, base } = await openOwned(t)
  const invited = await owner.ask('POST', '/console/api/members', { email: 'Vic@Shop.example', role: 'viewer' })
  t.match(invited, { status: 201, body: { member: { email: 'vic@shop.example', status: 'invited', role: 'viewer' } } })
  t.match(await owner.ask('POST', '/console/api/members', { email: 'vic@shop.example', role: 'admin' }), {
    status: 409,
    body: { error: { code: 'conflict', field: 'email' } },
  })
  const { id } = invited.body.member
  const older = tokenOf(invited.body.link)
  const { body: renewed } = await owner.ask('POST', `/console/api/members/${id}/link`)
  const use = (token: string) => openBrowser(base).ask('POST', '/console/api/join', { token, password: PASSWORD })
  t.equal((await use(older)).status, 401, 'a new link replaces the one before')
  const vic = openBrowser(base)
  const joined = await vic.ask('POST', '/console/api/join', {
    ...{ token: tokenOf(renewed.link), name: 'Vic', password: PASSWORD },
  })
  t.match(joined, { status: 200, body: { person: { name: 'Vic', role: 'viewer' } } })
  t.equal((await use(tokenOf(renewed.link))).status, 401, 'it is used up')
  t.equal((await vic.ask('GET', '/console/api/members')).status, 403)
  t.equal((await owner.ask('PATCH', `/console/api/members/${id}`, { role: 'admin' })).status, 200)
  t.match((await vic.ask('GET', '/console/api/members')).body, { total: 2 }, 'the session has the new role')
  t.equal((await owner.ask('DELETE', `/console/api/members/${id}`)).status, 200)
  t.match(await vic.ask('GET', '/console/api/session'), { status: 401, body: { error: { code: 'invalid_session' } } })
  t.equal((await vic.signIn('vic@shop.example', PASSWORD)).status, 401)
  const late = await owner.ask('POST', '/console/api/members', { email: 'vic@shop.example', role: 'editor' })
  t.equal(late.status, 201, 'whoever was removed may be invited anew')
  t.equal((await use(tokenOf(late.body.link).replace(/.$/, (last) => (last === 'A' ? 'B' : 'A')))).status, 401)
})

t.test('the last admin stays one', async (t) => {
  const { owner, base } = await openOwned(t)
  const { body } = await owner.ask('GET', '/console/api/members')
  const me = `/console/api/members/${body.data[0].id}`
  const invited = await owner.ask('POST', '/console/api/members', { email: 'bob@shop.example', role: 'admin' })
  t.equal((await owner.ask('DELETE', me)).status, 409, 'whoever has not joined yet could let nobody in')
  t.equal((await owner.ask('PATCH', me, { role: 'editor' })).status, 409)
  const bob = openBrowser(base)
  await bob.ask('POST', '/console/api/join', { token: tokenOf(invited.body.link), password: PASSWORD })
  t.equal((await bob.ask('DELETE', me)).status, 200)
  t.equal((await owner.ask('GET', '/console/api/session')).status, 401)
})

t.test('a session is over after 12 hours of nothing, after a week in any case, and when it is ended', async (t) => {
  const { owner, ahead } = await openOwned(t)
  const isIn = async () => (await owner.ask('GET', '/console/api/session')).status === 200
  ahead.ms += 11 * HOUR_MS
  t.ok(await isIn())
  ahead.ms += 11 * HOUR_MS
  t.ok(await isIn(), 'a request keeps it')
  ahead.ms += 13 * HOUR_MS
  t.notOk(await isIn())
  t.equal((await owner.signIn(OWNER.email, PASSWORD)).status, 200)
  for (let hours = 0; hours < 6.5 * 24; hours += 10) {
    ahead.ms += 10 * HOUR_MS
    t.ok(await isIn())
  }
  ahead.ms += DAY_MS / 2
  t.notOk(await isIn())
  t.equal((await owner.signIn(OWNER.email, PASSWORD)).status, 200)
  const [token = ''] = [owner.cookies.get('fingerpost_session')]
  t.equal((await owner.ask('POST', '/console/api/sign-out')).status, 200)
  t.notOk(owner.cookies.has('fingerpost_session'))
  owner.cookies.set('fingerpost_session', token)
  t.notOk(await isIn(), 'the cookie of before is worth nothing')
})

t.test('one’s sessions are listed and ended, and nobody else’s', async (t) => {
  const { owner, base } = await openOwned(t)
  const elsewhere = openBrowser(base, '203.0.113.5')
  await elsewhere.signIn(OWNER.email, PASSWORD)
  const vic = await join(owner, base, 'vic@shop.example', 'viewer')
  const { body } = await owner.ask('GET', '/console/api/sessions')
  t.equal(body.total, 2)
  t.match(
    body.data.find((one: { current: boolean }) => !one.current),
    { address: '203.0.113.5', userAgent: 'A browser' },
  )
  const other = body.data.find((one: { current: boolean }) => !one.current).id
  t.equal((await vic.ask('DELETE', `/console/api/sessions/${other}`)).status, 404)
  t.equal((await owner.ask('DELETE', `/console/api/sessions/${other}`)).status, 200)
  t.equal((await elsewhere.ask('GET', '/console/api/session')).status, 401)
  await elsewhere.signIn(OWNER.email, PASSWORD)
  t.match((await owner.ask('DELETE', '/console/api/sessions')).body, { deleted: 1 })
  t.equal((await elsewhere.ask('GET', '/console/api/session')).status, 401)
  t.equal((await owner.ask('GET', '/console/api/session')).status, 200)
})

t.test('a new password needs the old one, ends every other session and gives this browser a new one', async (t) => {
  const { owner, base } = await openOwned(t)
  const elsewhere = openBrowser(base)
  await elsewhere.signIn(OWNER.email, PASSWORD)
  const before = owner.cookies.get('fingerpost_session')
  const change = (current: string) => owner.ask('POST', '/console/api/password', { current, password: NEW_PASSWORD })
  t.equal((await change('wrong')).status, 401)
  t.equal((await change(PASSWORD)).status, 200)
  t.not(owner.cookies.get('fingerpost_session'), before)
  t.equal((await owner.ask('GET', '/console/api/session')).status, 200)
  t.equal((await elsewhere.ask('GET', '/console/api/session')).status, 401)
  t.equal((await elsewhere.signIn(OWNER.email, PASSWORD)).status, 401)
  t.equal((await elsewhere.signIn(OWNER.email, NEW_PASSWORD)).status, 200)
})

t.test('an authenticator is confirmed before it counts, and each of its codes counts once', async (t) => {
  const { owner, base, ahead, clock } = await openOwned(t)
  const codeNow = (secret: string) => totpCode(secret, totpStep(clock.now()))
  const { body: offered } = await owner.ask('POST', '/console/api/totp', { password: PASSWORD })
  t.match(offered, { secret: /^[A-Z2-7]{32}$/, uri: /^otpauth:\/\/totp\/Fingerpost:ada%40shop\.example\?secret=/ })
  t.equal((await openBrowser(base).signIn(OWNER.email, PASSWORD)).status, 200, 'it does not count yet')
  const wrong = String((Number(codeNow(offered.secret)) + 1) % 1_000_000).padStart(6, '0')
  t.equal((await owner.ask('POST', '/console/api/totp/confirm', { code: wrong })).status, 401)
  const first = codeNow(offered.secret)
  t.match(await owner.ask('POST', '/console/api/totp/confirm', { code: first }), {
    status: 200,
    body: { person: { totp: true } },
  })
  const elsewhere = openBrowser(base, '203.0.113.9')
  t.match((await elsewhere.signIn(OWNER.email, PASSWORD)).body, { error: { code: 'code_required' } })
  t.equal((await elsewhere.signIn(OWNER.email, PASSWORD, first)).status, 401, 'the code that confirmed it is used up')
  ahead.ms += 60_000
  const second = codeNow(offered.secret)
  const both = await Promise.all([
    elsewhere.signIn(OWNER.email, PASSWORD, second),
    openBrowser(base, '203.0.113.10').signIn(OWNER.email, PASSWORD, second),
  ])
  t.same(both.map(({ status }) => status).sort(), [200, 401], 'of two with one code one comes in')
  ahead.ms += 60_000
  t.equal((await openBrowser(base).signIn(OWNER.email, 'wrong password', codeNow(offered.secret))).status, 401)
  ahead.ms += 10 * 60_000
  const { status } = await openBrowser(base).signIn(OWNER.email, PASSWORD, codeNow(offered.secret))
  t.equal(status, 200)
})

t.test('a link of the command line lets somebody back in, once and for an hour', async (t) => {
  const { owner, base, sealer, clock } = await openOwned(t)
  const { body: offered } = await owner.ask('POST', '/console/api/totp', { password: PASSWORD })
  await owner.ask('POST', '/console/api/totp/confirm', { code: totpCode(offered.secret, totpStep(clock.now())) })
  const link = resetLink(base, sealer, OWNER.email, clock.now())
  t.match(link, /\/console\/reset#token=r\./)
  const use = (token: string) =>
    openBrowser(base, '203.0.113.7').ask('POST', '/console/api/join', { token, password: NEW_PASSWORD })
  t.equal((await use(tokenOf(resetLink(base, sealer, 'eve@shop.example', clock.now())))).status, 401)
  t.equal((await use(tokenOf(link).replace(/.$/, (last) => (last === 'A' ? 'B' : 'A')))).status, 401, 'a forged one')
  const stale = tokenOf(resetLink(base, sealer, OWNER.email, clock.now() - HOUR_MS))
  t.equal((await use(stale)).status, 401, 'one of an hour ago')
  t.match(await use(tokenOf(link)), { status: 200, body: { person: { email: OWNER.email, totp: false } } })
  t.equal((await use(tokenOf(link))).status, 401, 'it is used up')
  t.equal((await owner.ask('GET', '/console/api/session')).status, 401)
  t.equal((await openBrowser(base).signIn(OWNER.email, NEW_PASSWORD)).status, 200)
})
