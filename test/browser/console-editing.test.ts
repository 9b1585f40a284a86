// What people type into the console in a real Chromium is kept, saved or refused, and what they start ends where they started it: rules,
// alerts and filters that are edited, writes of several calls while the environment is changed, a session that another tab replaced.

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
const ruleOf = async (id: string) => (await send('GET', `/v1/rules/${id}`)).body

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

/** The first call goes on once the console shows the other environment: a page with this heading. */
async function goOnInTest(held: Awaited<ReturnType<typeof holdBack>>, heading: string): Promise<void> {
  const first = await held.nth(0)
  await button('Test').click()
  await page.getByRole('heading', { name: heading }).waitFor()
  await first.goOn()
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

t.test('a text that is no rule is neither saved nor thrown away', async (t) => {
  const id = await makeRule('As text', 10)
  await go(`/rules/${id}`)
  await button('JSON').click()
  const text = field('The body of POST /v1/rules')
  const whole = await text.inputValue()
  await text.fill(`${whole} and more`)
  await page.getByText('This is no rule yet').waitFor()
  t.ok(await button('Save').isDisabled())
  await button('Form').click()
  t.equal(await text.inputValue(), `${whole} and more`, 'the form, which cannot show it, does not take its place')
  await text.fill(whole.replace('As text', 'As a text'))
  await button('Save').click()
  await said('Saved')
  t.equal((await ruleOf(id)).name, 'As a text')
})

t.test('changes to a rule outlive its tabs, and its status waits until they are saved or discarded', async (t) => {
  const id = await makeRule('Edited', 20)
  await go(`/rules/${id}`)
  await field('Name').fill('Edited by hand')
  await button('Try on an event').click()
  await field('Event').waitFor()
  t.ok(await button('Go live').isDisabled())
  await page.getByText('Save or discard your changes to the rule first.').waitFor()
  await button('Rule').click()
  t.equal(await field('Name').inputValue(), 'Edited by hand')
  await button('Discard the changes').click()
  t.equal(await field('Name').inputValue(), 'Edited')
  await field('Name').fill('Edited again')
  await button('Save').click()
  await said('Saved')
  await button('Go live').click()
  await said('The rule is live')
  const { name, status } = await ruleOf(id)
  t.same([name, status], ['Edited again', 'live'])
})

t.test('a rule keeps the priority that somebody clears, as the form says', async (t) => {
  const id = await makeRule('Placed', 30)
  await go(`/rules/${id}`)
  await field('Priority').fill('')
  await page.getByText('Lower is asked first; empty: stays 30.').waitFor()
  await button('Save').click()
  await said('Saved')
  t.equal((await ruleOf(id)).priority, 30)
  await field('Priority').fill('7')
  await button('Discard the changes').click()
  t.equal(await field('Priority').inputValue(), '30')
  await button('Discard the changes').waitFor({ state: 'detached' })
})

t.test('what is typed into an alert outlives a pause, and a threshold of nothing is refused', async (t) => {
  const body = { name: 'Many', metric: 'events', operator: 'gt', threshold: 5, windowSeconds: 60 }
  const { id } = (await send('POST', '/v1/alerts', { body })).body
  const stored = async () => (await send('GET', `/v1/alerts/${id}`)).body
  await go(`/alerts/${id}`)
  await field('Threshold').fill('77')
  await button('Pause').click()
  await button('Watch again').waitFor()
  t.equal(await field('Threshold').inputValue(), '77')
  t.equal((await stored()).threshold, 5)
  await field('Threshold').fill('')
  await field('Threshold').pressSequentially(' ')
  await button('Save').click()
  t.equal(await page.evaluate('document.querySelectorAll("main form input:invalid").length'), 1)
  t.equal((await stored()).threshold, 5)
  await field('Threshold').fill('0.77')
  await button('Save').click()
  await said('The alert is saved.')
  const { threshold, status } = await stored()
  t.same([threshold, status], [0.77, 'paused'])
})

t.test('a time that nobody typed over is searched as it was given, and is shown in UTC', async (t) => {
  const given = '2026-11-20T10:00:30+02:00'
  const searched = () => new URL(page.url()).searchParams.get('after')
  await go(`/events?after=${encodeURIComponent(given)}`)
  await button('More filters').click()
  t.equal(await field('After (UTC)').inputValue(), '2026-11-20T08:00')
  await field('After (UTC)').focus()
  await field('Before (UTC)').focus()
  t.equal(searched(), given)
  await field('After (UTC)').fill('2026-11-20T09:30')
  await field('Before (UTC)').focus()
  await eventually(
    async () => searched(),
    (after) => after === '2026-11-20T09:30:00.000Z',
    WAIT_MS,
  )
})

t.test('entries go to the environment they were added in, and a failure is told after its page has gone', async (t) => {
  const { id } = (await send('POST', '/v1/lists', { body: { name: 'many', type: 'email' } })).body
  await go(`/lists/${id}`)
  const lines = Array.from({ length: 2 * LINES_PER_CALL + 1 }, (_, i) => `person${i}@shop.example`)
  const file = { name: 'many.csv', mimeType: 'text/csv', buffer: Buffer.from(lines.join('\n')) }
  await field('Or a CSV file').setInputFiles(file)
  const held = await holdBack(/\/v1\/lists\/[^/]+\/entries/, 'PATCH')
  await button('Add').click()
  await goOnInTest(held, 'All lists')
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
  await goOnInTest(held, 'No rule yet')
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
