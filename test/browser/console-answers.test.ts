// What pages of the console say of answers that are slow, many or refused, in a real Chromium against a real server: nothing is missing without
// a word, times are of one zone, and what the browser lacks is told.

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { clientOf, eventually } from '../helpers/client.ts'
import { OWNER } from '../helpers/console.ts'
import { cleanUp, startServer, temporaryFolder } from '../helpers/server.ts'
import { makeFolder, startChromium } from './chromium.ts'

t.setTimeout(600_000)
const WAIT_MS = 120_000
const setupFile = join(temporaryFolder(), 'setup.json')
writeFileSync(setupFile, JSON.stringify(OWNER))
const server = await startServer({
  env: { FINGERPOST_CONSOLE_SETUP_FILE: setupFile, FINGERPOST_WEBHOOKS_ALLOW_PRIVATE_CIDRS: '127.0.0.0/8' },
})
const { send } = clientOf(server)
const profile = await makeFolder('console-answers')
const chromium = await startChromium(profile.path, ['--window-size=1440,900'])
t.teardown(async () => {
  await chromium.close()
  await profile.remove()
  await cleanUp()
})
const page = await chromium.context.newPage()
page.setDefaultTimeout(WAIT_MS)
const session = await chromium.context.newCDPSession(page)
/** Errors that nobody caught. */
const thrown: string[] = []
page.on('pageerror', (error) => thrown.push(String(error)))

const go = (path: string) => page.goto(`${server.url}/console${path}`)
const heading = (name: string | RegExp) => page.getByRole('heading', { name, exact: typeof name === 'string' })
const button = (name: string) => page.getByRole('button', { name, exact: true })
const card = (title: string) => page.locator('section.card', { has: heading(title) })

async function identify(body: object): Promise<{ requestId: string; visitorId: string; storageToken: string }> {
  const answer = await send('POST', '/v1/identify', { body })
  if (answer.status !== 200) throw new Error(answer.text)
  return answer.body
}

const SHARED = 'shared_1'
const first = await send('POST', '/v1/webhooks', { body: { url: 'https://localhost:9/hook', events: ['*'] } }).then(
  () => identify({ linkedId: SHARED, ip: '203.0.113.7', components: { timezone: { value: 'Asia/Tokyo' } } }),
)
const frequent = await identify({ linkedId: SHARED, ip: '198.51.100.7', userAgent: 'HeadlessChrome/147.0.0.0' })
t.not(frequent.visitorId, first.visitorId)
for (let i = 0; i < 120; i++) {
  await identify({ linkedId: SHARED, ip: '198.51.100.7', storageToken: frequent.storageToken })
}
/** What is searched has been stored. */
await eventually(
  async () => (await send('GET', `/v1/visitors?linkedId=${SHARED}`)).body.data.length,
  (visitors) => visitors === 2,
  WAIT_MS,
)

t.test('a link that leads in keeps its token while the server cannot say who is signed in', async () => {
  await page.route('**/console/api/session', (route) => route.fulfill({ status: 503, json: {} }))
  const refused = page.waitForResponse('**/console/api/session')
  await go('/join#token=abcdefghijklmnopqrstuvwxyz')
  await refused
  await page.getByLabel('Password', { exact: true }).fill('a sentence that is long enough')
  await button('Join').waitFor()
  await page.goto('about:blank')
  await go('/')
  await page.getByRole('alert').waitFor()
  await page.unroute('**/console/api/session')
  await button('Try again').click()
  await page.getByLabel('E-mail').fill(OWNER.email)
  await page.getByLabel('Password', { exact: true }).fill(OWNER.password)
  await button('Sign in').click()
  await heading('Overview').waitFor()
})

t.test('a page that looks every few seconds shows an answer that takes longer than that', async () => {
  await page.route('**/v1/meta', async (route) => {
    await new Promise((resolve) => setTimeout(resolve, 7_000))
    await route.continue().catch(() => {})
  })
  await go('/system')
  await heading('What it needs').waitFor({ timeout: 30_000 })
  await page.unroute('**/v1/meta')
})

t.test('an event shows its deliveries however many there were right after it', async () => {
  await go(`/events/${first.requestId}`)
  await card('Deliveries').getByRole('cell', { name: 'identification.complete' }).waitFor()
  await card('Deliveries').getByRole('cell', { name: 'visitor.new' }).waitFor()
  await page.getByText('there may be others').waitFor()
})

t.test('a visitor shows who shares its account, however often it came itself', async () => {
  await go(`/visitors/${frequent.visitorId}`)
  await card('Linked visitors').getByRole('link', { name: first.visitorId }).waitFor()
})

t.test('times are told in one zone: of visits that of the browser, of buckets UTC', async (t) => {
  const other = new Date().getUTCHours() >= 11 ? 'Pacific/Kiritimati' : 'Pacific/Pago_Pago'
  await page.addInitScript(`
    window.drawn = []
    const { fillText } = CanvasRenderingContext2D.prototype
    CanvasRenderingContext2D.prototype.fillText = function (...given) {
      drawn.push(given.join(' '))
      return fillText.apply(this, given)
    }
  `)
  const zone = (timezoneId: string) => session.send('Emulation.setTimezoneOverride', { timezoneId })
  const labels = async () => {
    await go('/analytics?days=7')
    await page.locator('.plot canvas').waitFor()
    return eventually(
      () => page.evaluate<string[]>('[...new Set(drawn)]'),
      (texts) => texts.length > 0,
      WAIT_MS,
    )
  }
  await zone('UTC')
  const inUtc = await labels()
  await zone(other)
  t.same(await labels(), inUtc, 'the axes are the same wherever somebody looks')
  await button('Show table').click()
  const times = await page.getByRole('rowheader').filter({ hasText: ':' }).allTextContents()
  t.ok(times.length > 0)
  for (const time of times) t.match(time, /, 00:00$/, 'a day begins by UTC')
  await go(`/visitors/${first.visitorId}`)
  const visit = page.locator('section:has(> .timeline)').first()
  const day = (await visit.locator('h3').textContent()) ?? 'none'
  const time = (await visit.locator('time').first().textContent()) ?? ''
  t.ok(time.startsWith(day), `${time} stands under ${day}`)
  await zone('')
})

t.test('events without a verdict are reviewed, and the end is told where there is one', async (t) => {
  await go('/review')
  const shown = new Set<string>()
  let older = 0
  for (;;) {
    const event = page.locator('section[aria-label^="Event "]')
    await event.or(heading(/^(There are older|That was all)/)).waitFor()
    if ((await event.count()) > 0) {
      shown.add((await event.getByRole('link', { name: /^pv_/ }).textContent()) ?? '')
      await page.keyboard.press('s')
    } else if ((await button('Go on').count()) > 0) {
      older++
      await button('Go on').click()
    } else break
  }
  t.ok(older > 0, 'fifty events are not all of them')
  t.same([...shown].sort(), [first.visitorId, frequent.visitorId].sort())
  await button('Look again').click()
  await page.locator('section[aria-label^="Event 1 "]').waitFor()
})

t.test('an address that asks for no range of ours shows the usual one', async () => {
  for (const path of ['/analytics?days=abc', '/?days=abc']) {
    await go(path)
    await page.locator('.plot canvas').waitFor()
    await page.getByRole('option', { name: 'Last 7 days', selected: true }).waitFor({ state: 'attached' })
  }
})

t.test('a tap on the live tail does not hold it', async (t) => {
  await session.send('Emulation.setTouchEmulationEnabled', { enabled: true })
  await go('/events?live=1')
  await page.locator('.chip', { hasText: /^live$/ }).waitFor()
  const { requestId } = await identify({ storageToken: frequent.storageToken })
  await page.locator(`.tail a[title="${requestId}"]`).waitFor()
  await page.evaluate("addEventListener('mouseup', () => { window.tapped = true })")
  const { x = 0, y = 0 } = (await page.locator('.tail').boundingBox()) ?? {}
  const touchPoints = [{ x: x + 5, y: y + 5 }]
  await session.send('Input.dispatchTouchEvent', { type: 'touchStart', touchPoints })
  await session.send('Input.dispatchTouchEvent', { type: 'touchEnd', touchPoints: [] })
  // What a browser makes of a tap for pages that know mice only comes a moment later.
  await page.waitForFunction('window.tapped === true')
  const next = await identify({ storageToken: frequent.storageToken })
  await page.locator(`.tail a[title="${next.requestId}"]`).waitFor({ timeout: 20_000 })
  await session.send('Emulation.setTouchEmulationEnabled', { enabled: false })
  t.pass()
})

t.test('what a browser lacks for pages over plain HTTP is told', async (t) => {
  await page.addInitScript(`
    Object.defineProperty(navigator, 'clipboard', { value: undefined })
    Object.defineProperty(crypto, 'subtle', { value: undefined })
  `)
  const { body } = await send('GET', '/v1/webhooks')
  await go(`/webhooks/${body.data[0].id}?tab=verify`)
  await page.getByText('only on pages that came over HTTPS').waitFor()
  t.ok(await button('Check').isDisabled())
  await button('Copy as curl').click()
  await page.getByText('Copying needs HTTPS').waitFor()
})

t.test('nothing was thrown that nobody caught', (t) => {
  t.same(thrown, [])
  t.end()
})
