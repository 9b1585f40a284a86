// Who appears in the tests of real browsers: a service, a customer's page that identifies by itself, a screen, and
// browsers that a person starts or a program drives. One browser at a time.

import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { type BrowserContext, chromium, type Page } from 'playwright-core'
import type { TAP } from 'tap'
import { freePort } from '../helpers/port.ts'
import { cleanUp, startServer } from '../helpers/server.ts'
import { type Kind, type Running, type Start, startByHand } from './by-hand.ts'
import { makeFolder } from './chromium.ts'
import { type Display, openDisplay } from './display.ts'
import { openMarionette } from './marionette.ts'
import { openSite, type Seen, type Site } from './visits.ts'

export type Manner = Partial<Pick<Start, 'flags' | 'env' | 'prefs' | 'languages' | 'isPrivate' | 'profileDir'>> & {
  headless?: boolean
}

export type Cast = {
  /** A person opens the page. Without a profile folder a new one is made and removed. */
  visit(kind: Kind, name: string, manner?: Manner): Promise<Seen>
  /** A program opens it in Chromium over the DevTools protocol, after `prepare`. */
  driveChromium(
    name: string,
    manner?: Manner,
    prepare?: (page: Page, context: BrowserContext) => Promise<void>,
  ): Promise<Seen>
  /** A program opens it in Firefox in a WebDriver session. */
  driveFirefox(name: string): Promise<Seen>
  makeProfile(): Promise<string>
}

const debuggerMsMax = 90_000

/** Opens service, page and screen before the first test of a file; closes them after the last. */
export function setCast(t: TAP): Cast {
  let site: Site
  let display: Display
  const profiles: Awaited<ReturnType<typeof makeFolder>>[] = []

  t.before(async () => {
    display = await openDisplay()
    site = await openSite(await startServer())
  })

  t.teardown(async () => {
    await site.close()
    await display.close()
    await cleanUp()
    for (const profile of profiles) await profile.remove()
  })

  async function makeProfile(): Promise<string> {
    const profile = await makeFolder('profile')
    profiles.push(profile)
    return profile.path
  }

  /** Starts a browser, lets `act` do the rest, and ends it. */
  async function withBrowser(
    kind: Kind,
    name: string,
    { headless = false, profileDir, ...manner }: Manner,
    url: string,
    act: (browser: Running) => Promise<void>,
  ): Promise<Seen> {
    const browser = await startByHand(kind, {
      ...manner,
      url,
      profileDir: profileDir ?? (await makeProfile()),
      display: headless ? null : display.name,
    })
    try {
      const seen = site.seen(name)
      // Waited for below, whatever becomes of `act`.
      seen.catch(() => undefined)
      await act(browser)
      return await seen
    } catch (error) {
      throw new Error(`${String(error)}\n${browser.output().slice(-2_000)}`)
    } finally {
      await browser.close()
    }
  }

  return {
    makeProfile,
    visit: (kind, name, manner = {}) => withBrowser(kind, name, manner, site.urlOf(name), async () => {}),
    driveChromium: (name, manner = {}, prepare) =>
      withBrowser('chromium', name, manner, 'about:blank', async (running) => {
        const browser = await chromium.connectOverCDP(await debuggerUrl(running))
        const context = browser.contexts()[0]
        if (!context) throw new Error('the browser has no default context')
        const page = await context.newPage()
        await prepare?.(page, context)
        await page.goto(site.urlOf(name))
      }),
    async driveFirefox(name) {
      const port = await freePort()
      const manner = { flags: ['--marionette'], prefs: { 'marionette.port': port } }
      return withBrowser('firefox', name, manner, 'about:blank', async () => {
        const session = await openMarionette(port)
        await session.send('WebDriver:Navigate', { url: site.urlOf(name) })
        session.close()
      })
    },
  }
}

/** Removes what pages may have stored in a closed profile: cookies and every kind of storage. */
export async function clearStorage(kind: Kind, profileDir: string): Promise<void> {
  const stored =
    kind === 'chromium'
      ? ['Cookies', 'Cookies-journal', 'IndexedDB', 'Local Storage', 'Session Storage', 'WebStorage'].map((name) =>
          join('Default', name),
        )
      : ['cookies.sqlite', 'cookies.sqlite-wal', 'cookies.sqlite-shm', 'storage', 'webappsstore.sqlite']
  for (const name of stored) await rm(join(profileDir, name), { recursive: true, force: true })
}

async function debuggerUrl(browser: Running): Promise<string> {
  const until = performance.now() + debuggerMsMax
  for (;;) {
    const url = /DevTools listening on (ws:\/\/\S+)/.exec(browser.output())?.[1]
    if (url) return url
    if (performance.now() > until) throw new Error('Chromium opened no debugging port')
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}
