// What the SDK tests share: one Chromium per test file, a fresh scripted service per test, and expressions run in its pages.

import { existsSync } from 'node:fs'
import type { Page } from 'playwright-core'
import type { TAP, Test } from 'tap'
import { type Chromium, makeFolder, startChromium } from './chromium.ts'
import { type FakeService, type Recorded, root, startFakeService } from './fake-service.ts'

export type Scene = { service: FakeService; page: Page; errors: string[] }

export type Stage = {
  /** A page of a fresh service, hence with empty storage; `before` is script that runs ahead of the page's own. */
  open(test: Test, path: string, before?: string): Promise<Scene>
  openPrivate: Chromium['openPrivate']
  /** Addresses asked for that are not on this machine. */
  foreignRequests: string[]
}

export const token = `st_${'Ab1-_.'.repeat(20)}`

/** Starts Chromium before the first test of a file and ends it after the last. */
export function setStage(t: TAP): Stage {
  const foreignRequests: string[] = []
  let chromium: Chromium
  let profile: Awaited<ReturnType<typeof makeFolder>>

  t.before(async () => {
    if (!existsSync(new URL('build/sdk/sdk.js', root))) {
      const { buildSdk } = await import(new URL('.scripts/build-sdk.mjs', root).href)
      await buildSdk()
    }
    profile = await makeFolder('sdk')
    chromium = await startChromium(profile.path)
    chromium.context.on('request', (request) => {
      const { protocol, hostname } = new URL(request.url())
      if (protocol.startsWith('http') && hostname !== '127.0.0.1' && hostname !== 'localhost') {
        foreignRequests.push(request.url())
      }
    })
  })

  t.teardown(async () => {
    await chromium.close()
    await profile.remove()
  })

  return {
    foreignRequests,
    openPrivate: () => chromium.openPrivate(),
    async open(test, path, before) {
      // Cookies do not tell ports apart, so those of the test before would still be there.
      await chromium.context.clearCookies()
      const service = await startFakeService()
      const page = await chromium.context.newPage()
      const errors: string[] = []
      page.on('pageerror', (error) => errors.push(error.message))
      page.on('console', (message) => {
        if (/Content Security Policy/i.test(message.text())) errors.push(message.text())
      })
      if (before) await page.addInitScript(before)
      test.teardown(async () => {
        await page.close()
        await service.close()
      })
      await page.goto(service.url + path)
      await page.waitForFunction('typeof Fingerpost === "object"')
      return { service, page, errors }
    },
  }
}

/** Loads a client in the page and answers an expression about it. */
export function run<T>(page: Page, expression: string, options = 'budgetMs: 300'): Promise<T> {
  return page.evaluate<T>(`(async () => {
    const client = Fingerpost.load({ publicKey: 'pk_test_x', ${options} })
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
