// What User-Agent texts of real browsers, crawlers and programs are read as.

import t from 'tap'
import { deviceOf, readAttributes } from '../../src/identity/attributes.ts'
import { parseGpu } from '../../src/identity/gpu.ts'
import { openParsers } from '../../src/identity/parsers.ts'
import { SCREEN } from '../../src/identity/profile.ts'
import { parseUserAgent } from '../../src/identity/user-agent.ts'
import { componentsOf } from '../helpers/recognition.ts'
import { rng, testSeed } from '../helpers/rng.ts'

const KIT = 'AppleWebKit/537.36 (KHTML, like Gecko)'
const WIN = 'Mozilla/5.0 (Windows NT 10.0; Win64; x64)'
const MAC = 'Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7)'
const X11 = 'Mozilla/5.0 (X11; Linux x86_64)'
const DROID = 'Mozilla/5.0 (Linux; Android 10; K)'
const PHONE = 'Mozilla/5.0 (iPhone; CPU iPhone OS 18_6 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko)'
const PAD = 'Mozilla/5.0 (iPad; CPU OS 17_5_1 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko)'

// text, system, version of it, display name, kind of device, engine
type Row = readonly [string, string, string | null, string, string, string]
const BROWSERS: readonly Row[] = [
  [`${WIN} ${KIT} Chrome/147.0.0.0 Safari/537.36`, 'Windows', '10', 'Chrome 147', 'desktop', 'Blink'],
  [`${MAC} ${KIT} Chrome/147.0.0.0 Safari/537.36`, 'macOS', '10.15.7', 'Chrome 147', 'desktop', 'Blink'],
  [`${X11} ${KIT} Chrome/147.0.0.0 Safari/537.36`, 'Linux', null, 'Chrome 147', 'desktop', 'Blink'],
  [`${X11} ${KIT} HeadlessChrome/147.0.0.0 Safari/537.36`, 'Linux', null, 'Chrome 147', 'desktop', 'Blink'],
  [
    `${X11} ${KIT} Ubuntu Chromium/120.0.0.0 Chrome/120.0.0.0 Safari/537.36`,
    'Linux',
    null,
    'Chrome 120',
    'desktop',
    'Blink',
  ],
  [
    `Mozilla/5.0 (X11; CrOS x86_64 14541.0.0) ${KIT} Chrome/147.0.0.0 Safari/537.36`,
    'ChromeOS',
    '14541.0.0',
    'Chrome 147',
    'desktop',
    'Blink',
  ],
  [`${WIN} ${KIT} Chrome/147.0.0.0 Safari/537.36 Edg/147.0.3485.54`, 'Windows', '10', 'Edge 147', 'desktop', 'Blink'],
  [`${WIN} ${KIT} Chrome/64.0.3282.140 Safari/537.36 Edge/18.17763`, 'Windows', '10', 'Edge 18', 'desktop', 'other'],
  [
    `${DROID} ${KIT} Chrome/147.0.0.0 Mobile Safari/537.36 EdgA/147.0.0.0`,
    'Android',
    '10',
    'Edge 147',
    'mobile',
    'Blink',
  ],
  [
    `${PHONE} Version/18.0 EdgiOS/147.0.3485.54 Mobile/15E148 Safari/605.1.15`,
    'iOS',
    '18.6',
    'Edge 147',
    'mobile',
    'WebKit',
  ],
  [`${WIN} ${KIT} Chrome/146.0.0.0 Safari/537.36 OPR/131.0.0.0`, 'Windows', '10', 'Opera 131', 'desktop', 'Blink'],
  [
    `${DROID} ${KIT} Chrome/146.0.0.0 Mobile Safari/537.36 OPR/90.0.0.0`,
    'Android',
    '10',
    'Opera 90',
    'mobile',
    'Blink',
  ],
  [`${PHONE} Version/18.6 Mobile/15E148 Safari/604.1 OPT/6.1.0`, 'iOS', '18.6', 'Opera 6', 'mobile', 'WebKit'],
  ['Opera/9.80 (Windows NT 6.1; WOW64) Presto/2.12.388 Version/12.18', 'Windows', '7', 'Opera 12', 'desktop', 'other'],
  [
    `${DROID} ${KIT} SamsungBrowser/28.0 Chrome/130.0.0.0 Mobile Safari/537.36`,
    'Android',
    '10',
    'Samsung Internet 28',
    'mobile',
    'Blink',
  ],
  [`${WIN} ${KIT} Chrome/146.0.0.0 YaBrowser/26.4.0.0 Safari/537.36`, 'Windows', '10', 'Yandex 26', 'desktop', 'Blink'],
  [`${X11} ${KIT} Chrome/146.0.0.0 Safari/537.36 Vivaldi/7.9.3`, 'Linux', null, 'Vivaldi 7', 'desktop', 'Blink'],
  [
    `${MAC} AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.6 Safari/605.1.15`,
    'macOS',
    '10.15.7',
    'Safari 18',
    'desktop',
    'WebKit',
  ],
  [`${PHONE} Version/18.6 Mobile/15E148 Safari/604.1`, 'iOS', '18.6', 'Safari 18', 'mobile', 'WebKit'],
  [`${PAD} Version/17.5 Mobile/15E148 Safari/604.1`, 'iOS', '17.5.1', 'Safari 17', 'tablet', 'WebKit'],
  [`${PHONE} CriOS/147.0.7390.41 Mobile/15E148 Safari/604.1`, 'iOS', '18.6', 'Chrome 147', 'mobile', 'WebKit'],
  [`${PHONE} FxiOS/150.0 Mobile/15E148 Safari/605.1.15`, 'iOS', '18.6', 'Firefox 150', 'mobile', 'WebKit'],
  [`${PHONE} GSA/390.0.826233 Mobile/15E148 Safari/604.1`, 'iOS', '18.6', 'Google App 390', 'mobile', 'WebKit'],
  [
    `${PHONE} Version/18.6 Mobile/15E148 DuckDuckGo/7 Safari/605.1.15`,
    'iOS',
    '18.6',
    'DuckDuckGo 7',
    'mobile',
    'WebKit',
  ],
  [`${PHONE} Mobile/15E148`, 'iOS', '18.6', 'iOS WebView', 'mobile', 'WebKit'],
  [`${PHONE} Mobile/15E148 [FBAN/FBIOS;FBAV/500.0.0.40.109;FBBV/1]`, 'iOS', '18.6', 'Facebook 500', 'mobile', 'WebKit'],
  [
    `${PHONE} Mobile/15E148 Instagram 390.0.0.28.85 (iPhone14,5; iOS 18_6)`,
    'iOS',
    '18.6',
    'Instagram 390',
    'mobile',
    'WebKit',
  ],
  [
    `${WIN.replace(')', '; rv:150.0)')} Gecko/20100101 Firefox/150.0`,
    'Windows',
    '10',
    'Firefox 150',
    'desktop',
    'Gecko',
  ],
  [
    'Mozilla/5.0 (Macintosh; Intel Mac OS X 10.15; rv:150.0) Gecko/20100101 Firefox/150.0',
    'macOS',
    '10.15',
    'Firefox 150',
    'desktop',
    'Gecko',
  ],
  [
    'Mozilla/5.0 (X11; Ubuntu; Linux x86_64; rv:150.0) Gecko/20100101 Firefox/150.0',
    'Linux',
    null,
    'Firefox 150',
    'desktop',
    'Gecko',
  ],
  [
    'Mozilla/5.0 (Android 15; Mobile; rv:150.0) Gecko/150.0 Firefox/150.0',
    'Android',
    '15',
    'Firefox 150',
    'mobile',
    'Gecko',
  ],
  [
    'Mozilla/5.0 (Android 13; Tablet; rv:150.0) Gecko/150.0 Firefox/150.0',
    'Android',
    '13',
    'Firefox 150',
    'tablet',
    'Gecko',
  ],
  [`${DROID} ${KIT} Chrome/147.0.0.0 Mobile Safari/537.36`, 'Android', '10', 'Chrome 147', 'mobile', 'Blink'],
  [`${DROID} ${KIT} Chrome/147.0.0.0 Safari/537.36`, 'Android', '10', 'Chrome 147', 'tablet', 'Blink'],
  [
    `Mozilla/5.0 (Linux; Android 14; SM-S918B Build/UP1A.231005.007; wv) ${KIT} Version/4.0 Chrome/147.0.7390.43 Mobile Safari/537.36`,
    'Android',
    '14',
    'Android WebView 147',
    'mobile',
    'Blink',
  ],
  [
    'Mozilla/5.0 (Linux; U; Android 4.0.3; de-ch; HTC Sensation Build/IML74K) AppleWebKit/534.30 (KHTML, like Gecko) Version/4.0 Mobile Safari/534.30',
    'Android',
    '4.0.3',
    'Android Browser 4',
    'mobile',
    'WebKit',
  ],
  [
    `Mozilla/5.0 (Linux; Android 9; AFTMM Build/PS7633) ${KIT} Silk/120.4.1 like Chrome/120.0.6099.193 Safari/537.36`,
    'Android',
    '9',
    'Silk 120',
    'other',
    'Blink',
  ],
  [
    `Mozilla/5.0 (Linux; Android 12; BRAVIA 4K VH2) ${KIT} Chrome/120.0.0.0 Safari/537.36`,
    'Android',
    '12',
    'Chrome 120',
    'other',
    'Blink',
  ],
  [
    `Mozilla/5.0 (SMART-TV; LINUX; Tizen 7.0) ${KIT} 94.0.4606.31/7.0 TV Safari/537.36`,
    'other',
    null,
    'other',
    'other',
    'other',
  ],
  [
    'Mozilla/5.0 (Windows NT 10.0; WOW64; Trident/7.0; rv:11.0) like Gecko',
    'Windows',
    '10',
    'Internet Explorer 11',
    'desktop',
    'other',
  ],
  [
    'Mozilla/5.0 (Windows NT 6.1; Win64; x64; rv:115.0) Gecko/20100101 Firefox/115.0',
    'Windows',
    '7',
    'Firefox 115',
    'desktop',
    'Gecko',
  ],
  [
    `${WIN} ${KIT} MyShop/3.1.0 Chrome/138.0.0.0 Electron/37.2.0 Safari/537.36`,
    'Windows',
    '10',
    'Electron 37',
    'desktop',
    'Blink',
  ],
  [
    'Mozilla/5.0 (Windows Phone 10.0; Android 6.0.1; Microsoft; Lumia 950) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/52.0.2743.116 Mobile Safari/537.36 Edge/15.15063',
    'other',
    null,
    'Edge 15',
    'mobile',
    'other',
  ],
  [
    'Mozilla/5.0 (X11; FreeBSD amd64; rv:150.0) Gecko/20100101 Firefox/150.0',
    'other',
    null,
    'Firefox 150',
    'desktop',
    'Gecko',
  ],
]

const PROGRAMS: readonly (readonly [text: string, display: string])[] = [
  ['curl/8.5.0', 'curl 8'],
  ['python-requests/2.32.3', 'python-requests 2'],
  ['Wget/1.21.4', 'Wget 1'],
  ['Go-http-client/2.0', 'Go-http-client 2'],
  ['PostmanRuntime/7.43.0', 'PostmanRuntime 7'],
  ['Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)', 'Googlebot 2'],
  [
    `${DROID} ${KIT} Chrome/147.0.0.0 Mobile Safari/537.36 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)`,
    'Googlebot 2',
  ],
  ['Mozilla/5.0 (compatible; bingbot/2.0; +http://www.bing.com/bingbot.htm)', 'bingbot 2'],
  ['facebookexternalhit/1.1 (+http://www.facebook.com/externalhit_uatext.php)', 'facebookexternalhit 1'],
  ['Mozilla/5.0 (compatible; YandexBot/3.0; +http://yandex.com/bots)', 'YandexBot 3'],
]

t.test('browsers are read as what they are', async (t) => {
  for (const [text, os, osVersion, display, type, engine] of BROWSERS) {
    t.match(parseUserAgent(text), { os, osVersion, display, type, engine }, text)
    t.equal(parseUserAgent(text).bot, text.includes('Headless'), `bot or not: ${text}`)
  }
})

t.test('crawlers and programs are bots with a name', async (t) => {
  for (const [text, display] of PROGRAMS) t.match(parseUserAgent(text), { bot: true, display, headless: false }, text)
})

t.test('headless is said and the model is read where the text still has one', async (t) => {
  t.equal(parseUserAgent(`${X11} ${KIT} HeadlessChrome/147.0.0.0 Safari/537.36`).headless, true)
  t.equal(parseUserAgent(`Mozilla/5.0 (Linux; Android 14; SM-S918B Build/U; wv) ${KIT} Chrome/1.0`).model, 'SM-S918B')
  t.equal(parseUserAgent(`${DROID} ${KIT} Chrome/147.0.0.0 Mobile Safari/537.36`).model, null)
  t.match(parseUserAgent(''), { os: 'other', display: 'other', bot: false })
})

t.test('an iPad that calls itself a Mac is an iPad; a Mac is not', async (t) => {
  const ua = `${MAC} AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.6 Safari/605.1.15`
  const withTouch = (maxTouchPoints: number) =>
    readAttributes({ components: componentsOf({ touchSupport: { maxTouchPoints } }) }, {}, ua)
  t.match(withTouch(5), { os: 'iOS', deviceType: 'tablet' })
  t.match(withTouch(0), { os: 'macOS', deviceType: 'desktop' })
})

t.test('client hints tell Windows 11, the true macOS and the phone model', async (t) => {
  const hinted = (ua: string, userAgentData: unknown) =>
    readAttributes({ components: componentsOf({ userAgentData }) }, {}, ua)
  t.equal(hinted(BROWSERS[0]?.[0] as string, { platform: 'Windows', platformVersion: '15.0.0' }).osVersion, '11')
  t.equal(hinted(BROWSERS[0]?.[0] as string, { platform: 'Windows', platformVersion: '10.0.0' }).osVersion, '10')
  t.equal(hinted(BROWSERS[1]?.[0] as string, { platform: 'macOS', platformVersion: '15.3.1' }).osVersion, '15.3.1')
  const phone = hinted(`${DROID} ${KIT} Chrome/147.0.0.0 Mobile Safari/537.36`, {
    model: 'Pixel 9',
    platformVersion: '16.0.0',
  })
  t.match(phone, { model: 'Pixel 9', osVersion: '16.0.0' })
})

t.test('one chip has one name under every driver and browser', async (t) => {
  const same = [
    'ANGLE (NVIDIA, NVIDIA GeForce RTX 3060 (0x00002503) Direct3D11 vs_5_0 ps_5_0, D3D11)',
    'ANGLE (NVIDIA, NVIDIA GeForce RTX 3060 Direct3D11 vs_5_0 ps_5_0, D3D11-31.0.15.1659)',
    'NVIDIA GeForce RTX 3060, or similar',
  ]
  for (const text of same) t.match(parseGpu(text), { name: 'NVIDIA GeForce RTX 3060', class: 'nvidia' }, text)
  t.match(parseGpu('ANGLE (Apple, ANGLE Metal Renderer: Apple M1, Unspecified Version)'), {
    name: 'Apple M1',
    class: 'apple',
    api: 'metal',
  })
  t.match(parseGpu('ANGLE (Google, Vulkan 1.3.0 (SwiftShader Device (Subzero) (0x0000C0DE)), SwiftShader driver)'), {
    name: 'SwiftShader',
    class: 'software',
  })
  t.match(parseGpu('ANGLE (Intel, Intel(R) UHD Graphics 620 (0x00003EA0) Direct3D11 vs_5_0 ps_5_0, D3D11)'), {
    name: 'Intel UHD Graphics 620',
    class: 'intel',
  })
  t.match(parseGpu('Adreno (TM) 650'), { class: 'qualcomm' })
  t.match(parseGpu('Mali-G78'), { class: 'arm' })
  t.match(parseGpu('Mozilla'), { class: 'masked' })
  t.match(parseGpu('llvmpipe, or similar'), { name: 'llvmpipe', class: 'software' })
  t.match(parseGpu('Intel Iris OpenGL Engine'), { class: 'intel', api: 'mac-opengl' })
})

t.test('what is remembered equals what is read, beyond any bound', async (t) => {
  const seed = testSeed()
  t.comment(`seed ${seed}`)
  const random = rng(seed)
  const parsers = openParsers(8)
  const texts = BROWSERS.map((row) => row[0])
  for (let i = 0; i < 2_000; i++) {
    const text = random.chance(0.1) ? `odd/${random.int(1e6)}` : random.pick(texts)
    if (JSON.stringify(parsers.userAgent(text)) !== JSON.stringify(parseUserAgent(text))) t.fail(text)
  }
  t.equal(parsers.userAgent(texts[0] as string), parsers.userAgent(texts[0] as string), 'the same object')
})

t.test(
  'the screen of an event is as wide and as high as it was reported, and matched however it is held',
  async (t) => {
    const sizes: readonly (readonly [reported: unknown, shown: unknown])[] = [
      [[390, 844], { w: 390, h: 844 }],
      [[844, 390], { w: 844, h: 390 }],
      [[1_080, 1_080], { w: 1_080, h: 1_080 }],
      [[0, 844], null],
      [[40_000, 844], null],
      ['390x844', null],
    ]
    const codes = new Set<number | null | undefined>()
    for (const [value, shown] of sizes) {
      const body = { components: { screenResolution: { value } } }
      const attributes = readAttributes(body, {}, `${PHONE} Version/18.6 Mobile/15E148 Safari/604.1`)
      t.same(deviceOf(attributes, body).screen, shown)
      if (shown !== null) codes.add(attributes.profile.values[SCREEN])
    }
    t.equal(codes.size, 2, 'both ways of holding it are one screen')
  },
)
