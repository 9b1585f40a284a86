// What people wait for in the console, in a real Chromium: bytes and time of the first load, time until each page shows what it is about,
// and the longest task of its script while events come in and while a long list is read and scrolled.
// `npm run bench -- console [--events N] [--entries N] [--tail EVENTS_PER_SECOND]`; made-up events are stored first.

import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import type { Page } from 'playwright-core'
import { makeFolder, startChromium } from '../test/browser/chromium.ts'
import { clientOf } from '../test/helpers/client.ts'
import { cleanUp, makeKeys, startServer, temporaryFolder } from '../test/helpers/server.ts'

const { values } = parseArgs({
  args: process.argv.slice(3),
  options: {
    events: { type: 'string', default: '100000' },
    entries: { type: 'string', default: '10000' },
    tail: { type: 'string', default: '50' },
  },
})
const EVENTS = Number(values.events)
const ENTRIES = Number(values.entries)
const TAIL_PER_SECOND = Number(values.tail)
const ENTRIES_PER_CALL = 1_000
const TAIL_MS = 15_000
const ROUNDS = 3
const WAIT_MS = 120_000
const PASSWORD = 'a sentence that is long enough'

const MAIN = fileURLToPath(new URL('../server/main.js', import.meta.url))
const dataDir = temporaryFolder()
const keys = makeKeys()
const env = {
  ...process.env,
  FINGERPOST_DATA_DIR: dataDir,
  FINGERPOST_SECRET_KEY: keys.secret,
  FINGERPOST_PUBLIC_KEY: keys.public,
  FINGERPOST_TEST_SECRET_KEY: keys.testSecret,
  FINGERPOST_TEST_PUBLIC_KEY: keys.testPublic,
}
if (EVENTS > 0) {
  // Its first start makes the folder, which seeding then fills while nobody uses it.
  const first = await startServer({ dataDir, keys, asShipped: true })
  await first.stop()
  execFileSync(process.execPath, [MAIN, 'seed', '--events', String(EVENTS)], {
    env,
    stdio: ['ignore', 'inherit', 'inherit'],
  })
}
const server = await startServer({ dataDir, keys, asShipped: true })
const { send } = clientOf(server)
const profile = await makeFolder('bench-console')
const chromium = await startChromium(profile.path, ['--window-size=1440,900'])
const page: Page = await chromium.context.newPage()
page.setDefaultTimeout(WAIT_MS)
await page.addInitScript(`
  window.longest = 0
  new PerformanceObserver((list) => {
    for (const { duration } of list.getEntries()) window.longest = Math.max(window.longest, duration)
  }).observe({ type: 'longtask', buffered: true })`)
const longest = (): Promise<number> =>
  page.evaluate('(() => { const found = window.longest; window.longest = 0; return found })()')
const median = (all: readonly number[]): number =>
  all.toSorted((a, b) => a - b)[Math.floor(all.length / 2)] ?? Number.NaN

const [setup = ''] = /http\S+\/console\/setup#token=\S+/.exec(server.logs()) ?? []
await page.goto(setup)
await page.getByLabel('E-mail', { exact: true }).fill('ada@shop.example')
await page.getByLabel('Name', { exact: true }).fill('Ada')
await page.getByLabel('Password', { exact: true }).fill(PASSWORD)
await page.getByRole('button', { name: 'Create the admin' }).click()
await page.getByRole('heading', { name: 'Overview' }).waitFor()

const session = await chromium.context.newCDPSession(page)
await session.send('Network.enable')
let bytes = 0
session.on('Network.loadingFinished', ({ encodedDataLength }) => {
  bytes += encodedDataLength
})

/** Milliseconds until what the page is about can be seen. */
async function open(path: string, shown: string): Promise<number> {
  const startedAt = performance.now()
  await page.goto(`${server.url}/console${path}`, { waitUntil: 'commit' })
  await page.locator(shown).first().waitFor()
  return performance.now() - startedAt
}

await session.send('Network.clearBrowserCache')
bytes = 0
const first = await open('/rules', 'main .empty h3, main table')
console.log(`first load: ${Math.round(bytes / 1_000)} KB, ${Math.round(first)} ms until the page can be used`)

const list = (await send('POST', '/v1/lists', { body: { name: 'long', type: 'ip' } })).body.id as string
for (let from = 0; from < ENTRIES; from += ENTRIES_PER_CALL) {
  const add = Array.from({ length: Math.min(ENTRIES_PER_CALL, ENTRIES - from) }, (_, i) => {
    const at = from + i
    return `10.${(at >> 16) & 255}.${(at >> 8) & 255}.${at & 255}`
  })
  await send('PATCH', `/v1/lists/${list}/entries`, { body: { add } })
}
const rule = (
  await send('POST', '/v1/rules', {
    body: {
      name: 'Bots',
      status: 'live',
      conditions: { operator: 'AND', rules: [{ field: 'signals.bot.detected', operator: 'equals', value: true }] },
      action: { verdict: 'block' },
    },
  })
).body.id as string
const visit = () => send('POST', '/v1/identify', { body: { userAgent: 'curl/8.5.0', linkedId: 'user_42' } })
const event = (await visit()).body

const PAGES: readonly (readonly [string, string, string])[] = [
  ['overview', '/', '.tiles'],
  ['overview, 30 days', '/?days=30', '.plot canvas'],
  ['events', '/events', 'table tbody tr'],
  ['events by verdict', '/events?verdict=block', 'table tbody tr'],
  ['events by address', '/events?ip=127.0.0.1', 'table tbody tr, .empty h3'],
  ['an event', `/events/${event.requestId}`, '.agreement, ul.trace, .facts'],
  ['a visitor', `/visitors/${event.visitorId}`, '.timeline li'],
  ['visitors by account', '/visitors?linkedId=user_42', 'table tbody tr'],
  ['rules', '/rules', 'table tbody tr'],
  ['a rule with its backtest', `/rules/${rule}`, 'strong:has-text("events match")'],
  ['review', '/review', 'section.card'],
  ['lists', '/lists', 'table tbody tr'],
  ['a list', `/lists/${list}`, 'table tbody tr'],
  ['webhooks', '/webhooks', '.empty h3'],
  ['analytics, 30 days', '/analytics?days=30', 'table tbody tr'],
  ['alerts', '/alerts', '.empty h3'],
  ['settings', '/settings', 'pre'],
  ['system', '/system', '.tiles'],
]
for (const [name, path, shown] of PAGES) {
  const times: number[] = []
  for (let round = 0; round < ROUNDS; round += 1) times.push(await open(path, shown))
  console.log(
    `${name}: ${Math.round(median(times))} ms with ${EVENTS} events, longest task ${Math.round(await longest())} ms`,
  )
}

await open('/events?live=1', '.chip:has-text("live")')
await longest()
const until = performance.now() + TAIL_MS
let sent = 0
while (performance.now() < until) {
  const started = performance.now()
  await Promise.all(Array.from({ length: Math.ceil(TAIL_PER_SECOND / 10) }, visit))
  sent += Math.ceil(TAIL_PER_SECOND / 10)
  await new Promise((resolve) => setTimeout(resolve, Math.max(0, 100 - (performance.now() - started))))
}
const perSecond = Math.round((sent * 1_000) / TAIL_MS)
console.log(`live tail at ${perSecond} events/s: longest task ${Math.round(await longest())} ms`)

await open(`/lists/${list}`, 'table tbody tr')
await longest()
const readAt = performance.now()
const more = page.getByRole('button', { name: 'Load older' })
const rowsNow = (): Promise<number> => page.evaluate("document.querySelectorAll('tbody tr').length")
while ((await more.count()) > 0) {
  const before = await rowsNow()
  await more.click()
  while ((await rowsNow()) === before && (await more.count()) > 0) await page.waitForTimeout(10)
}
const rows = await rowsNow()
console.log(
  `a list of ${rows} rows read in ${((performance.now() - readAt) / 1_000).toFixed(1)} s: longest task ${Math.round(await longest())} ms`,
)
for (let step = 0; step <= 50; step += 1) {
  await page.evaluate(`scrollTo(0, document.body.scrollHeight * ${step / 50})`)
  await page.waitForTimeout(50)
}
console.log(`scrolled from top to bottom: longest task ${Math.round(await longest())} ms`)

await chromium.close()
await profile.remove()
await server.stop()
await cleanUp()
