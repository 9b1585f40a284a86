// What a site may choose: what is sent of its addresses, what is stored and where, several endpoints, results kept for a while, calls
// that end early, and pages that go on without an answer.

import t from 'tap'
import { found, startFakeService } from './fake-service.ts'
import { only, readStores, run, setStage, token } from './scene.ts'

t.setTimeout(600_000)
const stage = setStage(t)
const nothing = { cookie: null, local: null, database: null }

t.test('of a page’s address no query and no fragment is sent, unless the site names them', async (t) => {
  const { service, page } = await stage.open(
    t,
    '/plain?reset_token=s3cret&utm_source=mail&utm%5Fmedium=x#access_token=9',
  )
  await run(page, 'await client.get()')
  await run(page, 'await client.get()', `budgetMs: 1, urlParams: ['utm_source', 'utm_medium']`)
  await run(page, 'await client.get()', 'budgetMs: 1, urlFragment: true')
  const plain = `${service.url}/plain`
  t.same(
    service.bodies.map(({ body }) => body.url),
    [plain, `${plain}?utm_source=mail&utm%5Fmedium=x`, `${plain}#access_token=9`],
  )
  t.notMatch(service.bodies[0]?.text, /s3cret/)
  await page.evaluate(`location.href = '/plain?next=1'`)
  await page.waitForURL('**/plain?next=1')
  await page.waitForFunction('typeof Fingerpost === "object"')
  await run(page, 'await client.get()')
  t.equal(service.bodies.at(-1)?.body.referrer, plain, 'nor of the page before')
})

t.test('without storage nothing is read, sent or kept, until it is allowed', async (t) => {
  const { service, page } = await stage.open(t, '/plain')
  service.defaultReply = found(token)
  await page.evaluate(`localStorage.setItem('fingerpost_test', '${token}')`)
  await run(page, 'await client.get()', 'budgetMs: 1, storage: false')
  t.equal(only(service).body.storageToken, null)
  await page.evaluate(`localStorage.removeItem('fingerpost_test')`)
  t.same(await page.evaluate(`(async () => { return ${readStores} })()`), nothing)
  const allowed = 'await client.get().then(() => client.allowStorage(true)).then(() => client.get())'
  await run(page, `${allowed} && ${readStores}`, 'budgetMs: 1, storage: false')
  t.same(await page.evaluate(`(async () => { return ${readStores} })()`), {
    cookie: token,
    local: token,
    database: token,
  })
  await run(page, 'await client.allowStorage(false)')
  t.same(await page.evaluate(`(async () => { return ${readStores} })()`), nothing, 'and forgotten when it is not')
})

t.test('cookies go along to the page’s own origin, and nowhere where the site says so', async (t) => {
  const { service, page } = await stage.open(t, '/plain')
  await page.context().addCookies([{ name: 'fp_test', value: token, url: service.url, httpOnly: true }])
  await run(page, 'await client.get()')
  await run(page, 'await client.get()', `budgetMs: 1, serverCookie: 'off'`)
  await run(page, 'await client.get()', 'budgetMs: 1, storage: false')
  t.same(
    service.bodies.map(({ cookie }) => cookie?.includes(token) ?? false),
    [true, false, false],
  )
})

t.test('where one endpoint cannot be reached or fails, the next one gets the same bytes', async (t) => {
  const other = await startFakeService()
  t.teardown(() => other.close())
  const { service, page } = await stage.open(t, '/plain')
  const endpoints = `budgetMs: 1, endpoint: ['${service.url}', 'http://127.0.0.1:1', '${other.url}']`
  service.replies = [{ status: 503, body: { error: { code: 'unavailable', message: 'later' } } }]
  const result = await run<Record<string, unknown>>(page, 'await client.get()', endpoints)
  t.equal(result.visitorId, 'pv_abcdefghij0123456789')
  t.equal(only(other).text, only(service).text)
  service.replies = [{ status: 403, body: { error: { code: 'origin_not_allowed', message: 'no' } } }]
  const code = await run(page, 'await client.get().catch(({ code }) => code)', endpoints)
  t.equal(code, 'origin_not_allowed')
  t.equal(other.bodies.length, 1, 'a refusal is an answer')
})

t.test('a result is kept for a while for the same options, and for the next page', async (t) => {
  const { service, page } = await stage.open(t, '/plain')
  const cached = 'budgetMs: 1, cacheSeconds: 60'
  const [first, again] = await run<[object, object]>(page, '[await client.get(), await client.get()]', cached)
  t.same(again, first)
  t.equal(service.bodies.length, 1)
  await run(page, `await client.get({ linkedId: 'user_1' })`, cached)
  t.equal(service.bodies.length, 2, 'another account is another question')
  await page.reload()
  await page.waitForFunction('typeof Fingerpost === "object"')
  await run(page, `await client.get({ linkedId: 'user_1' })`, cached)
  t.equal(service.bodies.length, 2)
  await run(page, `await client.reset().then(() => client.get({ linkedId: 'user_1' }))`, cached)
  t.equal(service.bodies.length, 3, 'a reset forgets it')
  await run(page, 'await client.get()')
  t.equal(service.bodies.length, 4, 'nobody gets it who did not ask for it')
})

t.test('a result that was kept is not given for another key or another endpoint', async (t) => {
  const { service, page } = await stage.open(t, '/plain')
  const cached = 'budgetMs: 1, cacheSeconds: 60'
  await run(page, 'await client.get()', cached)
  await run(page, 'await client.get()', `${cached}, publicKey: 'pk_test_y'`)
  t.match(service.bodies[1]?.path, /pk_test_y/)
  await run(
    page,
    'await client.get()',
    `${cached}, publicKey: 'pk_test_y', endpoint: 'http://localhost:${service.port}'`,
  )
  t.equal(service.bodies.length, 3)
})

t.test('a site that lets subdomains share the cookie keeps one, the newest, and forgets it whole', async (t) => {
  const { service, page } = await stage.open(t, '/plain')
  const site = 'http://www.shop.example'
  const [older, newer, newest] = ['o', 'n', 'm'].map((letter) => `st_${letter.repeat(20)}`)
  const ofSite = async () => {
    const cookies = await page.context().cookies(site)
    return cookies.map(({ domain, value }) => `${domain} ${value}`).sort()
  }
  // No such host: its requests are answered by the service.
  await page.route(`${site}/**`, async (route) => {
    const { pathname, search } = new URL(route.request().url())
    await route.fulfill({ response: await route.fetch({ url: service.url + pathname + search }) })
  })
  t.teardown(() => page.unrouteAll())
  await page.goto(`${site}/plain`)
  await page.evaluate(`document.cookie = 'fingerpost_test=${older}; Path=/'`)
  await page.evaluate(`document.cookie = 'fingerpost_test=${newer}; Path=/; Domain=shop.example'`)
  t.same(await ofSite(), [`.shop.example ${newer}`, `www.shop.example ${older}`], 'as a site that was set over has it')
  service.defaultReply = found(newest)
  const shared = `budgetMs: 1, cookieDomain: 'shop.example'`
  await run(page, 'await client.get()', shared)
  t.equal(only(service).body.storageToken, newer)
  t.same(await ofSite(), [`.shop.example ${newest}`])
  await page.evaluate(`document.cookie = 'fingerpost_test=${older}; Path=/'`)
  await run(page, 'await client.reset()', shared)
  t.same(await ofSite(), [])
})

t.test('a call can be ended, before it collects and while it waits', async (t) => {
  const { service, page } = await stage.open(t, '/plain')
  service.defaultReply = 'hang'
  const codes = await run<string[]>(
    page,
    `await (async () => {
      const early = AbortSignal.abort()
      const late = new AbortController()
      setTimeout(() => late.abort(), 300)
      const codeOf = (signal) => client.get({ signal }).catch(({ code }) => code)
      return [await codeOf(early), await codeOf(late.signal)]
    })()`,
  )
  t.same(codes, ['aborted', 'aborted'])
  t.ok(service.bodies.length <= 1, 'nothing is sent for the first')
})

t.test('a page that goes on without an answer gets null, and its handler is told why', async (t) => {
  const { service, page } = await stage.open(t, '/plain')
  service.defaultReply = { status: 401, body: { error: { code: 'invalid_api_key', message: 'no' } } }
  const outcome = await run(
    page,
    '[await client.tryGet(), window.told]',
    `budgetMs: 1, onError: ({ code, status }) => { window.told = [code, status]; throw new Error('of the page') }`,
  )
  t.same(outcome, [null, ['invalid_api_key', 401]])
})
