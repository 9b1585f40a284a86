// What the browser SDK collects in a real Chromium, under which policies and budgets, and what its files contain.

import { readFile } from 'node:fs/promises'
import { gzipSync } from 'node:zlib'
import t from 'tap'
import { found, root, startFakeService } from './fake-service.ts'
import { HASTY, only, readStores, run, setStage, THOROUGH, token } from './scene.ts'
import { isNumber, vocabulary } from './vocabulary.ts'

t.setTimeout(600_000)
const stage = setStage(t)

t.test('every name of the vocabulary is sent with its shape, from a page under a strict policy', async (t) => {
  const { service, page, errors } = await stage.open(t, '/strict')
  const result = await run<Record<string, unknown>>(
    page,
    `await client.get({ linkedId: 'user_42', email: 'a@b.example', tag: { action: 'login' } })`,
    THOROUGH,
  )
  t.equal(result.visitorId, 'pv_abcdefghij0123456789')
  const { path, contentType, body, text } = only(service)
  t.equal(path, '/v1/identify?key=pk_test_x')
  t.equal(contentType, 'text/plain')
  t.match(body.nonce, /^[\w-]{22}$/)
  t.same(body.sdk, { name: 'js', version: '1.1.0' })
  t.equal(body.storageToken, null)
  t.same([body.linkedId, body.email, body.tag], ['user_42', 'a@b.example', { action: 'login' }])
  t.equal(body.url, `${service.url}/strict`)
  t.equal(body.referrer, '')
  t.same(Object.keys(body.components).sort(), Object.keys(vocabulary).sort())
  for (const [name, check] of Object.entries(vocabulary)) {
    const component = body.components[name]
    t.ok('value' in component && check(component.value), `${name}: ${JSON.stringify(component).slice(0, 300)}`)
    t.ok(isNumber(component.ms), `${name} tells its time`)
  }
  t.equal(body.components.worker.value.platform, body.components.platform.value)
  t.type(body.automation.webdriver, 'boolean')
  t.ok(Object.keys(body.automation.detectors).length >= 15)
  t.equal(body.automation.detectors.detectUserAgent.bot, true, 'a headless user agent is noticed')
  t.ok(Buffer.byteLength(text) < 16 * 1024, `${Buffer.byteLength(text)} bytes`)
  t.same(service.violations, [])
  t.same(errors, [])
  t.same(service.preflights, [])
})

t.test('the module build works like the classic one', async (t) => {
  const { service, page, errors } = await stage.open(t, '/module')
  const result = await run<Record<string, unknown>>(page, 'await client.get()', THOROUGH)
  t.equal(result.visitorId, 'pv_abcdefghij0123456789')
  const { components } = only(service).body
  t.same(Object.keys(components).sort(), Object.keys(vocabulary).sort())
  t.ok(vocabulary.worker?.(components.worker.value))
  t.same(errors, [])
})

t.test(
  'an SDK of another origin sends there without a preflight, and asks a worker where the site allows a blob',
  async (t) => {
    const host = await startFakeService()
    t.teardown(() => host.close())
    const { service, page } = await stage.open(t, `/other-origin/${host.port}`)
    await run(page, 'await client.get()', THOROUGH)
    t.equal(only(host).body.components.worker.error, 'other_origin')
    await run(page, 'await client.get()', `${THOROUGH}, worker: 'blob'`)
    t.ok(vocabulary.worker?.(host.bodies[1]?.body.components.worker.value))
    t.equal(service.bodies.length, 0)
    t.same([...host.preflights, ...service.preflights], [])
  },
)

t.test('nothing is violated under the documented policy with trusted types, and all is collected', async (t) => {
  const { service, page, errors } = await stage.open(t, '/trusted')
  await run(page, 'await client.get()', THOROUGH)
  const { components } = only(service).body
  t.same(
    Object.keys(components).filter((name) => 'error' in components[name]),
    [],
  )
  t.same(service.violations, [])
  t.same(errors, [])
})

t.test('a private window is noticed', async (t) => {
  const service = await startFakeService()
  const context = await stage.openPrivate()
  t.teardown(async () => {
    await context.close()
    await service.close()
  })
  const page = await context.newPage()
  await page.goto(`${service.url}/strict`)
  await run(page, 'await client.get()', THOROUGH)
  const { components } = only(service).body
  t.same(components.incognito.value, { isPrivate: true, browserName: 'Chrome' })
  t.same(components.lies.value, [])
})

t.test('a policy without workers costs the worker entry and nothing else', async (t) => {
  const { service, page } = await stage.open(t, '/no-workers')
  await run(page, 'await client.get()', THOROUGH)
  const { components } = only(service).body
  t.type(components.worker.error, 'string')
  const failed = Object.keys(components).filter((name) => 'error' in components[name])
  t.same(failed, ['worker'])
})

// The check of storage never settles here, so whoever waited for it would never answer.
t.test('a component that never answers becomes a timeout entry and is not waited for', async (t) => {
  const stall = 'StorageManager.prototype.estimate = () => new Promise(() => {})'
  const { service, page } = await stage.open(t, '/plain', stall)
  await run(page, 'await client.get()', 'budgetMs: 600')
  const { components } = only(service).body
  t.equal(components.storage.error, 'timeout')
  t.type(components.userAgent.value, 'string')
  t.same(Object.keys(components).sort(), Object.keys(vocabulary).sort())
})

t.test('what devices are filed by is sent however short the budget', async (t) => {
  const { service, page } = await stage.open(t, '/plain')
  await run(page, 'await client.get()', HASTY)
  const { components } = only(service).body
  for (const name of ['userAgent', 'platform', 'languages', 'timezone', 'screenResolution', 'webGlBasics']) {
    t.ok(vocabulary[name]?.(components[name].value), name)
  }
  t.equal(components.fonts.error, 'timeout')
})

t.test('a page that replaces what browsers have', async (t) => {
  const { service, page } = await stage.open(
    t,
    '/plain',
    `HTMLCanvasElement.prototype.toDataURL = () => { throw new Error("no reading") }
    Object.defineProperty(Navigator.prototype, 'platform', { get: () => 'Win32' })
    Object.defineProperty(navigator, 'hardwareConcurrency', { get: () => 64 })
    Object.defineProperty(Navigator.prototype, 'vendor', { get: () => 'v'.repeat(70000) })`,
  )
  await run(page, 'await client.get()', THOROUGH)
  const { text, body } = only(service)
  const { components } = body

  t.test('a component that throws becomes an error entry', async (t) => {
    t.equal(components.canvas.error, 'no reading')
    t.ok(components.lies.value.includes('HTMLCanvasElement.toDataURL:source'), 'and the replacement is noticed')
  })

  t.test('spoofed navigator values are reported as lies', async (t) => {
    t.ok(components.lies.value.includes('Navigator.platform:source'))
    t.ok(components.lies.value.includes('Navigator.hardwareConcurrency:shadowed'))
    t.not(components.worker.value.platform, 'Win32', 'a worker is not reached by the spoof')
  })

  t.test('an oversized component is left out so that the body stays below 60 KiB', async (t) => {
    t.ok(Buffer.byteLength(text) <= 60 * 1024)
    t.same(components.vendor, { error: 'too_large' })
    t.type(components.userAgent.value, 'string')
  })
})

t.test('the demo page shows the result under its policy', async (t) => {
  const { service, page, errors } = await stage.open(t, '/demo?key=pk_test_x')
  service.defaultReply = found(token)
  await page.waitForSelector('#state[data-kind=found]')
  t.equal(await page.textContent('#visitor'), 'pv_abcdefghij0123456789')
  t.ok((await page.locator('#components tr').count()) >= Object.keys(vocabulary).length)
  t.match(await page.textContent('#curl'), /\/v1\/events\/req_01KAKAKAKAKAKAKAKAKAKAKAKA/)
  await page.click('#forget')
  // Not waitForFunction: its text would be evaluated by the page, under the page's policy.
  await page.locator('#headline', { hasText: 'empty now' }).waitFor()
  t.same(await page.evaluate(`(async () => { return ${readStores} })()`), { cookie: null, local: null, database: null })
  await page.click('#again')
  await page.waitForSelector('#state[data-kind=found]')
  t.equal(service.bodies.length, 2)
  t.same(service.violations, [])
  t.same(errors, [])
})

t.test('no page asked another host for anything', async (t) => {
  t.same(stage.foreignRequests, [])
})

for (const file of ['sdk.js', 'sdk.mjs']) {
  t.test(`${file} is small, evaluates no text and knows no foreign address`, async (t) => {
    const content = await readFile(new URL(`build/sdk/${file}`, root))
    const text = content.toString('utf8')
    t.ok(gzipSync(content, { level: 9 }).length <= 28 * 1024)
    t.notMatch(text, /\beval\s*\(/)
    t.notMatch(text, /new\s+Function\b|\bFunction\s*\(\s*["'`]/)
    t.notMatch(text, /https?:\/\//)
    t.notMatch(text, /sourceMappingURL/)
  })
}
