// Pictures of pages for documents: `npm run pictures` takes them over from build/screenshots.

import { mkdirSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { Page } from 'playwright-core'

const PICTURES = fileURLToPath(new URL('../../screenshots', import.meta.url))
const SIZE = { width: 1_200, height: 900 }

/** Of what is on top of the page, in its light theme. */
export async function takePicture(page: Page, name: string): Promise<void> {
  mkdirSync(PICTURES, { recursive: true })
  const before = page.viewportSize()
  await page.setViewportSize(SIZE)
  await page.emulateMedia({ colorScheme: 'light' })
  await page.evaluate('scrollTo(0, 0)')
  const session = await page.context().newCDPSession(page)
  const { data } = await session.send('Page.captureScreenshot', { format: 'webp', quality: 80 })
  writeFileSync(`${PICTURES}/${name}.webp`, Buffer.from(data, 'base64'))
  await session.detach()
  if (before !== null) await page.setViewportSize(before)
}
