// One real browser against the real service, through the demo page: what the page shows, and who may read what of it.

import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { BrowserContext } from 'playwright-core'
import t from 'tap'
import { cleanUp } from '../helpers/server.ts'
import { openTenant, type Tenant } from '../helpers/tenant.ts'
import { type Chromium, makeFolder, startChromium } from './chromium.ts'

type Visit = { kind: string; visitorId: string; requestId: string; headline: string; body: Record<string, unknown> }

type StoredEvent = { visitorId: string; signals: { bot: { detected: boolean } } }

const answerMsMax = 240_000
let server: Tenant
let chromium: Chromium
let profile: Awaited<ReturnType<typeof makeFolder>>
let first: Visit

t.setTimeout(1_200_000)

t.before(async () => {
  server = (await openTenant('demo')).server
  profile = await makeFolder('identify')
  chromium = await startChromium(profile.path, ['--window-size=1280,900'])
  chromium.context.setDefaultTimeout(answerMsMax)
  first = await visit(chromium.context)
})

t.teardown(async () => {
  await chromium.close()
  await profile.remove()
  await cleanUp()
})

/** Opens the demo page, which identifies by itself, and reads what it shows. */
async function visit(context: BrowserContext, screenshotFile?: string): Promise<Visit> {
  const page = await context.newPage()
  let sent = '{}'
  page.on('request', (request) => {
    if (request.method() === 'POST' && request.url().includes('/v1/identify')) sent = request.postData() ?? '{}'
  })
  await page.goto(`${server.url}/demo?key=${server.keys.public}`)
  await page.waitForSelector('#state:not([data-kind=busy])', { timeout: answerMsMax })
  const read = async (id: string) => (await page.textContent(`#${id}`)) ?? ''
  const kind = (await page.getAttribute('#state', 'data-kind')) ?? ''
  if (kind === 'failed') throw new Error(`the demo page failed: ${await read('failure')}`)
  const seen = {
    kind,
    visitorId: await read('visitor'),
    requestId: await read('request'),
    headline: await read('headline'),
    body: JSON.parse(sent),
  }
  if (screenshotFile) await page.screenshot({ path: screenshotFile, fullPage: true })
  await page.close()
  return seen
}

async function readEvent(requestId: string): Promise<{ status: number; event: StoredEvent }> {
  const response = await fetch(`${server.url}/v1/events/${requestId}`, {
    headers: { Authorization: `Bearer ${server.keys.secret}` },
  })
  return { status: response.status, event: (await response.json()) as StoredEvent }
}

t.test('a first visit gets an id and a token', async (t) => {
  t.equal(first.kind, 'new')
  t.match(first.visitorId, /^pv_[0-9A-Za-z]{20}$/)
  t.match(first.requestId, /^req_[0-9A-HJKMNP-TV-Z]{26}$/)
  t.equal(first.body.storageToken, null)
})

t.test('a browser that comes back is the same visitor by its token, and the page shows so', async (t) => {
  const file = join(profile.path, 'demo.png')
  const again = await visit(chromium.context, file)
  t.equal(again.visitorId, first.visitorId)
  t.equal(again.kind, 'found')
  t.match(again.body.storageToken, /^st_/)
  t.match(again.headline, /token/)
  const image = await readFile(file)
  t.same([...image.subarray(1, 4)], [...Buffer.from('PNG')])
  t.ok(image.length > 20_000, `${image.length} bytes`)
})

t.test('where script storage was emptied the cookie of the service brings the visitor back by its token', async (t) => {
  const page = await chromium.context.newPage()
  t.teardown(() => page.close())
  await page.goto(`${server.url}/demo?key=${server.keys.public}`)
  await page.waitForSelector('#state:not([data-kind=busy])', { timeout: answerMsMax })
  const kept = (await chromium.context.cookies()).find(({ name }) => name === 'fp_live')
  t.match(kept, { httpOnly: true, secure: true, sameSite: 'Lax' })
  t.notMatch(await page.evaluate('document.cookie'), /fp_live/)
  await page.evaluate(`(async () => {
    document.cookie = 'fingerpost_live=; Path=/; Max-Age=0'
    localStorage.clear()
    await new Promise((resolve) => { indexedDB.deleteDatabase('fingerpost').onsuccess = resolve })
  })()`)
  await page.close()
  const back = await visit(chromium.context)
  t.equal(back.body.storageToken, null)
  t.equal(back.visitorId, first.visitorId)
  const explained = await fetch(`${server.url}/v1/events/${back.requestId}/identity`, {
    headers: { Authorization: `Bearer ${server.keys.secret}` },
  })
  t.match(await explained.json(), { method: 'token' })
  const asked = await chromium.context.newPage()
  t.teardown(() => asked.close())
  await asked.goto(`${server.url}/demo?key=${server.keys.public}`)
  await asked.waitForSelector('#state:not([data-kind=busy])', { timeout: answerMsMax })
  await asked.click('#forget')
  await asked.locator('#headline', { hasText: 'empty now' }).waitFor()
  t.notOk(
    (await chromium.context.cookies()).some(({ name }) => name === 'fp_live'),
    'a reset ends it too',
  )
})

t.test('a browser on other hardware and another system is another visitor', async (t) => {
  const userAgent =
    'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/155.0.0.0 Safari/537.36'
  const components = { ...(first.body.components as Record<string, unknown>) }
  const other: Record<string, unknown> = {
    userAgent,
    userAgentData: {
      platform: 'Windows',
      platformVersion: '19.0.0',
      model: '',
      architecture: 'x86',
      bitness: '64',
      mobile: false,
      fullVersionList: [{ brand: 'Chromium', version: '155.0.8010.10' }],
    },
    platform: 'Win32',
    languages: [['ja-JP'], ['ja-JP', 'ja', 'en']],
    timezone: 'Asia/Tokyo',
    dateTimeLocale: 'ja-JP',
    hardwareConcurrency: 16,
    deviceMemory: 32,
    screenResolution: [2560, 1440],
    devicePixelRatio: 1.25,
    canvas: { winding: true, geometry: 'a'.repeat(32), text: 'b'.repeat(32), stable: true },
    audio: 124.04344968475198,
    fonts: ['Calibri', 'MS Gothic', 'MS Mincho', 'Meiryo UI', 'Segoe UI Light'],
    webGlBasics: {
      vendor: 'WebKit',
      renderer: 'WebKit WebGL',
      vendorUnmasked: 'Google Inc. (NVIDIA)',
      rendererUnmasked: 'ANGLE (NVIDIA, NVIDIA GeForce RTX 4070 (0x00002786) Direct3D11 vs_5_0 ps_5_0, D3D11)',
      version: 'WebGL 1.0 (OpenGL ES 2.0 Chromium)',
      shadingLanguageVersion: 'WebGL GLSL ES 1.0 (OpenGL ES GLSL ES 1.0 Chromium)',
    },
    worker: {
      userAgent,
      platform: 'Win32',
      languages: ['ja-JP', 'ja', 'en'],
      timezone: 'Asia/Tokyo',
      hardwareConcurrency: 16,
      deviceMemory: 32,
      webGlRenderer: 'ANGLE (NVIDIA, NVIDIA GeForce RTX 4070 (0x00002786) Direct3D11 vs_5_0 ps_5_0, D3D11)',
    },
  }
  for (const [name, value] of Object.entries(other)) components[name] = { value }
  const response = await fetch(`${server.url}/v1/identify?key=${server.keys.public}`, {
    method: 'POST',
    headers: { 'Content-Type': 'text/plain', 'User-Agent': userAgent },
    body: JSON.stringify({ ...first.body, nonce: 'other-hardware-000001', storageToken: null, components }),
  })
  const answer = (await response.json()) as Record<string, unknown>
  t.equal(response.status, 200)
  t.equal(answer.visitorFound, false)
  t.not(answer.visitorId, first.visitorId)
})

t.test('an automated browser is detected as a bot, for the secret key only', async (t) => {
  const { status, event } = await readEvent(first.requestId)
  t.equal(status, 200)
  t.equal(event.visitorId, first.visitorId)
  t.equal(event.signals.bot.detected, true)
  const refused = await fetch(`${server.url}/v1/events/${first.requestId}`, {
    headers: { Authorization: `Bearer ${server.keys.public}` },
  })
  t.equal(refused.status, 403)
})
