// Opens the console in a real Chromium and looks at its pages: accessible, within their width, in both themes, without a complaint of the
// browser. What was looked at is kept as pictures in build/screenshots.

import { mkdirSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import type { CDPSession, Page } from 'playwright-core'
import type { Test } from 'tap'

const PICTURES = fileURLToPath(new URL('../../screenshots', import.meta.url))
export const WAIT_MS = 120_000
const WIDTHS = [360, 1440] as const
const SCHEMES = ['light', 'dark'] as const
const SERIOUS = ['serious', 'critical']

export interface Visit {
  readonly page: Page
  /** What the browser complained of: errors of scripts, of the console, and of the policy. */
  readonly complaints: readonly string[]
  /** Looks at the page as it is. */
  look(t: Test, name: string): Promise<void>
}

/** `page` has nothing open yet. */
export async function openVisit(page: Page): Promise<Visit> {
  mkdirSync(PICTURES, { recursive: true })
  page.setDefaultTimeout(WAIT_MS)
  const complaints: string[] = []
  page.on('pageerror', (error) => complaints.push(String(error)))
  page.on('console', (message) => {
    // That a request was refused is what some steps are about; the browser says so by itself.
    const isRefusal = /Failed to load resource.*status of 4\d\d/.test(message.text())
    if (message.type() === 'error' && !isRefusal) complaints.push(message.text())
  })
  const axe = await readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
  const session = await page.context().newCDPSession(page)
  return {
    page,
    complaints,
    async look(t, name) {
      await injectAxe(session, axe)
      for (const colorScheme of SCHEMES) {
        for (const width of WIDTHS) {
          await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
          await page.setViewportSize({ width, height: 900 })
          await page.evaluate('new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))')
          t.same(await violations(page), [], `${name}: axe finds nothing serious, ${colorScheme}, ${width} px`)
          t.equal(await overflow(page), 0, `${name} fits into ${width} px`)
          await page.screenshot({ path: `${PICTURES}/${name}-${width}-${colorScheme}.png`, fullPage: true })
        }
      }
      await page.emulateMedia({ colorScheme: 'light' })
    },
  }
}

/** Not through the page, whose policy takes no foreign script. */
async function injectAxe(session: CDPSession, axe: string): Promise<void> {
  await session.send('Runtime.evaluate', { expression: `window.axe === undefined && (() => { ${axe} })()` })
}

const violations = (page: Page): Promise<unknown> =>
  page.evaluate(
    `(async () => (await axe.run()).violations
      .filter(({ impact }) => ${JSON.stringify(SERIOUS)}.includes(impact))
      .map(({ id, nodes }) => [id, nodes.slice(0, 5).map(({ html }) => html.slice(0, 160))]))()`,
  )

const overflow = (page: Page): Promise<number> =>
  page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth')
