// How the browser SDK delivers a visit: tokens in three stores, retries of the same bytes, refusals and time limits.

import t from 'tap'
import { until } from '../helpers/processes.ts'
import { found, root } from './fake-service.ts'
import { only, readStores, run, setStage, THOROUGH, token } from './scene.ts'

t.setTimeout(600_000)
const stage = setStage(t)
const PATIENCE_MS = 120_000

const forgetCookie = `document.cookie = 'fingerpost_test=; Path=/; Max-Age=0'`
const forgetLocal = `localStorage.removeItem('fingerpost_test')`
const forgetDatabase = `await new Promise((resolve) => { indexedDB.deleteDatabase('fingerpost').onsuccess = resolve })`

function caught(expression: string): string {
  return `await ${expression}.then((value) => ({ value }), (error) => ({ name: error.name, code: error.code, status: error.status, field: error.field, message: error.message }))`
}

t.test('a tag that cannot fit is refused before anything is sent', async (t) => {
  const { service, page } = await stage.open(t, '/plain')
  const outcome = await run(page, caught(`client.get({ tag: { text: 'x'.repeat(70000) } })`))
  t.match(outcome, { name: 'FingerpostError', code: 'payload_too_large', field: 'tag', status: 0 })
  t.equal(service.bodies.length, 0)
})

t.test('concurrent calls share one collection and have nonces of their own', async (t) => {
  const { service, page } = await stage.open(t, '/plain')
  await run(page, 'await Promise.all([client.get(), client.get(), client.get()]) && null')
  t.equal(new Set(service.bodies.map(({ body }) => body.nonce)).size, 3)
  t.equal(new Set(service.bodies.map(({ body }) => JSON.stringify(body.components))).size, 1)
})

t.test('a lost connection and an unavailable service are retried with the same bytes', async (t) => {
  const { service, page } = await stage.open(t, '/plain')
  service.replies = [
    'drop',
    { status: 503, headers: { 'Retry-After': '1' }, body: { error: { code: 'unavailable', message: 'later' } } },
  ]
  const result = await run<Record<string, unknown>>(page, 'await client.get()')
  t.equal(result.visitorFound, true)
  t.equal(service.bodies.length, 3)
  t.equal(new Set(service.bodies.map(({ text }) => text)).size, 1)
  const [, second, third] = service.bodies
  t.ok((third?.atMs ?? 0) - (second?.atMs ?? 0) >= 990, 'Retry-After was honoured')
})

t.test('a pending visit is asked for again and, still pending, is returned by its id', async (t) => {
  const { service, page } = await stage.open(t, '/plain')
  service.defaultReply = {
    status: 202,
    headers: { 'Retry-After': '0' },
    body: { requestId: 'req_1', status: 'pending' },
  }
  t.same(await run(page, 'await client.get()'), { requestId: 'req_1', status: 'pending' })
  t.equal(service.bodies.length, 3)
  t.equal(new Set(service.bodies.map(({ text }) => text)).size, 1)
  service.replies = [service.defaultReply, found()]
  t.match(await run(page, 'await client.get()'), { visitorId: 'pv_abcdefghij0123456789' })
})

t.test('a refusal rejects at once with code, message, field and status', async (t) => {
  const { service, page } = await stage.open(t, '/plain')
  const error = { code: 'validation_error', message: 'linkedId is too long', field: 'linkedId' }
  service.defaultReply = { status: 400, body: { error } }
  const outcome = await run(page, caught(`client.get({ linkedId: 'x' })`))
  t.same(outcome, { name: 'FingerpostError', status: 400, ...error })
  t.equal(service.bodies.length, 1)
})

t.test('a service that stays unavailable rejects after three tries', async (t) => {
  const { service, page } = await stage.open(t, '/plain')
  service.defaultReply = {
    status: 503,
    headers: { 'Retry-After': '0' },
    body: { error: { code: 'unavailable', message: 'no' } },
  }
  t.match(await run(page, caught('client.get()')), { code: 'unavailable', status: 503 })
  t.equal(service.bodies.length, 3)
})

// Long timers of this page are due when the test says so.
const ownTime = `
  const own = window.setTimeout
  const late = []
  window.setTimeout = (act, ms, ...rest) => ms < 100000 ? own(act, ms, ...rest) : late.push(act)
  window.timeIsUp = () => late.splice(0).forEach((act) => act())`

t.test('a silent service rejects when the time is up, and is not asked again', async (t) => {
  const { service, page } = await stage.open(t, '/plain', ownTime)
  service.defaultReply = 'hang'
  const outcome = run(page, caught('client.get()'), 'budgetMs: 1, timeoutMs: 700000')
  await until('the service is asked', PATIENCE_MS, () => service.bodies.length === 1)
  await page.evaluate('timeIsUp()')
  t.match(await outcome, { code: 'timeout', status: 0 })
  t.equal(service.bodies.length, 1)
})

for (const [survivor, forget] of [
  ['cookie', [forgetLocal, forgetDatabase]],
  ['local', [forgetCookie, forgetDatabase]],
  ['database', [forgetCookie, forgetLocal]],
] as const) {
  t.test(`a token that survives only in ${survivor} is sent and restores the others`, async (t) => {
    const { service, page } = await stage.open(t, '/plain')
    service.replies = [found(token)]
    const result = await run<Record<string, unknown>>(page, 'await client.get()')
    t.notOk('storageToken' in result)
    t.same(await run(page, readStores), { cookie: token, local: token, database: token })
    await run(page, `await (async () => { ${forget.join('; ')} })()`)
    await page.reload()
    await run(page, 'await client.get()')
    t.equal(service.bodies[1]?.body.storageToken, token)
    t.same(await run(page, readStores), { cookie: token, local: token, database: token })
  })
}

t.test('reset empties all three stores, also while a request is under way', async (t) => {
  const { service, page } = await stage.open(t, '/plain')
  const empty = { cookie: null, local: null, database: null }
  service.replies = [found(token)]
  await run(page, 'await client.get()')
  await run(page, 'await client.reset()')
  t.same(await run(page, readStores), empty)
  let answer: (value?: unknown) => void = () => undefined
  const told = new Promise((resolve) => {
    answer = resolve
  })
  service.replies = [{ ...(found(token) as object), until: told } as never]
  await page.evaluate(`(() => {
    window.slow = Fingerpost.load({ publicKey: 'pk_test_x', timeoutMs: 60000, budgetMs: 1 })
    window.pending = slow.get()
  })()`)
  await until('the request is under way', PATIENCE_MS, () => service.bodies.length === 2)
  await page.evaluate('slow.reset()')
  answer()
  await page.evaluate('pending')
  t.equal(service.bodies[1]?.body.storageToken, null)
  t.same(await run(page, readStores), empty)
})

for (const [outcome, status, body, forget] of [
  ['is decided', 200, { requestId: 'req_1', visitorId: 'pv_abcdefghij0123456789', storageToken: token }, 'reset()'],
  ['stays pending', 202, { requestId: 'req_1', status: 'pending' }, 'allowStorage(false)'],
  ['fails', 400, { error: { code: 'validation_error', message: 'no' } }, 'reset()'],
] as const) {
  t.test(`no cookie of the service is left by a request that ${outcome} behind ${forget}`, async (t) => {
    const { service, page } = await stage.open(t, '/plain')
    let answer: (value?: unknown) => void = () => undefined
    const told = new Promise((resolve) => {
      answer = resolve
    })
    const headers = { 'Set-Cookie': `fp_test=${token}; Path=/; Max-Age=1000; HttpOnly`, 'Retry-After': '0' }
    service.defaultReply = { status, headers, body, until: told }
    await page.evaluate(`(() => {
      window.slow = Fingerpost.load({ publicKey: 'pk_test_x', timeoutMs: 60000, budgetMs: 1 })
      window.pending = slow.tryGet()
    })()`)
    await until('the request is under way', PATIENCE_MS, () => service.bodies.length === 1)
    await page.evaluate(`slow.${forget}`)
    answer()
    await page.evaluate('pending')
    t.same(await page.context().cookies(service.url), [])
  })
}

t.test('a token that is forgotten before its request is sent is not sent', async (t) => {
  const { service, page } = await stage.open(t, '/plain')
  service.replies = [found(token)]
  await run(page, 'await client.get()')
  await run(page, '(await Promise.all([client.get(), client.allowStorage(false)])) && null')
  t.match(service.bodies[1], { body: { storageToken: null }, cookie: undefined })
})

t.test('reset ends the cookie of the service at whichever endpoint set it', async (t) => {
  const { service, page } = await stage.open(t, '/plain')
  // The page's own origin comes second, so cookies go only there.
  const endpoint = `endpoint: ['http://localhost:${service.port}', location.origin]`
  service.replies = ['drop']
  service.defaultReply = {
    ...(found(token) as object),
    headers: { 'Set-Cookie': `fp_test=${token}; Path=/; HttpOnly` },
  } as never
  await run(page, 'await client.get()', `budgetMs: 1, ${endpoint}`)
  const names = async () => (await page.context().cookies(service.url)).map(({ name }) => name).sort()
  t.same(await names(), ['fingerpost_test', 'fp_test'])
  await run(page, 'await client.reset()', endpoint)
  t.same(await names(), [])
})

t.test('a token of the test environment is not shown to the live one', async (t) => {
  const { service, page } = await stage.open(t, '/plain')
  service.replies = [found(token)]
  await run(page, 'await client.get()')
  await page.evaluate(`Fingerpost.load({ publicKey: 'pk_live_x' }).get()`)
  t.equal(service.bodies[1]?.body.storageToken, null)
})

t.test('denied storage changes nothing but the token', async (t) => {
  const { service, page, errors } = await stage.open(t, '/sandboxed')
  service.replies = [found(token)]
  const result = await run<Record<string, unknown>>(page, 'await client.get()', THOROUGH)
  t.equal(result.visitorId, 'pv_abcdefghij0123456789')
  const { body } = only(service)
  t.equal(body.storageToken, null)
  t.match(body.components.storage.value, { localStorage: false })
  await run(page, 'await client.reset()')
  t.same(errors, [])
})

t.test('a module that opens a client runs on a server too, where nobody is identified', async (t) => {
  const { load } = await import(new URL('build/sdk/sdk.mjs', root).href)
  const client = load({ publicKey: 'pk_test_x', endpoint: 'https://id.shop.example', budgetMs: 1 })
  t.equal(await client.tryGet(), null)
  t.throws(() => load({ publicKey: 'sk_live_x' }), TypeError)
})

t.test('a key that is not a public one is refused', async (t) => {
  const { page } = await stage.open(t, '/plain')
  const outcome = await page.evaluate(`(() => {
    try { Fingerpost.load({ publicKey: 'sk_live_x' }) } catch (error) { return error.name }
  })()`)
  t.equal(outcome, 'TypeError')
})
