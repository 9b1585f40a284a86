// Who appears in the tests of real browsers: a service, a customer's page that identifies by itself, a screen, and
// browsers that a person starts or a program drives.

import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { type BrowserContext, chromium, type Page } from 'playwright-core'
import type { TAP } from 'tap'
import { freePort } from '../helpers/port.ts'
import { cleanUp } from '../helpers/server.ts'
import { openTenant } from '../helpers/tenant.ts'
import { type Kind, type Running, type Start, startByHand } from './by-hand.ts'
import { makeFolder } from './chromium.ts'
import { type Display, openDisplay } from './display.ts'
import { openMarionette } from './marionette.ts'
import { openSite, type Seen, type Site } from './visits.ts'

export type Manner = Partial<Pick<Start, 'flags' | 'env' | 'prefs' | 'languages' | 'isPrivate' | 'profileDir'>> & {
  headless?: boolean
}

/** A browser that stays open after its first visit. */
export type Session = {
  /** What the page told that it was started with. */
  readonly first: Seen
  /** The same tab visits again. */
  again(name: string): Promise<Seen>
  /** The same tab visits again, after the browser has cleared what the site had stored. */
  emptied(name: string): Promise<Seen>
  /** A program that attaches itself to this Chromium visits in a new tab, after `prepare`, with nothing stored. */
  drive(name: string, prepare?: Prepare): Promise<Seen>
  close(): Promise<void>
}

export type Prepare = (page: Page, context: BrowserContext) => Promise<void>

export type Cast = {
  /** A person opens the page and leaves the browser open. Without a profile folder a new one is made. */
  open(kind: Kind, name: string, manner?: Manner): Promise<Session>
  /** A person opens the page and closes the browser, unless it was open already. */
  visit(kind: Kind, name: string, manner?: Manner): Promise<Seen>
  /** A program opens it in Chromium over the DevTools protocol, after `prepare`. */
  driveChromium(name: string, manner?: Manner, prepare?: Prepare): Promise<Seen>
  /** A program opens it in Firefox in a WebDriver session. */
  driveFirefox(name: string, manner?: Manner): Promise<Seen>
  makeProfile(): Promise<string>
}

const debuggerMsMax = 240_000

/** Opens service, page and screen before the first test of a file; closes them after the last. */
export function setCast(t: TAP): Cast {
  let site: Site
  let display: Display
  const profiles: Awaited<ReturnType<typeof makeFolder>>[] = []
  const running = new Set<Running>()

  t.before(async () => {
    display = await openDisplay()
    site = await openSite((await openTenant('browsers')).server)
  })

  t.teardown(async () => {
    for (const browser of running) await browser.close()
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

  async function start(kind: Kind, { headless = false, profileDir, ...manner }: Manner, url: string): Promise<Running> {
    const browser = await startByHand(kind, {
      ...manner,
      url,
      profileDir: profileDir ?? (await makeProfile()),
      display: headless ? null : display.name,
    })
    running.add(browser)
    return {
      ...browser,
      async close() {
        await browser.close()
        running.delete(browser)
      },
    }
  }

  /** What the visit tells that `act` leads to. */
  async function watch(browser: Running, name: string, act: () => unknown): Promise<Seen> {
    try {
      const seen = site.seen(name)
      // Waited for below, whatever becomes of `act`.
      seen.catch(() => undefined)
      await act()
      return await seen
    } catch (error) {
      throw new Error(`${String(error)}\n${browser.output().slice(-2_000)}`)
    }
  }

  async function drive(browser: Running, context: BrowserContext, name: string, prepare?: Prepare): Promise<Seen> {
    const page = await context.newPage()
    const devtools = await context.newCDPSession(page)
    await devtools.send('Storage.clearDataForOrigin', { origin: site.origin, storageTypes: 'all' })
    await devtools.detach()
    await context.clearCookies()
    await prepare?.(page, context)
    return watch(browser, name, () => page.goto(site.urlOf(name)))
  }

  function sessionOf(browser: Running, name: string, first: Seen): Session {
    let here = name
    let attached: Promise<BrowserContext> | null = null
    async function goTo(next: string, emptied: boolean): Promise<Seen> {
      const seen = await watch(browser, next, () => site.sendOn(here, next, emptied))
      here = next
      return seen
    }
    return {
      first,
      again: (next) => goTo(next, false),
      emptied: (next) => goTo(next, true),
      async drive(next, prepare) {
        attached ??= attach(browser)
        return drive(browser, await attached, next, prepare)
      },
      close: () => browser.close(),
    }
  }

  async function open(kind: Kind, name: string, manner: Manner = {}): Promise<Session> {
    const browser = await start(kind, manner, site.urlOf(name))
    try {
      return sessionOf(browser, name, await watch(browser, name, () => undefined))
    } catch (error) {
      await browser.close()
      throw error
    }
  }

  async function withBrowser(browser: Running, act: () => Promise<Seen>): Promise<Seen> {
    try {
      return await act()
    } finally {
      await browser.close()
    }
  }

  return {
    makeProfile,
    open,
    async visit(kind, name, manner) {
      const session = await open(kind, name, manner)
      await session.close()
      return session.first
    },
    async driveChromium(name, manner = {}, prepare) {
      const browser = await start('chromium', manner, 'about:blank')
      return withBrowser(browser, async () => drive(browser, await attach(browser), name, prepare))
    },
    async driveFirefox(name, manner = {}) {
      const port = await freePort()
      const flags = [...(manner.flags ?? []), '--marionette']
      const prefs = { ...manner.prefs, 'marionette.port': port }
      const browser = await start('firefox', { ...manner, flags, prefs }, 'about:blank')
      return withBrowser(browser, async () => {
        const session = await openMarionette(port)
        const seen = await watch(browser, name, () => session.send('WebDriver:Navigate', { url: site.urlOf(name) }))
        session.close()
        return seen
      })
    },
  }
}

async function attach(browser: Running): Promise<BrowserContext> {
  const [context] = (await chromium.connectOverCDP(await debuggerUrl(browser))).contexts()
  if (!context) throw new Error('the browser has no default context')
  context.setDefaultTimeout(debuggerMsMax)
  return context
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
