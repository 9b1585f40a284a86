// The documentation in a real browser: found by keyboard, readable at any width in light and dark, and usable without its script.

import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import type { Page } from 'playwright-core'
import t from 'tap'
import { sized } from '../helpers/depth.ts'
import { readPages } from '../helpers/pages.ts'
import { cleanUp } from '../helpers/server.ts'
import { openTenant } from '../helpers/tenant.ts'
import { makeFolder, startChromium } from './chromium.ts'

t.setTimeout(600_000)
const { server } = await openTenant()
const profile = await makeFolder('docs')
const chromium = await startChromium(profile.path, ['--window-size=1440,900'])
chromium.context.setDefaultTimeout(240_000)
t.teardown(async () => {
  await chromium.close()
  await profile.remove()
  await cleanUp()
})

const complaints: string[] = []
async function newPage(path: string): Promise<Page> {
  const page = await chromium.context.newPage()
  page.on('pageerror', (error) => complaints.push(String(error)))
  page.on('console', (message) => {
    if (message.type() === 'error') complaints.push(message.text())
  })
  page.on('request', (request) => {
    if (!request.url().startsWith(server.url)) complaints.push(`asked ${request.url()}`)
  })
  await page.goto(server.url + path)
  return page
}

/** Types a question behind the key that leads to the search, and waits for the first answer. */
async function ask(page: Page, question: string, first: string): Promise<void> {
  await page.keyboard.press('/')
  await page.keyboard.type(question)
  await page.locator('[role=option][aria-selected=true]', { hasText: first }).waitFor()
}

t.test('by keyboard alone the search leads to a guide, an endpoint, a field and an error', async (t) => {
  const page = await newPage('/docs')
  await ask(page, 'claims facts', 'Claims and facts')
  await page.keyboard.press('Enter')
  await page.waitForURL(`${server.url}/docs/guides/claims-and-facts`)

  await ask(page, 'GET /v1/events/{requestId}', 'GET /v1/events/{requestId}')
  await page.keyboard.press('Enter')
  await page.waitForURL(`${server.url}/docs/api/events#op-getEvent`)
  t.ok(await page.locator('#op-getEvent').isVisible())

  await ask(page, 'signals.bot.det', 'signals.bot.detected')
  await page.keyboard.press('Enter')
  await page.waitForURL(`${server.url}/docs/rule-fields#field-signals-bot-detected`)

  await ask(page, 'rate_lim', 'rate_limited')
  await page.keyboard.press('Enter')
  await page.waitForURL(`${server.url}/docs/errors#error-rate-limited`)
  await page.close()
})

t.test('arrows choose among what is found, Escape ends the search, and what is nowhere is said to be', async (t) => {
  const page = await newPage('/docs/guides/rules')
  await ask(page, 'webhooks', 'Webhooks')
  const input = page.locator('#search')
  const chosen = () => page.locator('[role=option][aria-selected=true]').getAttribute('id')
  t.equal(await chosen(), 'found-0')
  t.equal(await input.getAttribute('aria-expanded'), 'true')
  await page.keyboard.press('ArrowDown')
  t.equal(await chosen(), 'found-1')
  t.equal(await input.getAttribute('aria-activedescendant'), 'found-1')
  await page.keyboard.press('ArrowUp')
  await page.keyboard.press('ArrowUp')
  t.equal(await chosen(), `found-${(await page.locator('[role=option]').count()) - 1}`)
  t.match(await page.textContent('#count'), /^\d+ found/)
  await page.keyboard.press('Escape')
  await page.locator('#found').waitFor({ state: 'hidden' })
  t.equal(await input.inputValue(), '')
  await page.keyboard.type('no such thing anywhere')
  await page.locator('#count', { hasText: 'Nothing found' }).waitFor()
  await page.close()
})

t.test('addresses from when all was one page lead on', async (t) => {
  for (const [old, now] of [
    ['error-rate-limited', '/docs/errors#error-rate-limited'],
    ['op-listEvents', '/docs/api/events#op-listEvents'],
    ['schema-Event', '/docs/schemas#schema-Event'],
    ['event-visitor-new', '/docs/webhook-events#event-visitor-new'],
    ['group-rules', '/docs/api/rules'],
    ['authentication', '/docs/api#authentication'],
    ['errors', '/docs/errors'],
  ] as const) {
    const page = await newPage(`/docs#${old}`)
    await page.waitForURL(server.url + now)
    t.pass(old)
    await page.close()
  }
})

/** How many of the four looks each page is held to; all pages have one style, and the next page has the next look. */
const LOOKS_OF_A_PAGE = sized({ usual: 1, long: 4 })
const LOOKS = [
  ['light', 360],
  ['dark', 1440],
  ['dark', 360],
  ['light', 1440],
] as const

t.test('every page is accessible and fits, light and dark, at 360 and 1440 px', async (t) => {
  const axe = await readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
  const all = await readPages(server.url)
  t.ok(all.length > 30)
  const page = await newPage('/docs')
  const session = await chromium.context.newCDPSession(page)
  for (const [at, { path }] of all.entries()) {
    await page.goto(server.url + path)
    // Not through the page, whose policy takes no foreign script.
    await session.send('Runtime.evaluate', { expression: axe })
    await page.evaluate('for (const one of document.querySelectorAll("details")) one.open = true')
    for (const [i, [colorScheme, width]] of LOOKS.entries()) {
      await page.emulateMedia({ colorScheme })
      await page.setViewportSize({ width, height: 900 })
      const wide = await page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth')
      t.equal(wide, 0, `${path}, ${width} px`)
      if ((at + i) % LOOKS.length >= LOOKS_OF_A_PAGE) continue
      const violations = await page.evaluate(
        '(async () => (await axe.run({ resultTypes: ["violations"] })).violations.map(({ id, nodes }) => [id, nodes.slice(0, 3).map(({ target }) => target.join(" "))]))()',
      )
      t.same(violations, [], `${path}, ${colorScheme}, ${width} px`)
    }
  }
  await page.setViewportSize({ width: 360, height: 900 })
  await ask(page, 'visitorId', 'visitor')
  const violations = await page.evaluate('(async () => (await axe.run()).violations.map(({ id }) => id))()')
  t.same(violations, [], 'what is found')
  await page.close()
})

t.test('without the script everything is reached by links, on a narrow screen too', async (t) => {
  const context = await chromium.context
    .browser()
    ?.newContext({ javaScriptEnabled: false, viewport: { width: 360, height: 800 } })
  const page = await context?.newPage()
  if (page === undefined) throw new Error('no browser')
  await page.goto(`${server.url}/docs`)
  t.notOk(await page.locator('#search').isVisible(), 'no search that does nothing')
  await page.click('text=Contents')
  await page.click('nav >> text=Webhook events')
  await page.waitForURL(`${server.url}/docs/webhook-events`)
  t.notOk(await page.locator('nav').isVisible())
  await page.click('text=Contents')
  await page.click('nav >> text=visitor.new')
  t.ok(await page.locator('#event-visitor-new').isVisible())
  await context?.close()
})

t.test('nothing was against the policy, nothing failed, and nobody else was asked', (t) => {
  t.same(complaints, [])
  t.end()
})
