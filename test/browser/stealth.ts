// What tools that hide automation do to a page before its own scripts run, written out: values replaced through proxies
// over the native accessors, plus a toString that prints every proxy as native.

import type { BrowserContext, Page } from 'playwright-core'

/** What a driven Chromium is to be taken for: the system in the User-Agent, in navigator and in client hints. */
type Disguise = { system: string; platform: string; hintPlatform: string }

const WINDOWS: Disguise = { system: 'Windows NT 10.0; Win64; x64', platform: 'Win32', hintPlatform: 'Windows' }
const LINUX: Disguise = { system: 'X11; Linux x86_64', platform: 'Linux x86_64', hintPlatform: 'Linux' }

/** Makes header, navigator and client hints of a page agree on a genuine version and another system. */
async function disguiseAs(disguise: Disguise, page: Page, context: BrowserContext): Promise<void> {
  const session = await context.newCDPSession(page)
  const { product } = await session.send('Browser.getVersion')
  const version = product.split('/')[1] ?? ''
  const major = version.split('.')[0] ?? ''
  await session.send('Emulation.setUserAgentOverride', {
    userAgent: `Mozilla/5.0 (${disguise.system}) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/${major}.0.0.0 Safari/537.36`,
    platform: disguise.platform,
    acceptLanguage: 'en-US,en',
    userAgentMetadata: {
      brands: [
        { brand: 'Chromium', version: major },
        { brand: 'Not:A-Brand', version: '8' },
      ],
      fullVersionList: [{ brand: 'Chromium', version }],
      platform: disguise.hintPlatform,
      platformVersion: '10.0.0',
      architecture: 'x86',
      model: '',
      mobile: false,
    },
  })
}

/** Runs before the page's scripts. Self-contained: it travels as text. */
const stealthScript = `(() => {
  const print = Function.prototype.toString
  const originals = new WeakMap()
  const disguise = (native, handler) => {
    const proxy = new Proxy(native, handler)
    originals.set(proxy, native)
    return proxy
  }
  Function.prototype.toString = disguise(print, {
    apply: (target, self, args) => Reflect.apply(target, originals.get(self) ?? self, args),
  })
  const answer = (prototype, member, value) => {
    const descriptor = Object.getOwnPropertyDescriptor(prototype, member)
    if (!descriptor) return
    Object.defineProperty(prototype, member, {
      ...descriptor,
      get: disguise(descriptor.get, { apply: (target, self, args) => (Reflect.apply(target, self, args), value) }),
    })
  }
  answer(Navigator.prototype, 'webdriver', false)
  answer(Navigator.prototype, 'hardwareConcurrency', 4)
  answer(Navigator.prototype, 'languages', Object.freeze(['en-US', 'en']))
  answer(Navigator.prototype, 'vendor', 'Google Inc.')
  for (const type of [WebGLRenderingContext, WebGL2RenderingContext]) {
    type.prototype.getParameter = disguise(type.prototype.getParameter, {
      apply(target, self, args) {
        if (args[0] === 37445) return 'Intel Inc.'
        if (args[0] === 37446) return 'Intel Iris OpenGL Engine'
        return Reflect.apply(target, self, args)
      },
    })
  }
  Permissions.prototype.query = disguise(Permissions.prototype.query, {
    apply: (target, self, args) =>
      args[0]?.name === 'notifications' && Notification.permission === 'denied'
        ? Promise.resolve({ state: 'denied', onchange: null })
        : Reflect.apply(target, self, args),
  })
  if (!('chrome' in window)) Object.defineProperty(window, 'chrome', { value: {}, writable: true })
  window.chrome.runtime ??= { connect() {}, sendMessage() {} }
  if (navigator.plugins.length === 0) answer(Navigator.prototype, 'plugins', [{ name: 'PDF Viewer' }])
  if (outerHeight <= innerHeight) {
    Object.defineProperty(window, 'outerHeight', { get: () => innerHeight + 85 })
    Object.defineProperty(window, 'outerWidth', { get: () => innerWidth })
  }
})()`

/** Drives a page as stealth tools do: what gives a program away is hidden, and the system is another one. */
export const stealth = async (page: Page, context: BrowserContext) => {
  await page.addInitScript(stealthScript)
  await disguiseAs(WINDOWS, page, context)
}

/** Disguises a headless browser as one with a window, on Linux. */
export const quietly = (page: Page, context: BrowserContext) => disguiseAs(LINUX, page, context)
