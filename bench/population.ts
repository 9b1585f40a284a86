// What the benchmarks of decisions have in common: devices (distinct, plausible, 2.6 KB each, the same for the same seed), how many
// of them come without a token, and the rules they meet.

import { SCREENS } from '../test/helpers/bodies.ts'
import { rng } from '../test/helpers/rng.ts'

export interface Device {
  /** The identify body without nonce and storageToken. */
  readonly body: Record<string, unknown>
  readonly userAgent: string
  readonly ip: string
}

const GPUS = Array.from(
  { length: 60 },
  (_, i) => `ANGLE (Vendor ${i % 3}, Graphics Adapter ${1000 + i * 10} Direct3D11 vs_5_0 ps_5_0, D3D11)`,
)
const ALL_SCREENS = [...SCREENS, [1680, 1050]]
const ZONES = ['Europe/Prague', 'Europe/Berlin', 'America/New_York', 'America/Chicago', 'Asia/Tokyo', 'Europe/London']
const LANGUAGES = ['cs-CZ', 'de-DE', 'en-US', 'en-GB', 'ja-JP', 'fr-FR']
const FONTS = [
  'Calibri',
  'Cambria',
  'Consolas',
  'Franklin Gothic',
  'Gill Sans',
  'Helvetica Neue',
  'Lucida Bright',
  'Menlo',
  'MS UI Gothic',
  'Pristina',
  'Segoe UI Light',
  'SimHei',
  'Tahoma',
  'Univers CE 55 Medium',
]
const EXTENSIONS = [
  'ANGLE_instanced_arrays',
  'EXT_blend_minmax',
  'EXT_frag_depth',
  'OES_texture_float',
  'WEBGL_lose_context',
]

export const TOKENLESS_SHARE = 0.2

/** A live rule of three conditions, as it is created. */
export const makeRule = (i: number) => ({
  name: `rule ${i}`,
  status: 'live',
  action: { verdict: i % 3 === 0 ? 'challenge' : 'block' },
  conditions: {
    operator: 'AND',
    rules: [
      { field: 'scores.suspect', operator: 'gte', value: 40 + (i % 50) },
      { field: 'device.platform', operator: 'equals', value: i % 2 ? 'Windows' : 'Linux' },
      { field: 'tag.action', operator: 'in', value: ['login', 'signup', `other${i}`] },
    ],
  },
})

export function makeDevice(seed: number): Device {
  const r = rng(seed)
  const hex = (n: number) => Array.from({ length: n }, () => r.int(16).toString(16)).join('')
  const major = 140 + r.int(12)
  const userAgent = `Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/${major}.0.0.0 Safari/537.36`
  const language = r.pick(LANGUAGES)
  const cores = r.pick([4, 8, 12, 16])
  const memory = r.pick([4, 8, 16])
  const timezone = r.pick(ZONES)
  const renderer = r.pick(GPUS)
  const value = (v: unknown) => ({ value: v, ms: r.int(40) })
  return {
    userAgent,
    ip: `${20 + r.int(80)}.${r.int(250)}.${r.int(250)}.${1 + r.int(250)}`,
    body: {
      sdk: { name: 'js', version: '1.0.0' },
      linkedId: `user_${r.int(1_000_000)}`,
      tag: { action: r.pick(['login', 'checkout', 'signup']) },
      url: 'https://shop.example/login',
      components: {
        userAgent: value(userAgent),
        userAgentData: value({
          platform: 'Windows',
          platformVersion: '15.0.0',
          model: '',
          architecture: 'x86',
          bitness: '64',
          mobile: false,
          fullVersionList: [{ brand: 'Chromium', version: `${major}.0.7390.54` }],
        }),
        platform: value('Win32'),
        vendor: value('Google Inc.'),
        languages: value([[language]]),
        timezone: value(timezone),
        hardwareConcurrency: value(cores),
        deviceMemory: value(memory),
        screenResolution: value(r.pick(ALL_SCREENS)),
        devicePixelRatio: value(r.pick([1, 1.25, 1.5, 2])),
        colorDepth: value(24),
        window: value({ inner: [1280, 720], outer: [1280, 800] }),
        touchSupport: value({ maxTouchPoints: 0, touchEvent: false, touchStart: false }),
        canvas: value({ winding: true, geometry: hex(32), text: hex(32), stable: true }),
        canvasNoise: value(0),
        audio: value(124 + r.float() / 10),
        webGlBasics: value({
          version: 'WebGL 1.0',
          vendor: 'WebKit',
          renderer: 'WebKit WebGL',
          vendorUnmasked: 'Google Inc.',
          rendererUnmasked: renderer,
          shadingLanguageVersion: 'WebGL GLSL ES 1.0',
        }),
        webGlExtensions: value({ extensions: EXTENSIONS, parametersHash: hex(32) }),
        fonts: value(FONTS.filter(() => r.chance(0.6))),
        storage: value({ quota: 10_737_418_240, cookies: true, localStorage: true, indexedDB: true }),
        permissions: value({ notifications: 'prompt', notificationPermission: 'default' }),
        incognito: value({ isPrivate: false, browserName: 'Chrome' }),
        worker: value({
          userAgent,
          platform: 'Win32',
          languages: [language],
          timezone,
          hardwareConcurrency: cores,
          deviceMemory: memory,
          webGlRenderer: renderer,
        }),
        fontPreferences: value({
          default: 149.3,
          apple: 149.3,
          serif: 149.3,
          sans: 144.1,
          mono: 121.5,
          min: 9.3,
          system: 147.8,
        }),
        contrast: value(r.chance(0.03) ? 1 : 0),
        reducedMotion: value(r.chance(0.06)),
        reducedTransparency: value(false),
        forcedColors: value(false),
        monochrome: value(0),
        pdfViewerEnabled: value(true),
        colorGamut: value(r.pick(['srgb', 'p3'])),
        hdr: value(r.chance(0.2)),
        screenFrame: value([0, 0, r.pick([40, 50]), 0]),
        voices: value(r.pick([3, 22, 25])),
        mediaDevices: value({ audioinput: r.int(3), audiooutput: 1 + r.int(3), videoinput: r.int(2) }),
        dateTimeLocale: value(language),
        plugins: value([{ name: 'PDF Viewer' }]),
        lies: value([]),
        evalLength: value(33),
      },
      automation: { webdriver: false, detectors: { detectWebDriver: { bot: false }, detectUserAgent: { bot: false } } },
    },
  }
}
