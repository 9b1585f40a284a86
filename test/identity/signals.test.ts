// Signals over made-up environments: what raises each, what must not, and what stays undetermined.

import t from 'tap'
import type { SignalName, Signals } from '../../src/domain/event.ts'
import { type ScoreInput, scoreEvent } from '../../src/engine/scores.ts'
import { applyMock, mockSignals } from '../../src/engine/signals/mock.ts'
import { detectSignals } from '../../src/engine/signals/signals.ts'
import { DETECTED_MIN, SUSPECT_CAP } from '../../src/engine/weights.ts'
import type { Evidence } from '../../src/identity/matcher.ts'
import { NO_NETWORK } from '../helpers/network.ts'
import {
  ANDROID,
  attributesOf,
  bareLinux,
  CHROME_LINUX,
  CHROME_WINDOWS,
  FIREFOX_LINUX,
  firefox,
  IPHONE,
  iphone,
  type Request,
  request,
  windowsPc,
} from '../helpers/recognition.ts'

const signalsOf = (r: Request, evidence: readonly Evidence[] = []): Signals =>
  detectSignals({ attributes: attributesOf(r), evidence, network: NO_NETWORK })

const SWIFTSHADER = 'ANGLE (Google, Vulkan 1.3.0 (SwiftShader Device (Subzero) (0x0000C0DE)), SwiftShader driver)'
const HEADLESS = CHROME_LINUX.replace('Chrome/', 'HeadlessChrome/')
const linuxWorker = {
  userAgent: CHROME_LINUX,
  platform: 'Linux x86_64',
  hardwareConcurrency: 2,
  webGlRenderer: SWIFTSHADER,
}

// name, request, signals expected as detected / clear / undetermined
type Row = readonly [string, Request, Partial<Record<SignalName, string>>, string?]
const plain = { bot: 'clear', tampered: 'clear', incognito: 'clear', emulator: 'clear', rootedDevice: 'clear' }

const ENVIRONMENTS: readonly Row[] = [
  ['a desktop Chrome', windowsPc(), { ...plain, vpn: 'undetermined', tor: 'undetermined', proxy: 'undetermined' }],
  [
    'a private window',
    windowsPc({ incognito: { isPrivate: true, browserName: 'Chrome' } }),
    { ...plain, incognito: 'detected' },
  ],
  ['a Chrome without GPU', bareLinux(), plain],
  ['a Chrome on a software GPU', bareLinux({ webGlBasics: { rendererUnmasked: SWIFTSHADER } }), plain],
  ['a Firefox', firefox(), plain],
  [
    'an iPhone',
    iphone(),
    { bot: 'clear', tampered: 'clear', incognito: 'clear', emulator: 'clear', rootedDevice: 'undetermined' },
  ],
  [
    'an iPad that asks for desktop pages',
    iphone({ userAgent: MAC_SAFARI(), platform: 'MacIntel' }, MAC_SAFARI()),
    { bot: 'clear', tampered: 'clear', emulator: 'clear' },
  ],
  [
    'a Firefox that resists fingerprinting',
    firefox({
      screenResolution: [1400, 900],
      devicePixelRatio: 2,
      timezone: 'Atlantic/Reykjavik',
      canvas: { geometry: '893d0ef1', text: 'e3b0e5f4', stable: false },
      canvasNoise: 256,
      webGlBasics: { renderer: 'Mozilla', rendererUnmasked: 'Mozilla' },
      touchSupport: { maxTouchPoints: 5, touchEvent: false, touchStart: false },
      lies: ['HTMLCanvasElement.toDataURL:source', 'CanvasRenderingContext2D.getImageData:source'],
    }),
    plain,
  ],
  [
    'the same with the general system in its header',
    {
      ...firefox({ canvasNoise: 256 }),
      userAgent: FIREFOX_LINUX.replace('X11; Linux x86_64', 'Windows NT 10.0; Win64; x64'),
    },
    { bot: 'clear' },
  ],
  [
    'a Brave, whose hardware differs between page and worker',
    windowsPc(
      {
        worker: {
          userAgent: CHROME_WINDOWS,
          platform: 'Win32',
          hardwareConcurrency: 4,
          deviceMemory: 2,
          webGlRenderer: 'x',
        },
      },
      {},
      { 'sec-ch-ua': '"Brave";v="147", "Chromium";v="147"' },
    ),
    { bot: 'clear', tampered: 'clear' },
  ],
  [
    'plain headless',
    bareLinux({ webGlBasics: { rendererUnmasked: SWIFTSHADER } }, { automation: { webdriver: true } }, HEADLESS),
    { bot: 'detected', tampered: 'clear' },
    'headless_chrome',
  ],
  [
    'a driven browser with a window',
    bareLinux({}, { automation: { webdriver: true } }),
    { bot: 'detected', tampered: 'clear' },
    'automation',
  ],
  [
    'a detector that fired',
    windowsPc(
      {},
      { automation: { webdriver: false, detectors: { functionBind: { bot: true, botKind: 'phantomjs' } } } },
    ),
    { bot: 'detected' },
    'phantomjs',
  ],
  [
    'a stealth tool, headless',
    windowsPc({
      hardwareConcurrency: 4,
      webGlBasics: { rendererUnmasked: 'Intel Iris OpenGL Engine' },
      worker: { ...linuxWorker, userAgent: CHROME_WINDOWS },
      permissions: { notifications: 'denied', notificationPermission: 'default' },
    }),
    { bot: 'detected', tampered: 'detected' },
    'automation',
  ],
  [
    'a stealth tool with a window and no GPU',
    windowsPc({
      webGlBasics: undefined,
      worker: { ...linuxWorker, userAgent: CHROME_WINDOWS, webGlRenderer: null },
      permissions: { notifications: 'denied', notificationPermission: 'default' },
    }),
    { bot: 'detected', tampered: 'detected' },
    'automation',
  ],
  [
    'a person with another User-Agent',
    { ...bareLinux({ userAgent: CHROME_WINDOWS }), userAgent: CHROME_WINDOWS },
    { bot: 'clear', tampered: 'detected' },
  ],
  [
    'Chromium playing an iPhone',
    request(IPHONE, {
      userAgent: IPHONE,
      platform: 'Linux x86_64',
      vendor: 'Google Inc.',
      evalLength: 33,
      webGlBasics: { rendererUnmasked: SWIFTSHADER },
      incognito: { isPrivate: false, browserName: 'Chromium' },
      touchSupport: { maxTouchPoints: 1 },
    }),
    { tampered: 'detected', emulator: 'detected', incognito: 'undetermined' },
  ],
  [
    'an Android emulator',
    request(ANDROID, {
      userAgent: ANDROID,
      platform: 'Linux x86_64',
      webGlBasics: { rendererUnmasked: 'Android Emulator OpenGL ES Translator (NVIDIA)' },
      touchSupport: { maxTouchPoints: 5 },
      architecture: 255,
    }),
    { emulator: 'detected', tampered: 'clear' },
  ],
  [
    'an Android phone',
    request(ANDROID, {
      userAgent: ANDROID,
      platform: 'Linux armv81',
      webGlBasics: { renderer: 'Adreno (TM) 740' },
      touchSupport: { maxTouchPoints: 5 },
    }),
    { emulator: 'clear', tampered: 'clear', rootedDevice: 'undetermined', clonedApp: 'undetermined' },
  ],
  [
    'an app on a rooted phone',
    request(
      'MyApp/1.0 (Android 15)',
      {},
      { native: { platform: 'android', model: 'Pixel 9', rooted: true, emulator: false, cloned: true } },
    ),
    { rootedDevice: 'detected', clonedApp: 'detected', emulator: 'clear', tampered: 'undetermined' },
  ],
  [
    'an app that was hooked into',
    request('MyApp/1.0', {}, { native: { platform: 'ios', model: 'iPhone17,1', hooked: true, rooted: false } }),
    { tampered: 'detected', rootedDevice: 'clear', clonedApp: 'undetermined', emulator: 'undetermined' },
  ],
  [
    'an app on a sound phone',
    request(
      'okhttp/5.0',
      {},
      {
        native: {
          platform: 'android',
          model: 'Pixel 9',
          rooted: false,
          emulator: false,
          cloned: false,
          hooked: false,
          attestation: { provider: 'play_integrity', verdicts: ['MEETS_BASIC_INTEGRITY', 'MEETS_DEVICE_INTEGRITY'] },
        },
      },
    ),
    { tampered: 'clear', rootedDevice: 'clear', clonedApp: 'clear', emulator: 'clear', bot: 'undetermined' },
  ],
  [
    'a phone whose attestation stops below the device',
    request(
      '',
      {},
      {
        native: {
          platform: 'android',
          model: 'Pixel 9',
          rooted: false,
          attestation: { provider: 'play_integrity', verdicts: ['MEETS_BASIC_INTEGRITY'] },
        },
      },
    ),
    { rootedDevice: 'detected', emulator: 'undetermined' },
  ],
  [
    'an emulator that says it is none',
    request('', {}, { native: { platform: 'android', model: 'sdk_gphone64_x86_64', emulator: false } }),
    { emulator: 'detected' },
  ],
  [
    'an app of one system with a device of another',
    request('', {}, { native: { platform: 'android', model: 'iPhone 15 Pro' } }),
    { tampered: 'detected' },
  ],
  [
    'an app of one system under the name of another',
    request(IPHONE, {}, { native: { platform: 'android', model: 'Pixel 9' } }),
    { tampered: 'detected' },
  ],
  [
    'curl',
    { body: {}, headers: { 'user-agent': 'curl/8.5.0', accept: '*/*' }, userAgent: 'curl/8.5.0' },
    { bot: 'detected', tampered: 'undetermined', incognito: 'undetermined', emulator: 'undetermined' },
    'http_client',
  ],
  [
    'a crawler',
    { body: {}, headers: {}, userAgent: 'Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)' },
    { bot: 'detected' },
    'crawler',
  ],
  [
    'a browser name without any script',
    { body: {}, headers: {}, userAgent: CHROME_WINDOWS },
    { bot: 'undetermined', tampered: 'undetermined' },
  ],
  [
    'an unknown private-window answer',
    windowsPc({ incognito: { isPrivate: true, browserName: 'toString' } }),
    { incognito: 'undetermined' },
  ],
  ['a named proxy', windowsPc({}, {}, { via: '1.1 squid.office.example' }), { proxy: 'detected' }],
  ['a content network', windowsPc({}, {}, { via: '2.0 abc.cloudfront.net (CloudFront)' }), { proxy: 'undetermined' }],
]

function MAC_SAFARI(): string {
  return 'Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.6 Safari/605.1.15'
}

for (const [name, r, expected, botType] of ENVIRONMENTS) {
  t.test(`signals of ${name}`, async (t) => {
    const signals = signalsOf(r)
    for (const [signal, state] of Object.entries(expected)) {
      const { state: found, methods } = signals[signal as SignalName]
      t.equal(found, state, `${signal}: ${methods.join()}`)
    }
    if (botType !== undefined) t.equal(signals.botType, botType)
    if (signals.bot.state !== 'detected') t.equal(signals.botType, null)
    for (const signal of ['bot', 'tampered', 'vpn', 'tor'] as const) {
      const { state, confidence } = signals[signal]
      if (state === 'undetermined') t.equal(confidence, 0)
      else t.ok(confidence > 0 && confidence <= 1)
    }
  })
}

const LIES: readonly (readonly [string, Partial<Record<string, unknown>>, string])[] = [
  ['another platform in the worker', { worker: { platform: 'Linux x86_64' } }, 'worker_platform'],
  ['another User-Agent in the worker', { worker: { userAgent: CHROME_LINUX } }, 'worker_user_agent'],
  ['another core count in the worker', { worker: { hardwareConcurrency: 3 } }, 'worker_cores'],
  ['another chip in the worker', { worker: { webGlRenderer: SWIFTSHADER } }, 'worker_gpu'],
  ['a printed eval of another engine', { evalLength: 37 }, 'engine_mismatch'],
  [
    'an error of another engine',
    { evalLength: undefined, errorFormat: 'lineNumber,message,stack|x' },
    'engine_mismatch',
  ],
  ['a platform of another system', { platform: 'MacIntel' }, 'ua_platform'],
  ['client hints of another system', { userAgentData: { platform: 'Linux' } }, 'ua_client_hints'],
  [
    'a Metal chip on Windows',
    { webGlBasics: { rendererUnmasked: 'ANGLE (Apple, ANGLE Metal Renderer: Apple M1, x)' } },
    'gpu_platform',
  ],
  ['a replaced navigator', { lies: ['Navigator.webdriver:source'] }, 'native_overridden'],
  ['a frame that knows better', { lies: ['Navigator.languages:frame'] }, 'frame_differs'],
  [
    'another User-Agent in scripts than in the header',
    { userAgent: CHROME_LINUX, platform: undefined },
    'header_user_agent',
  ],
]
t.test('the HTTP library of an app is no evidence of a bot; what else says so still is', async (t) => {
  const native = { platform: 'android', model: 'Pixel 9' } as const
  const values = { screenResolution: [1080, 2424], timezone: 'Europe/Prague', languages: [['cs-CZ']] }
  const libraries = [
    'okhttp/5.0',
    'ktor-client',
    'axios/1.7.2',
    'Shop/4.2',
    'Shop/4.2 (Android 15) okhttp/4.12.0',
    'Dalvik/2.1.0',
  ]
  for (const userAgent of libraries) {
    const apps = [
      { native },
      ...['android', 'ios', 'react-native', 'flutter'].map((name) => ({ sdk: { name, version: '1' } })),
    ]
    for (const app of apps) {
      for (const components of [{}, values]) {
        const label = `${userAgent} ${JSON.stringify(app)}`
        t.match(
          signalsOf(request(userAgent, components, app)),
          { bot: { state: 'undetermined', methods: [] }, botType: null },
          label,
        )
      }
    }
  }
  const driven = signalsOf(request('okhttp/5.0', values, { native, automation: { webdriver: true } }))
  t.match(driven, { bot: { state: 'detected', methods: ['webdriver'] }, botType: 'automation' })
  t.equal(signalsOf(request('Googlebot/2.1 (+http://www.google.com/bot.html)', {}, { native })).botType, 'crawler')
  t.equal(signalsOf(request(HEADLESS, values, { native })).botType, 'headless_chrome')
  const web = signalsOf(request('okhttp/5.0', values, { sdk: { name: 'fingerpost-js', version: '1' } }))
  t.match(web, { bot: { state: 'detected', methods: ['isbot_ua'] }, botType: 'http_client' })
})

t.test('each of these lies alone raises tampered and is named', async (t) => {
  for (const [name, values, method] of LIES) {
    const { state, methods } = signalsOf(windowsPc(values)).tampered
    t.equal(state, 'detected', name)
    t.ok(methods.includes(method), `${name}: ${methods.join()}`)
  }
})

t.test('noise of privacy tools never raises tampered, however much of it', async (t) => {
  const owners = [
    'HTMLCanvasElement',
    'CanvasRenderingContext2D',
    'WebGLRenderingContext',
    'WebGL2RenderingContext',
    'AudioBuffer',
    'Element',
  ]
  const lies = owners.flatMap((owner) => [`${owner}.a:source`, `${owner}.b:properties`, `${owner}.c:receiver`])
  lies.push('Navigator.globalPrivacyControl:shadowed', 'Navigator.doNotTrack:shadowed')
  const noisy = windowsPc({ lies, canvasNoise: 256, canvas: { geometry: 'a', text: 'b', stable: false } })
  t.match(signalsOf(noisy).tampered, { state: 'clear', methods: ['noise_overridden'] })
})

t.test('a forged token is evidence, not proof', async (t) => {
  t.match(signalsOf(windowsPc(), ['token_forged']).tampered, { state: 'clear', methods: ['token_forged'] })
  t.equal(signalsOf(windowsPc(), ['token_forged', 'token_contradiction']).tampered.state, 'detected')
  const bare = { ...windowsPc(), body: {} }
  t.match(signalsOf(bare).tampered, { state: 'undetermined', methods: [] })
  t.match(
    signalsOf(bare, ['token_forged']).tampered,
    { state: 'undetermined', methods: ['token_forged'] },
    'where nothing else can tell as well',
  )
})

const quiet: Omit<ScoreInput, 'signals'> = {
  confidence: 1,
  hasAccount: false,
  newDeviceForAccount: null,
  linkedAccounts: 0,
  possibleVisitor: false,
  listed: false,
  velocity: null,
  impossibleTravel: false,
}

t.test('scores: nothing from nothing, each reason adds, none takes away', async (t) => {
  const signals = signalsOf(windowsPc())
  t.same(scoreEvent({ ...quiet, signals }), { scores: { abuse: 0, ato: 0, bot: 0, suspect: 0 }, reasons: [] })

  const account = scoreEvent({ ...quiet, signals, hasAccount: true, newDeviceForAccount: true, linkedAccounts: 1 })
  t.match(account, { scores: { ato: 0.35, abuse: 0 }, reasons: [{ score: 'ato', reason: 'new_device', weight: 0.35 }] })
  t.equal(
    scoreEvent({ ...quiet, signals, newDeviceForAccount: true }).scores.ato,
    0,
    'no account, nothing to take over',
  )

  const abuse = [1, 2, 3, 4, 5, 900].map(
    (linkedAccounts) => scoreEvent({ ...quiet, signals, linkedAccounts }).scores.abuse,
  )
  t.same(abuse, [0, 0.15, 0.4, 0.4, 0.7, 0.7])

  const bot = scoreEvent({ ...quiet, signals: signalsOf(bareLinux({}, { automation: { webdriver: true } })) })
  t.equal(bot.scores.bot, 0.97)
  t.ok(bot.scores.suspect > 85)
  t.ok(scoreEvent({ ...quiet, signals, confidence: 0.4 }).scores.suspect === 10)
})

t.test('suspect stays below certainty unless a bot or a list entry says so', async (t) => {
  const names: readonly SignalName[] = [
    'tampered',
    'tor',
    'emulator',
    'clonedApp',
    'proxy',
    'vpn',
    'rootedDevice',
    'incognito',
  ]
  const signals = mockSignals(signalsOf(windowsPc()), {
    signals: Object.fromEntries(names.map((name) => [name, true])),
  })
  t.equal(scoreEvent({ ...quiet, signals }).scores.suspect, SUSPECT_CAP * 100)
  t.ok(scoreEvent({ ...quiet, signals, listed: true }).scores.suspect > 99)
})

t.test('a mock forces outcomes, marks them, and scores follow unless forced too', async (t) => {
  const mock = {
    signals: { bot: { detected: true, type: 'scraper' }, vpn: { detected: true, provider: 'x' }, tampered: false },
    scores: { suspect: 12.345, ato: 0.12345 },
  }
  const real = signalsOf(windowsPc({ platform: 'MacIntel' }))
  t.equal(real.tampered.state, 'detected')
  const signals = mockSignals(real, mock)
  t.match(signals, {
    bot: { state: 'detected', source: 'mock', dataAgeSeconds: null },
    tampered: { state: 'clear', source: 'mock' },
    botType: 'scraper',
    vpnProvider: 'x',
  })
  t.equal(signals.incognito, real.incognito)
  const { scores } = scoreEvent({ ...quiet, signals })
  t.equal(scores.bot, 0.95)
  const once = applyMock(signals, scores, mock)
  t.match(once.scores, { suspect: 12.35, ato: 0.1235, bot: 0.95 })
  t.same(applyMock(once.signals, once.scores, mock), once, 'twice equals once')
  t.same(applyMock(real, scores, undefined), { signals: real, scores })
})

t.test('thresholds are those the weights were chosen for', async (t) => {
  t.same(DETECTED_MIN, { bot: 0.8, tampered: 0.6, emulator: 0.8, proxy: 0.6, native: 0.6 })
})
