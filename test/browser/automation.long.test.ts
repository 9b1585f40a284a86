// Browsers that programs drive are bots, however they hide; browsers that lie about what they are, are tampered: every way
// that is known, each in a browser of its own. `automation.test.ts` has one of each kind.

import t from 'tap'
import { setCast } from './cast.ts'
import { quietly, stealth } from './stealth.ts'
import type { Seen } from './visits.ts'

t.setTimeout(800_000)
const cast = setCast(t)

// What tools start Chromium with so that navigator.webdriver stays false.
const NOT_AUTOMATED = '--disable-blink-features=AutomationControlled'
const DRIVEN = '--remote-debugging-port=0'
const FIREFOX_WINDOWS = 'Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:153.0) Gecko/20100101 Firefox/153.0'
const CHROMIUM_WINDOWS =
  'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/156.0.0.0 Safari/537.36'

type Expected = { bot?: boolean; tampered?: boolean; type?: string; methods?: readonly string[] }
type Row = readonly [who: string, open: (name: string) => Promise<Seen>, expected: Expected]

const ROWS: readonly Row[] = [
  [
    'Chromium driven in a window',
    (name) => cast.driveChromium(name, { flags: [DRIVEN] }),
    { bot: true, tampered: false, type: 'automation', methods: ['webdriver', 'inspector_attached'] },
  ],
  [
    'Chromium without a window, driven by nobody',
    (name) => cast.visit('chromium', name, { headless: true }),
    { bot: true, tampered: false, type: 'headless_chrome', methods: ['headless_ua', 'no_pointer'] },
  ],
  [
    'Chromium without a window that hides nothing but its name and its driver',
    (name) => cast.driveChromium(name, { headless: true, flags: [DRIVEN, NOT_AUTOMATED] }, quietly),
    { bot: true, tampered: false, type: 'automation', methods: ['inspector_attached', 'no_pointer'] },
  ],
  [
    'Chromium without a window under stealth patches',
    (name) => cast.driveChromium(name, { headless: true, flags: [DRIVEN, NOT_AUTOMATED] }, stealth),
    { bot: true, tampered: true, methods: ['webdriver_hidden', 'tampered_environment', 'no_pointer'] },
  ],
  [
    'Chromium in a window under stealth patches',
    (name) => cast.driveChromium(name, { flags: [DRIVEN, NOT_AUTOMATED] }, stealth),
    { bot: true, tampered: true, methods: ['webdriver_hidden', 'tampered_environment'] },
  ],
  [
    'Firefox in a WebDriver session',
    (name) => cast.driveFirefox(name),
    { bot: true, tampered: false, type: 'automation', methods: ['webdriver'] },
  ],
  [
    'Firefox without a window, driven by nobody',
    (name) => cast.visit('firefox', name, { headless: true }),
    { bot: true, tampered: false, type: 'automation', methods: ['no_pointer', 'headless_style'] },
  ],
  [
    'a person whose Chromium says it runs on Windows',
    (name) => cast.visit('chromium', name, { flags: [`--user-agent=${CHROMIUM_WINDOWS}`] }),
    { bot: false, tampered: true },
  ],
  [
    'a person whose Firefox says it runs on Windows',
    (name) => cast.visit('firefox', name, { prefs: { 'general.useragent.override': FIREFOX_WINDOWS } }),
    { bot: false, tampered: true },
  ],
  [
    'a person whose Firefox resists fingerprinting',
    (name) => cast.visit('firefox', name, { prefs: { 'privacy.resistFingerprinting': true } }),
    { bot: false, tampered: false },
  ],
]

for (const [who, open, expected] of ROWS) {
  t.test(
    `${who}: ${expected.bot ? 'a bot' : 'no bot'}, ${expected.tampered ? 'tampered' : 'not tampered'}`,
    async (t) => {
      const { event } = await open(who)
      const why = JSON.stringify(event.signalDetails)
      t.equal(event.signals.bot.detected, expected.bot, why)
      t.equal(event.signals.tampered, expected.tampered, why)
      t.equal(event.signals.incognito, false, why)
      if (!expected.bot) return
      t.ok(event.scores.bot >= 0.8)
      const { methods, type } = event.signalDetails.bot
      for (const method of expected.methods ?? []) t.ok(methods.includes(method), `${method}: ${methods}`)
      if (expected.type !== undefined) t.equal(type, expected.type)
    },
  )
}

// One that changes nothing about the browser and shows its window is, from a page, a person with developer tools open.
t.test('a program attached to a browser that a person started is a reason, not proof', async (t) => {
  const { event } = await cast.driveChromium('attached', { flags: [DRIVEN, NOT_AUTOMATED] })
  t.equal(event.signals.bot.detected, false)
  t.equal(event.scores.bot, 0.64)
  t.match(event.scoreReasons, [{ score: 'bot', reason: 'inspector_attached' }])
})
