// The first half of the console's story in Firefox: set up, a first event, a rule made of it and live, the block and why.

import t from 'tap'
import { clientOf, eventually } from '../helpers/client.ts'
import { freePort } from '../helpers/port.ts'
import { cleanUp, startServer } from '../helpers/server.ts'
import { startByHand } from './by-hand.ts'
import { makeFolder } from './chromium.ts'
import { openMarionette } from './marionette.ts'

t.setTimeout(900_000)
const WAIT_MS = 240_000
const PASSWORD = 'a sentence that is long enough'
const server = await startServer()
const { send } = clientOf(server)
const profile = await makeFolder('console-firefox')
const port = await freePort()
const browser = await startByHand('firefox', {
  profileDir: profile.path,
  url: 'about:blank',
  display: null,
  flags: ['--marionette'],
  prefs: { 'marionette.port': port },
})
const session = await openMarionette(port)
t.teardown(async () => {
  session.close()
  await browser.close()
  await profile.remove()
  await cleanUp()
})

/** Runs in a sandbox that the policy of the page does not know of. */
async function run<T>(script: string, ...args: readonly unknown[]): Promise<T> {
  const answer = await session.send('WebDriver:ExecuteScript', { script, args, sandbox: 'test' })
  return (answer as { value: T }).value
}
const text = () => run<string>('return document.body.innerText')
const shows = (what: string | RegExp) =>
  eventually(text, (found) => (typeof what === 'string' ? found.includes(what) : what.test(found)), WAIT_MS)

/** The element by what a person calls it: a button, a link or a heading by its text, a control by its label. */
const FIND = `
  const named = (element) => (element.innerText ?? '').trim()
  const all = [...document.querySelectorAll('button, a, summary')].filter((one) => named(one).startsWith(arguments[0]))
  const label = [...document.querySelectorAll('label')].find((one) => named(one) === arguments[0])
  const found = label ? document.getElementById(label.htmlFor) : all[0]`

async function click(name: string): Promise<void> {
  await eventually(
    () => run<boolean>(`${FIND}; if (!found || found.disabled) return false; found.click(); return true`, name),
    Boolean,
    WAIT_MS,
  )
}
async function fill(label: string, value: string): Promise<void> {
  const found = () => run<unknown>(`${FIND}; return found`, label)
  const element = (await eventually(found, (one) => one !== null, WAIT_MS)) as Record<string, string>
  await session.send('WebDriver:ElementClear', { id: Object.values(element)[0] })
  await session.send('WebDriver:ElementSendKeys', { id: Object.values(element)[0], text: value })
}
async function identify(): Promise<{ requestId: string; verdict: string }> {
  const body = { userAgent: 'HeadlessChrome/147.0.0.0', automation: { webdriver: true }, linkedId: 'user_42' }
  return (await send('POST', '/v1/identify', { body })).body
}

t.test('it is set up by the link', async (t) => {
  const [link = ''] = /http\S+\/console\/setup#token=\S+/.exec(server.logs()) ?? []
  await session.send('WebDriver:Navigate', { url: link })
  await fill('E-mail', 'ada@shop.example')
  await fill('Name', 'Ada')
  await fill('Password', PASSWORD)
  await click('Create the admin')
  await shows('First steps')
  t.equal(await run('return location.pathname'), '/console/')
})

t.test('the first event ticks its step, and a rule made of it blocks the next', async (t) => {
  await identify()
  await click('Look at the latest one')
  await shows('Nobody known fits well enough')
  await click('Make a rule of this')
  await shows(/1 of 1 events match/)
  await click('Go live')
  await shows(/The rule decides: everywhere after \d+ ms/)
  t.equal((await identify()).verdict, 'block')
})

t.test('what was blocked says why', async (t) => {
  const { requestId } = await identify()
  await session.send('WebDriver:Navigate', { url: `${server.url}/console/events/${requestId}` })
  await shows('Decided by Block Bot')
  await shows('The event has true')
  t.match(await text(), /undetermined/)
})
