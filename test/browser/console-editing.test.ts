// What people start in the console in a real Chromium ends where they started it: writes of several calls while the environment is
// changed, a session that another tab replaced.

import type { Page, Request } from 'playwright-core'
import t from 'tap'
import { clientOf, eventually } from '../helpers/client.ts'
import { cleanUp, startServer } from '../helpers/server.ts'
import { makeFolder, startChromium } from './chromium.ts'
import { openVisit, WAIT_MS } from './console-visit.ts'

t.setTimeout(900_000)
const server = await startServer()
const { send } = clientOf(server)
const profile = await makeFolder('console-editing')
const chromium = await startChromium(profile.path)
t.teardown(async () => {
  await chromium.close()
  await profile.remove()
  await cleanUp()
})
const visit = await openVisit(await chromium.context.newPage())
const { page } = visit

const PASSWORD = 'a sentence that is long enough'
const CONDITIONS = { operator: 'AND', rules: [{ field: 'scores.suspect', operator: 'gte', value: 99 }] }
const LINES_PER_CALL = 1_000

const button = (name: string, on: Page = page) => on.getByRole('button', { name, exact: true })
const field = (name: string, on: Page = page) => on.getByLabel(name, { exact: true })
const go = async (path: string, on: Page = page) => {
  await on.goto(`${server.url}/console${path}`)
  await on.locator('main h1').waitFor()
}
const said = (text: string | RegExp, on: Page = page) => on.locator('.notices p', { hasText: text }).first().waitFor()

async function makeRule(name: string, priority: number): Promise<string> {
  const body = { name, priority, conditions: CONDITIONS, action: { verdict: 'block' } }
  const answer = await send('POST', '/v1/rules', { body })
  t.equal(answer.status, 201, answer.text)
  return answer.body.id
}

async function signIn(on: Page): Promise<void> {
  await field('E-mail', on).fill('ada@shop.example')
  await field('Password', on).fill(PASSWORD)
  await button('Sign in', on).click()
  await on.getByRole('navigation', { name: 'Pages' }).waitFor()
}

interface Held {
  readonly request: Request
  readonly goOn: () => Promise<void>
  readonly fail: () => Promise<void>
  readonly answer: (json: unknown) => Promise<void>
}

/** Keeps back the requests that the page makes of a path; each goes on, fails or is answered when it is told to. */
async function holdBack(path: RegExp, method: string) {
  const held: Held[] = []
  await page.route(path, (route, request) => {
    if (request.method() !== method) return route.continue()
    held.push({
      request,
      goOn: () => route.continue(),
      fail: () => route.abort(),
      answer: (json) => route.fulfill({ json }),
    })
  })
  return {
    environments: () => held.map(({ request }) => request.headers()['x-fingerpost-environment']),
    async nth(n: number) {
      const found = await eventually(
        async () => held[n],
        (one) => one !== undefined,
        WAIT_MS,
      )
      if (found === undefined) throw new Error('no such request')
      return found
    },
  }
}

t.before(async () => {
  const [link = ''] = /http\S+\/console\/setup#token=\S+/.exec(server.logs()) ?? []
  await page.goto(link)
  await field('E-mail').fill('ada@shop.example')
  await field('Name').fill('Ada')
  await field('Password').fill(PASSWORD)
  await button('Create the admin').click()
  await page.getByRole('heading', { name: 'First steps' }).waitFor()
})

t.test('entries go to the environment they were added in, and a failure is told after its page has gone', async (t) => {
  const { id } = (await send('POST', '/v1/lists', { body: { name: 'many', type: 'email' } })).body
  await go(`/lists/${id}`)
  const lines = Array.from({ length: 2 * LINES_PER_CALL + 1 }, (_, i) => `person${i}@shop.example`)
  const file = { name: 'many.csv', mimeType: 'text/csv', buffer: Buffer.from(lines.join('\n')) }
  await field('Or a CSV file').setInputFiles(file)
  const held = await holdBack(/\/v1\/lists\/[^/]+\/entries/, 'PATCH')
  await button('Add').click()
  const first = await held.nth(0)
  await button('Test').click()
  await page.getByRole('heading', { name: 'All lists' }).waitFor()
  await first.goOn()
  await (await held.nth(1)).goOn()
  await (await held.nth(2)).fail()
  await said(/^Adding to many: .*cannot be reached/)
  t.same(held.environments(), ['live', 'live', 'live'])
  t.equal((await send('GET', `/v1/lists/${id}`)).body.entryCount, 2 * LINES_PER_CALL)
  await page.unrouteAll()
  await button('Live').click()
})

t.test('rules are moved in the environment in which somebody moved them', async (t) => {
  await makeRule('Neighbour 1', 41)
  await makeRule('Neighbour 2', 42)
  await makeRule('Moved', 43)
  await go('/rules')
  const held = await holdBack(/\/v1\/rules\/rul_/, 'PUT')
  await button('Ask Moved earlier').click()
  const first = await held.nth(0)
  await button('Test').click()
  await page.getByRole('heading', { name: 'No rule yet' }).waitFor()
  await first.goOn()
  await (await held.nth(1)).goOn()
  await said('Moved is asked')
  t.same(held.environments(), ['live', 'live'])
  await page.unrouteAll()
  await button('Live').click()
})

t.test('an export is read from the environment it was begun in', async (t) => {
  const { visitorId } = (await send('POST', '/v1/identify', { body: { userAgent: 'HeadlessChrome/147.0.0.0' } })).body
  await eventually(
    async () => (await send('GET', `/v1/visitors/${visitorId}`)).status,
    (status) => status === 200,
    WAIT_MS,
  )
  await go(`/visitors/${visitorId}`)
  const held = await holdBack(/\/export/, 'GET')
  const download = page.waitForEvent('download')
  await button('Export').click()
  const first = await held.nth(0)
  await button('Test').click()
  await first.answer({ events: [], hasMore: true, nextCursor: 'more' })
  await (await held.nth(1)).answer({ events: [], hasMore: false, nextCursor: null })
  await download
  t.same(held.environments(), ['live', 'live'])
  await page.unrouteAll()
  await button('Live').click()
})

t.test('a tab whose session another tab replaced goes on with the new one, and can sign out', async () => {
  const other = await chromium.context.newPage()
  const replace = async () => {
    await go('/', other)
    await button('Sign out', other).click()
    await signIn(other)
  }
  await go('/lists')
  await replace()
  await page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: 'Rules' }).click()
  await page.getByRole('row', { name: /Moved/ }).waitFor()
  await replace()
  await page.route('**/console/api/sign-out', (route) => route.abort())
  await button('Sign out').click()
  await said('You are still signed in: The server cannot be reached.')
  await page.unrouteAll()
  await button('Sign out').click()
  await page.getByRole('heading', { name: 'Sign in' }).waitFor()
  await other.close()
})

t.test('no script failed', (t) => {
  t.same(
    visit.complaints.filter((text) => !text.includes('net::ERR_FAILED')),
    [],
  )
  t.end()
})
