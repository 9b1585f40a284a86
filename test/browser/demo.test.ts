// The demo page behind its link in a real browser: what it shows of a visit, a rule that decides, and who can use it.

import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import type { Page } from 'playwright-core'
import t from 'tap'
import { clientOf } from '../helpers/client.ts'
import { askDemo, newDemoLink } from '../helpers/demo.ts'
import { cleanUp, startServer } from '../helpers/server.ts'
import { makeFolder, startChromium } from './chromium.ts'
import { takePicture } from './picture.ts'

t.setTimeout(600_000)
const server = await startServer()
const { send } = clientOf(server)
const profile = await makeFolder('demo')
const chromium = await startChromium(profile.path, ['--window-size=1440,900'])
chromium.context.setDefaultTimeout(240_000)
t.teardown(async () => {
  await chromium.close()
  await profile.remove()
  await cleanUp()
})

const complaints: string[] = []
const page: Page = await chromium.context.newPage()
page.on('pageerror', (error) => complaints.push(String(error)))
page.on('console', (message) => {
  if (message.type() === 'error') complaints.push(message.text())
})
const shown = async (id: string) => (await page.textContent(`#${id}`)) ?? ''
const signal = (name: string) => page.locator('#signals .signal', { has: page.locator(`code:text-is("${name}")`) })
await page.goto(await newDemoLink(server.dataDir))
await signal('bot').waitFor()

t.test('the link is gone from the address, and the page stays open without it', async (t) => {
  t.equal(page.url(), `${server.url}/demo/`)
  await page.reload()
  await signal('bot').waitFor()
})

t.test('it shows what a secret key gets of this very visit', async (t) => {
  const requestId = await shown('request')
  const { body } = await send('GET', `/v1/events/${requestId}`, { key: server.keys.testSecret })
  t.same(JSON.parse(await shown('raw')), body)
  t.match(await signal('bot').textContent(), /detected.*webdriver.*% sure/)
  t.match(await signal('emulator').textContent(), /clear/)
  t.match(await signal('vpn').textContent(), /cannot tell.*data update/)
  t.equal(await page.locator('#signals .signal').count(), 9)
  t.equal(await page.locator('#scores meter').count(), 4)
  t.match(await shown('decided'), /No rule matched/)
  t.match(await shown('why'), /signed token/)
  t.ok((await page.locator('#agreement li').count()) > 3)
})

t.test('a visit of somebody else appears by itself, and can be looked into', async (t) => {
  const visit = { userAgent: 'curl/8.5.0', linkedId: 'user_42' }
  const { body } = await send('POST', '/v1/identify', { key: server.keys.testSecret, body: visit })
  const row = page.locator(`[data-request="${body.requestId}"]`)
  await row.click()
  await page.locator('#shown-request', { hasText: body.requestId }).waitFor()
  t.match(await shown('shown-request'), /secret key/)
  await row.and(page.locator('[aria-pressed=true]')).waitFor()
})

t.test('by keyboard alone one button makes a rule, which decides, and takes it away', async (t) => {
  await page.focus('#rule')
  await page.keyboard.press('Enter')
  await page.locator('#decided', { hasText: 'Demo: block this browser' }).waitFor()
  t.equal(await shown('verdict'), 'block')
  const rules = await send('GET', '/v1/rules', { key: server.keys.testSecret })
  t.match(rules.body.data, [{ name: 'Demo: block this browser', status: 'live' }])
  const live = await send('GET', '/v1/rules', { key: server.keys.secret })
  t.same(live.body.data, [], 'in the test environment only')
  await page.locator('#rule:enabled').waitFor()
  await takePicture(page, 'demo')
  await page.focus('#rule')
  await page.keyboard.press('Enter')
  await page.locator('#decided', { hasText: 'No rule matched' }).waitFor()
  t.equal((await send('GET', '/v1/rules', { key: server.keys.testSecret })).body.total, 0)
})

t.test('nothing was against its policy, and nothing failed', (t) => {
  t.same(complaints, [])
  t.end()
})

t.test('it is accessible and fits, light and dark, at 360 and 1440 px', async (t) => {
  const axe = await readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
  const session = await chromium.context.newCDPSession(page)
  // Not through the page, whose policy takes no foreign script.
  await session.send('Runtime.evaluate', { expression: axe })
  for (const details of await page.locator('summary').all()) await details.click()
  for (const colorScheme of ['light', 'dark'] as const) {
    for (const width of [360, 1440]) {
      await page.emulateMedia({ colorScheme })
      await page.setViewportSize({ width, height: 900 })
      const violations = await page.evaluate(
        '(async () => (await axe.run()).violations.map(({ id, nodes }) => [id, nodes.map(({ target }) => target.join(" "))]))()',
      )
      t.same(violations, [], `${colorScheme}, ${width} px`)
      const wide = await page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth')
      t.equal(wide, 0, `${width} px`)
    }
  }
})

t.test('a link that was used says what to do', async (t) => {
  const link = await newDemoLink(server.dataDir)
  const token = link.slice(link.indexOf('=') + 1)
  await askDemo(server.url, 'POST', '/session', { body: { token } })
  const other = await chromium.openPrivate()
  const stranger = await other.newPage()
  await stranger.goto(link)
  await stranger.locator('#failure', { hasText: 'fingerpost demo' }).waitFor()
  t.equal(await stranger.locator('#backend').isVisible(), false)
  await other.close()
})
