// Signing in to the console with an OpenID provider of another site in a real Chromium: there and back, with cookies that no other site sends.

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { OWNER } from '../helpers/console.ts'
import { CLIENT_SECRET, startProvider } from '../helpers/openid.ts'
import { freePort } from '../helpers/port.ts'
import { cleanUp, startServer, temporaryFolder } from '../helpers/server.ts'
import { makeFolder, startChromium } from './chromium.ts'
import { openVisit } from './console-visit.ts'

t.setTimeout(300_000)
const setupFile = join(temporaryFolder(), 'setup.json')
writeFileSync(setupFile, JSON.stringify(OWNER))
// Another site than 127.0.0.1.
const issuer = `http://localhost:${await freePort()}`
const server = await startServer({
  env: {
    FINGERPOST_CONSOLE_SETUP_FILE: setupFile,
    FINGERPOST_CONSOLE_OIDC_ISSUER: issuer,
    FINGERPOST_CONSOLE_OIDC_CLIENT_ID: 'console',
    FINGERPOST_CONSOLE_OIDC_CLIENT_SECRET: CLIENT_SECRET,
    FINGERPOST_CONSOLE_OIDC_LABEL: 'Shop login',
  },
})
await startProvider(t, issuer, `${server.url}/console/oidc`, {
  ada: { email: OWNER.email, email_verified: true, name: 'Ada' },
})
const profile = await makeFolder('console-oidc')
const chromium = await startChromium(profile.path, ['--window-size=1440,900', '--hide-scrollbars'])
t.teardown(async () => {
  await chromium.close()
  await profile.remove()
  await cleanUp()
})
const { page, look, complaints } = await openVisit(await chromium.context.newPage())
const heading = (name: string) => page.getByRole('heading', { name })

t.test('the sign-in has a button that leads there and back into the console', async (t) => {
  await page.goto(`${server.url}/console/`)
  const button = page.getByRole('button', { name: 'Continue with Shop login' })
  await button.waitFor()
  await look(t, 'sign-in-with-provider')
  await button.click()
  await page.getByRole('navigation', { name: 'Pages' }).waitFor()
  t.equal(page.url(), `${server.url}/console/`, 'without the code in the address')
  const cookies = await chromium.context.cookies(server.url)
  t.same(cookies.map(({ name }) => name).sort(), ['fingerpost_device', 'fingerpost_session'])
  for (const { sameSite, httpOnly } of cookies) t.same([sameSite, httpOnly], ['Strict', true])
  await page.goBack()
  t.notMatch(page.url(), /code=/)
})

t.test('what the provider or somebody else sends back wrong is told, with the way to the sign-in', async (t) => {
  for (const [query, said] of [
    ['?error=access_denied', 'The provider was told not to sign you in.'],
    ['?error=%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E', 'The provider did not sign you in.'],
    ['?code=a&state=b', 'This is not right.'],
    ['', 'The provider did not sign you in.'],
  ] as const) {
    await page.goto(`${server.url}/console/oidc${query}`)
    await heading('Not signed in').waitFor()
    await page.getByText(said).waitFor()
    t.equal(page.url(), `${server.url}/console/oidc`, query)
  }
  await look(t, 'provider-refused')
  await page.getByRole('link', { name: 'To the sign-in' }).click()
  t.same(complaints, [], 'the browser complains of nothing')
})
