// Each check of bot and tampered by itself: the environment that raises it, what it is worth alone and together, and the
// honest environments beside it that must not raise it.

import t from 'tap'
import type { Signals } from '../../src/domain/event.ts'
import { detectSignals } from '../../src/engine/signals/signals.ts'
import { BOT, DETECTED_MIN, TAMPERED } from '../../src/engine/weights.ts'
import type { Evidence } from '../../src/identity/matcher.ts'
import { NO_NETWORK, networkOf } from '../helpers/network.ts'
import {
  ANDROID,
  attributesOf,
  bareLinux,
  CHROME_LINUX,
  CHROME_WINDOWS,
  FIREFOX_LINUX,
  firefox,
  iphone,
  type Request,
  request,
  type Values,
  windowsPc,
} from '../helpers/recognition.ts'

const signalsOf = (r: Request, evidence: readonly Evidence[] = [], network = NO_NETWORK): Signals =>
  detectSignals({ attributes: attributesOf(r), evidence, network })

const SWIFTSHADER = 'ANGLE (Google, Vulkan 1.3.0 (SwiftShader Device (Subzero) (0x0000C0DE)), SwiftShader driver)'
const NO_POINTER = { pointer: { fine: false, coarse: false, hover: false } }
const HEADLESS_STYLE = { systemStyle: { highlight: 'rgb(51, 153, 255)', font: 'sans-serif 14px' } }
const fired = (...names: readonly string[]) => ({
  automation: {
    webdriver: false,
    detectors: Object.fromEntries(names.map((name) => [name, { bot: true, botKind: 'unknown' }])),
  },
})
const electron = { detectors: { detectProcess: { bot: true, botKind: 'electron' } } }

const BOT_ALONE: readonly (readonly [keyof typeof BOT, Request])[] = [
  ['webdriver', windowsPc({}, { automation: { webdriver: true } })],
  ['headless_ua', bareLinux({}, {}, CHROME_LINUX.replace('Chrome/', 'HeadlessChrome/'))],
  ['webdriver_hidden', windowsPc({ lies: ['Navigator.webdriver:missing'] })],
  [
    'permissions_inconsistent',
    windowsPc({ permissions: { notifications: 'prompt', notificationPermission: 'denied' } }),
  ],
  ['permissions_inconsistent', windowsPc({}, fired('detectNotificationPermissions'))],
  ['inspector_attached', windowsPc({ inspected: true })],
  ['plugins_odd', windowsPc({}, fired('detectPluginsLengthInconsistency', 'detectMimeTypesConsistent'))],
  ['engine_odd', windowsPc({}, fired('detectProductSub', 'detectEvalLengthInconsistency'))],
  ['window_without_size', windowsPc({}, fired('detectWindowSize'))],
  ['no_languages', windowsPc({}, fired('detectLanguagesLengthInconsistency'))],
  ['electron', windowsPc({}, { automation: electron })],
  ['no_pointer', windowsPc(NO_POINTER)],
  ['headless_screen', windowsPc({ screenResolution: [800, 600] })],
  ['headers_incomplete', windowsPc({}, {}, { 'accept-language': undefined })],
  ['tampered_environment', windowsPc({ platform: 'MacIntel' })],
  ['software_gpu', bareLinux({ webGlBasics: { rendererUnmasked: SWIFTSHADER } })],
]
const PROOF = new Set<string>(['webdriver', 'headless_ua', 'webdriver_hidden'])

t.test('each witness of automation is named, and only proof is enough alone', async (t) => {
  for (const [method, r] of BOT_ALONE) {
    const { state, methods } = signalsOf(r).bot
    t.ok(methods.includes(method), `${method}: ${methods.join()}`)
    t.equal(state, PROOF.has(method) ? 'detected' : 'clear', method)
  }
})

const WEAK: readonly (keyof typeof BOT)[] = [
  'permissions_inconsistent',
  'inspector_attached',
  'plugins_odd',
  'engine_odd',
  'window_without_size',
  'no_languages',
  'electron',
]
t.test('two weak witnesses are enough, and one in a tampered environment', async (t) => {
  for (const one of WEAK) {
    for (const other of [...WEAK, 'tampered_environment', 'no_pointer'] as const) {
      if (one === other) continue
      t.ok(1 - (1 - BOT[one]) * (1 - BOT[other]) >= DETECTED_MIN.bot, `${one} and ${other}`)
    }
  }
  t.equal(signalsOf(windowsPc({ inspected: true }, fired('detectProductSub'))).bot.state, 'detected')
  t.equal(signalsOf(windowsPc({ inspected: true, platform: 'MacIntel' })).bot.state, 'detected')
})

t.test('detectors that look at one thing are one witness', async (t) => {
  const { bot } = signalsOf(
    windowsPc({}, fired('detectPluginsArray', 'detectPluginsLengthInconsistency', 'detectMimeTypesConsistent')),
  )
  t.match(bot, { state: 'clear', methods: ['plugins_odd'] })
  t.same(
    signalsOf(
      windowsPc(
        { permissions: { notifications: 'prompt', notificationPermission: 'denied' } },
        fired('detectNotificationPermissions'),
      ),
    ).bot.methods,
    ['permissions_inconsistent'],
  )
})

t.test('weak detectors name no kind of bot, and proof does', async (t) => {
  const both = windowsPc(
    { inspected: true },
    {
      automation: {
        webdriver: false,
        detectors: {
          detectProductSub: { bot: true, botKind: 'unknown' },
          detectDistinctiveProperties: { bot: true, botKind: 'selenium' },
        },
      },
    },
  )
  t.match(signalsOf(both), {
    bot: { methods: ['engine_odd', 'botd:detectDistinctiveProperties', 'inspector_attached'] },
    botType: 'selenium',
  })
})

t.test('headless Firefox is told by its looks, a screen reader or a privacy setting is not', async (t) => {
  t.match(signalsOf(firefox({ ...NO_POINTER, ...HEADLESS_STYLE })), {
    bot: { state: 'detected', methods: ['no_pointer', 'headless_style'] },
    botType: 'automation',
  })
  for (const values of [NO_POINTER, HEADLESS_STYLE, { ...HEADLESS_STYLE, pointer: { fine: true, coarse: false } }]) {
    t.equal(signalsOf(firefox(values)).bot.state, 'clear')
  }
  const phone = { userAgent: ANDROID, platform: 'Linux armv81', touchSupport: { maxTouchPoints: 5 }, ...NO_POINTER }
  t.same(signalsOf(request(ANDROID, phone)).bot.methods, [], 'phones may answer as they like')
  t.same(signalsOf(iphone(NO_POINTER)).bot.methods, [])
})

t.test('headless Chromium that only hides its name is told by screen, pointer and drawing together', async (t) => {
  const hidden = bareLinux({
    ...NO_POINTER,
    screenResolution: [800, 600],
    webGlBasics: { rendererUnmasked: SWIFTSHADER },
  })
  t.match(signalsOf(hidden).bot, { state: 'detected', methods: ['headless_screen', 'no_pointer', 'software_gpu'] })
})

t.test('a browser without navigator.webdriver has had it removed, unless its engine never had it', async (t) => {
  const gone = { lies: ['Navigator.webdriver:missing'] }
  t.match(signalsOf(windowsPc(gone)), { bot: { state: 'detected' }, tampered: { methods: [] } })
  t.match(signalsOf(iphone(gone)), { bot: { methods: [] }, tampered: { methods: [] } })
  t.match(signalsOf(iphone({ lies: ['Navigator.webdriver:source'] })).bot.state, 'detected')
})

t.test('a data centre is a reason, never enough', async (t) => {
  const hosted = networkOf({ hosting: 'datacenter_range' })
  t.match(signalsOf(windowsPc(), [], hosted).bot, { state: 'clear', methods: ['datacenter'] })
  t.match(signalsOf(windowsPc({ platform: 'MacIntel' }), [], hosted).bot, {
    state: 'clear',
    methods: ['tampered_environment', 'datacenter'],
  })
})

const GERMAN = { languages: [['de-AT'], ['de-AT', 'de', 'en']] }
const TAMPERED_ALONE: readonly (readonly [keyof typeof TAMPERED, string, Request])[] = [
  ['header_language', 'a header in another language', windowsPc(GERMAN, {}, { 'accept-language': 'zh-CN,zh;q=0.9' })],
  ['os_cpu', 'a Firefox whose processor line names Windows', firefox({ osCpu: 'Windows NT 10.0; Win64; x64' })],
  ['os_cpu', 'a Chrome with what Firefox alone has', windowsPc({ osCpu: 'Windows NT 10.0; Win64; x64' })],
  [
    'hints_missing',
    'hints removed from a secure page',
    windowsPc({ userAgentData: null }, { url: 'https://a.example/' }),
  ],
  [
    'hints_version',
    'other versions in page and header',
    windowsPc({ userAgentData: { platform: 'Windows', fullVersionList: [{ brand: 'Chromium', version: '120.1' }] } }),
  ],
]
for (const [method, name, r] of TAMPERED_ALONE) {
  t.test(`${name} is ${method}`, async (t) => {
    const { state, methods } = signalsOf(r).tampered
    t.same(methods, [method])
    t.equal(state, TAMPERED[method] >= DETECTED_MIN.tampered ? 'detected' : 'clear')
  })
}

const HONEST: readonly (readonly [string, Request])[] = [
  ['regions written in other ways', windowsPc(GERMAN, {}, { 'accept-language': 'DE,en;q=0.5' })],
  ['a language further down the list', windowsPc(GERMAN, {}, { 'accept-language': 'en' })],
  ['a header that asks for anything', windowsPc(GERMAN, {}, { 'accept-language': '*' })],
  ['a page without languages', windowsPc({ languages: [] })],
  ['a plain page, which has no hints', windowsPc({ userAgentData: null }, { url: 'http://shop.example/' })],
  ['a page whose address is not told', windowsPc({ userAgentData: null })],
  ['Firefox on Linux', firefox({ osCpu: 'Linux x86_64' })],
  ['a Firefox that resists fingerprinting', firefox({ osCpu: 'Linux x86_64', canvasNoise: 256, ...HEADLESS_STYLE })],
  [
    'Firefox on Windows',
    {
      ...firefox({
        userAgent: FIREFOX_LINUX.replace('X11; Linux x86_64', 'Windows NT 10.0; Win64; x64'),
        platform: 'Win32',
        osCpu: 'Windows NT 10.0; Win64; x64',
      }),
      userAgent: FIREFOX_LINUX.replace('X11; Linux x86_64', 'Windows NT 10.0; Win64; x64'),
    },
  ],
]
for (const [name, r] of HONEST) {
  t.test(`${name}: not a word of tampering`, async (t) => {
    t.match(signalsOf(r).tampered, { state: 'clear', methods: [] })
    t.match(signalsOf(r).bot, { state: 'clear', methods: [] })
  })
}

t.test('components of the wrong shape say nothing', async (t) => {
  const odd: readonly Values[] = [
    { pointer: 'none', systemStyle: [], inspected: 'yes', osCpu: 5 },
    { pointer: { fine: 0, coarse: null }, systemStyle: { highlight: 1 }, inspected: 1, osCpu: '' },
    { languages: [[['de']], { length: 3 }, 7] },
    { languages: 'de' },
  ]
  for (const values of odd) {
    const { bot, tampered } = signalsOf(windowsPc({ ...values, worker: undefined }))
    t.match(
      [bot, tampered],
      [
        { state: 'clear', methods: [] },
        { state: 'clear', methods: [] },
      ],
    )
  }
  t.equal(attributesOf(request(CHROME_WINDOWS, {}, { url: `http://localhost.evil.example/` })).claims.securePage, false)
  t.equal(attributesOf(request(CHROME_WINDOWS, {}, { url: `http://127.0.0.1:80/` })).claims.securePage, true)
})

t.test('what a detector calls its bot is a text, whatever objects have by that name', async (t) => {
  for (const botKind of ['constructor', '__proto__', 'valueOf', 'phantomjs']) {
    const automation = { detectors: { detectProcess: { bot: true, botKind } } }
    const wanted = /^[a-z_]+$/.test(botKind) ? botKind : 'automation'
    t.equal(signalsOf(windowsPc({}, { automation })).botType, wanted)
  }
})
