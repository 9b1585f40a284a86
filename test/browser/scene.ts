// What the SDK tests share: one Chromium, one page and one scripted service per test file, both as new for each test, and
// expressions run in the page.

import { existsSync } from 'node:fs'
import type { CDPSession, ConsoleMessage, Page } from 'playwright-core'
import type { TAP, Test } from 'tap'
import { type Chromium, makeFolder, startChromium } from './chromium.ts'
import { type FakeService, type Recorded, root, startFakeService } from './fake-service.ts'

export type Scene = { service: FakeService; page: Page; errors: string[] }

export type Stage = {
  /**
   * The page with empty storage, and the service with nothing recorded. `before` is script that runs ahead of the page's own;
   * it takes a page of its own, since such a script stays.
   */
  open(test: Test, path: string, before?: string): Promise<Scene>
  openPrivate: Chromium['openPrivate']
  /** Addresses asked for that are not on this machine. */
  foreignRequests: string[]
}

/** For any one step of a page, on a machine with much else to do. */
const PATIENCE_MS = 120_000

export const token = `st_${'Ab1-_.'.repeat(20)}`

/** Starts Chromium before the first test of a file and ends it after the last. */
export function setStage(t: TAP): Stage {
  const foreignRequests: string[] = []
  let chromium: Chromium
  let shared: Page
  let devtools: CDPSession
  let service: FakeService
  let profile: Awaited<ReturnType<typeof makeFolder>>

  t.before(async () => {
    if (!existsSync(new URL('build/sdk/sdk.js', root))) {
      const { buildSdk } = await import(new URL('.scripts/build-sdk.mjs', root).href)
      await buildSdk()
    }
    profile = await makeFolder('sdk')
    chromium = await startChromium(profile.path)
    chromium.context.setDefaultTimeout(PATIENCE_MS)
    chromium.context.on('request', (request) => {
      const { protocol, hostname } = new URL(request.url())
      if (protocol.startsWith('http') && hostname !== '127.0.0.1' && hostname !== 'localhost') {
        foreignRequests.push(request.url())
      }
    })
    shared = await chromium.context.newPage()
    devtools = await chromium.context.newCDPSession(shared)
    // One address for all tests: a new one costs a process of the browser each time.
    service = await startFakeService()
  })

  t.teardown(async () => {
    await chromium.close()
    await service.close()
    await profile.remove()
  })

  return {
    foreignRequests,
    openPrivate: () => chromium.openPrivate(),
    async open(test, path, before) {
      await devtools.send('Storage.clearDataForOrigin', { origin: service.url, storageTypes: 'all' })
      // Cookies do not tell ports apart.
      await chromium.context.clearCookies()
      service.forget()
      const page = before ? await chromium.context.newPage() : shared
      const errors: string[] = []
      const onError = (error: Error) => errors.push(error.message)
      const onMessage = (message: ConsoleMessage) => {
        if (/Content Security Policy/i.test(message.text())) errors.push(message.text())
      }
      page.on('pageerror', onError).on('console', onMessage)
      if (before) await page.addInitScript(before)
      test.teardown(async () => {
        page.off('pageerror', onError).off('console', onMessage)
        if (before) await page.close()
      })
      await page.goto(service.url + path)
      await page.waitForFunction('typeof Fingerpost === "object"')
      return { service, page, errors }
    },
  }
}

/** A client that collects as much as it can. */
export const THOROUGH = 'budgetMs: 30000'
/** A client that collects as little as it can, where only the sending is of interest. */
export const HASTY = 'budgetMs: 1'

/** Loads a client in the page and answers an expression about it. */
export function run<T>(page: Page, expression: string, options = HASTY): Promise<T> {
  return page.evaluate<T>(`(async () => {
    const client = Fingerpost.load({ publicKey: 'pk_test_x', timeoutMs: 60000, ${options} })
    return ${expression}
  })()`)
}

/** The only recorded identification. */
export function only(service: FakeService): Recorded {
  const recorded = service.bodies[0]
  if (!recorded || service.bodies.length !== 1) throw new Error(`${service.bodies.length} bodies instead of one`)
  return recorded
}

/** Expression for what the three stores hold. */
export const readStores = `await (async () => ({
  cookie: document.cookie.split('; ').find((pair) => pair.startsWith('fingerpost_test='))?.slice(16) ?? null,
  local: localStorage.getItem('fingerpost_test'),
  database: await new Promise((resolve) => {
    const opening = indexedDB.open('fingerpost', 1)
    opening.onupgradeneeded = () => opening.result.createObjectStore('tokens')
    opening.onsuccess = () => {
      const read = opening.result.transaction('tokens').objectStore('tokens').get('fingerpost_test')
      read.onsuccess = () => { opening.result.close(); resolve(read.result ?? null) }
    }
  }),
}))()`
