// The devices of the made-up visitors that `fingerpost seed --demo` sends: what a page on each would read, as consistent as on a real
// one, so that the service recognises and judges them by itself.

import type { IdentifyBody } from '../domain/identify.ts'
import type { SeedRandom } from './seed-random.ts'

export interface DemoDevice {
  readonly userAgent: string
  readonly headers: Readonly<Record<string, string>>
  /** Values of components by name. */
  readonly values: Readonly<Record<string, unknown>>
}

/** Where somebody lives, as far as a browser tells. */
export interface DemoHome {
  readonly country: string
  readonly language: string
  readonly timezone: string
}

export const DEMO_HOMES: readonly DemoHome[] = [
  { country: 'DE', language: 'de-DE', timezone: 'Europe/Berlin' },
  { country: 'CZ', language: 'cs-CZ', timezone: 'Europe/Prague' },
  { country: 'GB', language: 'en-GB', timezone: 'Europe/London' },
  { country: 'FR', language: 'fr-FR', timezone: 'Europe/Paris' },
  { country: 'US', language: 'en-US', timezone: 'America/New_York' },
  { country: 'JP', language: 'ja-JP', timezone: 'Asia/Tokyo' },
]

const CHROME_VERSION = '147'
const WINDOWS_CHROME = `Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/${CHROME_VERSION}.0.0.0 Safari/537.36`
const LINUX_FIREFOX = 'Mozilla/5.0 (X11; Linux x86_64; rv:150.0) Gecko/20100101 Firefox/150.0'
const IPHONE_SAFARI =
  'Mozilla/5.0 (iPhone; CPU iPhone OS 18_6 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.6 Mobile/15E148 Safari/604.1'
const ANDROID_CHROME = `Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/${CHROME_VERSION}.0.0.0 Mobile Safari/537.36`
const HEADLESS_CHROME = `Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) HeadlessChrome/${CHROME_VERSION}.0.0.0 Safari/537.36`

const PC_GPUS = [
  'NVIDIA, NVIDIA GeForce RTX 3060',
  'NVIDIA, NVIDIA GeForce RTX 4070',
  'Intel, Intel(R) UHD Graphics 770',
]
const PC_SCREENS = [
  [1920, 1080],
  [2560, 1440],
  [1536, 864],
] as const
const PHONE_SCREENS = [
  [390, 844],
  [393, 852],
  [430, 932],
] as const
const ANDROID_GPUS = ['Adreno (TM) 740', 'Mali-G78', 'Adreno (TM) 618']
const PC_FONTS = ['Agency FB', 'Calibri', 'Century', 'Gill Sans', 'Haettenschweiler', 'Marlett', 'Pristina']
const HEX = '0123456789abcdef'

const hex = (random: SeedRandom): string => Array.from({ length: 8 }, () => random.pick([...HEX])).join('')
const touch = (points: number) => ({ maxTouchPoints: points, touchEvent: points > 0, touchStart: points > 0 })

function shared(random: SeedRandom, userAgent: string, { language, timezone }: DemoHome) {
  return {
    userAgent,
    languages: [[language]],
    timezone,
    colorDepth: 24,
    canvas: { winding: true, geometry: hex(random), text: hex(random), stable: true },
    canvasNoise: 0,
    audio: 124 + Math.round(random.float() * 1e9) / 1e12,
    lies: [],
    permissions: { notifications: 'prompt', notificationPermission: 'default' },
  }
}

const headersOf = (userAgent: string, { language }: DemoHome, more: Readonly<Record<string, string>> = {}) => ({
  'user-agent': userAgent,
  accept: '*/*',
  'accept-language': `${language},en;q=0.9`,
  ...more,
})

function hinted(platform: string, mobile: boolean) {
  const brand = `"Chromium";v="${CHROME_VERSION}", "Google Chrome";v="${CHROME_VERSION}"`
  const fullVersionList = [{ brand: 'Chromium', version: `${CHROME_VERSION}.0.7000.1` }]
  return {
    headers: { 'sec-ch-ua': brand, 'sec-ch-ua-platform': `"${platform}"`, 'sec-ch-ua-mobile': mobile ? '?1' : '?0' },
    values: { vendor: 'Google Inc.', evalLength: 33, incognito: { isPrivate: false, browserName: 'Chrome' } },
    data: { platform, platformVersion: '15.0.0', mobile, fullVersionList },
  }
}

function windowsPc(random: SeedRandom, home: DemoHome): DemoDevice {
  const { headers, values, data } = hinted('Windows', false)
  const [width, height] = random.pick(PC_SCREENS)
  const gpu = `ANGLE (${random.pick(PC_GPUS)} (0x0000${hex(random).slice(0, 4)}) Direct3D11 vs_5_0 ps_5_0, D3D11)`
  const hardwareConcurrency = random.pick([4, 8, 12, 16])
  const [deviceMemory, platform] = [8, 'Win32']
  const worker = { userAgent: WINDOWS_CHROME, platform, languages: [home.language], timezone: home.timezone }
  return {
    userAgent: WINDOWS_CHROME,
    headers: headersOf(WINDOWS_CHROME, home, headers),
    values: {
      ...shared(random, WINDOWS_CHROME, home),
      ...values,
      ...{ platform, hardwareConcurrency, deviceMemory, touchSupport: touch(0) },
      worker: { ...worker, hardwareConcurrency, deviceMemory, webGlRenderer: gpu },
      userAgentData: { ...data, model: '', architecture: 'x86', bitness: '64' },
      screenResolution: [width, height],
      window: { inner: [width - 20, height - 120], outer: [width, height - 40] },
      devicePixelRatio: 1,
      fonts: PC_FONTS.filter(() => random.chance(0.7)),
      webGlBasics: { vendor: 'WebKit', renderer: 'WebKit WebGL', rendererUnmasked: gpu },
    },
  }
}

function linuxPc(random: SeedRandom, home: DemoHome): DemoDevice {
  return {
    userAgent: LINUX_FIREFOX,
    headers: headersOf(LINUX_FIREFOX, home),
    values: {
      ...shared(random, LINUX_FIREFOX, home),
      ...{ platform: 'Linux x86_64', vendor: '', userAgentData: null, evalLength: 37, touchSupport: touch(0) },
      hardwareConcurrency: random.pick([4, 8, 16]),
      screenResolution: [1920, 1080],
      devicePixelRatio: 1,
      fonts: ['Bitstream Vera Sans Mono', 'DejaVu Sans', `Font ${hex(random)}`],
      webGlBasics: { renderer: 'Radeon R9 200 Series, or similar', rendererUnmasked: '' },
      incognito: { isPrivate: false, browserName: 'Firefox' },
    },
  }
}

function iphone(random: SeedRandom, home: DemoHome): DemoDevice {
  return {
    userAgent: IPHONE_SAFARI,
    headers: headersOf(IPHONE_SAFARI, home),
    values: {
      ...shared(random, IPHONE_SAFARI, home),
      ...{ platform: 'iPhone', vendor: 'Apple Computer, Inc.', userAgentData: null, evalLength: 37 },
      ...{ hardwareConcurrency: 4, touchSupport: touch(5), devicePixelRatio: 3 },
      screenResolution: random.pick(PHONE_SCREENS),
      fonts: ['Gill Sans', 'Helvetica Neue', 'Menlo'],
      webGlBasics: { renderer: 'Apple GPU', rendererUnmasked: 'Apple GPU' },
      incognito: { isPrivate: false, browserName: 'Safari' },
    },
  }
}

function android(random: SeedRandom, home: DemoHome): DemoDevice {
  const { headers, values, data } = hinted('Android', true)
  const gpu = random.pick(ANDROID_GPUS)
  return {
    userAgent: ANDROID_CHROME,
    headers: headersOf(ANDROID_CHROME, home, headers),
    values: {
      ...shared(random, ANDROID_CHROME, home),
      ...values,
      ...{ platform: 'Linux armv81', hardwareConcurrency: 8, deviceMemory: 8, touchSupport: touch(5) },
      userAgentData: {
        ...data,
        model: random.pick(['Pixel 8', 'SM-S911B', 'SM-A546B']),
        architecture: '',
        bitness: '',
      },
      screenResolution: [412, 915],
      devicePixelRatio: 2.625,
      fonts: ['Roboto', 'Noto Sans'],
      webGlBasics: { vendor: 'WebKit', renderer: 'WebKit WebGL', rendererUnmasked: gpu },
    },
  }
}

const KINDS = [windowsPc, windowsPc, windowsPc, iphone, iphone, android, android, linuxPc]

export const makeDemoDevice = (random: SeedRandom, home: DemoHome): DemoDevice => random.pick(KINDS)(random, home)

/** A program that drives a browser without a window, on a machine without a graphics card. */
export function makeDemoBot(random: SeedRandom): DemoDevice {
  const home = { country: 'US', language: 'en-US', timezone: 'UTC' }
  const renderer = 'ANGLE (Google, Vulkan 1.3.0 (SwiftShader Device (Subzero)), SwiftShader driver)'
  return {
    userAgent: HEADLESS_CHROME,
    headers: headersOf(HEADLESS_CHROME, home),
    values: {
      ...shared(random, HEADLESS_CHROME, home),
      ...{ platform: 'Linux x86_64', vendor: 'Google Inc.', evalLength: 33, touchSupport: touch(0) },
      ...{ hardwareConcurrency: 2, deviceMemory: 8, devicePixelRatio: 1, screenResolution: [800, 600], fonts: [] },
      webGlBasics: { vendor: 'WebKit', renderer: 'WebKit WebGL', rendererUnmasked: renderer },
    },
  }
}

/** As a page would send it; `values` replace what the device has. */
export function pageOf(
  { userAgent, headers, values }: DemoDevice,
  replaced: Readonly<Record<string, unknown>>,
): Pick<IdentifyBody, 'userAgent' | 'headers' | 'components'> {
  const components = Object.entries({ ...values, ...replaced }).map(([name, value]) => [name, { value, ms: 1 }])
  return { userAgent, headers: { ...headers }, components: Object.fromEntries(components) }
}
