// Browsers that programs drive are bots, however they hide; browsers that lie about what they are, are tampered. Beside
// them the people who could be mistaken for either: with privacy settings on, or with developer tools open. One of each kind;
// `automation.long.test.ts` has all, each in a browser of its own.

import t, { type Test } from 'tap'
import { setCast } from './cast.ts'
import { quietly, stealth } from './stealth.ts'
import type { Seen } from './visits.ts'

t.setTimeout(1_200_000)
const cast = setCast(t)

// What tools start Chromium with so that navigator.webdriver stays false.
const HIDING = { flags: ['--remote-debugging-port=0', '--disable-blink-features=AutomationControlled'] }
const CHROMIUM_WINDOWS =
  'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/156.0.0.0 Safari/537.36'

// What tools that leave the console alone give a headless Chromium: its own version without the name, and a screen.
const SCREENED = ['--window-size=1920,1080', '--screen-info={1920x1080}']
const CHROMIUM_LINUX =
  'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/156.0.0.0 Safari/537.36'

type Bot = { tampered: boolean; type?: string; methods: readonly string[] }

function isBot(t: Test, { event }: Seen, { tampered, type, methods }: Bot): void {
  const why = JSON.stringify(event.signalDetails)
  t.match(event.signals, { bot: { detected: true }, tampered, incognito: false }, why)
  t.ok(event.scores.bot >= 0.8, why)
  for (const method of methods) t.ok(event.signalDetails.bot?.methods.includes(method), `${method}: ${why}`)
  if (type !== undefined) t.equal(event.signalDetails.bot?.type, type)
}

function isNoBot(t: Test, { event }: Seen, { tampered }: { tampered: boolean }): void {
  const why = JSON.stringify(event.signalDetails)
  t.match(event.signals, { bot: { detected: false }, tampered, incognito: false }, why)
}

t.test('Chromium driven in a window is a bot and says so', async (t) => {
  const seen = await cast.driveChromium('driven', { flags: ['--remote-debugging-port=0'] })
  isBot(t, seen, { tampered: false, type: 'automation', methods: ['webdriver', 'inspector_attached'] })
})

t.test('Chromium without a window', async (t) => {
  const session = await cast.open('chromium', 'headless', { ...HIDING, headless: true })

  t.test('driven by nobody is a bot, by its name', async (t) => {
    isBot(t, session.first, { tampered: false, type: 'headless_chrome', methods: ['headless_ua', 'no_pointer'] })
  })

  t.test('that hides nothing but its name and its driver is a bot', async (t) => {
    const seen = await session.drive('quietly', quietly)
    isBot(t, seen, { tampered: false, type: 'automation', methods: ['inspector_attached', 'no_pointer'] })
  })

  t.test('under stealth patches is a bot and tampered', async (t) => {
    const seen = await session.drive('headless stealth', stealth)
    isBot(t, seen, { tampered: true, methods: ['webdriver_hidden', 'tampered_environment', 'no_pointer'] })
    await session.close()
  })
  t.end()
})

t.test('Chromium without a window, but with a screen and a driver that listens to no console, is a bot', async (t) => {
  const flags = [...HIDING.flags, ...SCREENED, `--user-agent=${CHROMIUM_LINUX}`]
  const { event } = await cast.visit('chromium', 'screened', { headless: true, flags })
  const why = JSON.stringify(event.signalDetails)
  t.match(event.signals, { bot: { detected: true } }, why)
  for (const method of ['no_pointer', 'headless_equipment', 'headless_window']) {
    t.ok(event.signalDetails.bot?.methods.includes(method), `${method}: ${why}`)
  }
})

t.test('Chromium in a window, started by a person', async (t) => {
  const session = await cast.open('chromium', 'alone', HIDING)

  t.test('is no bot', async (t) => {
    isNoBot(t, session.first, { tampered: false })
    t.ok(session.first.event.scores.bot < 0.5)
  })

  // One that changes nothing about the browser and shows its window is, from a page, a person with developer tools open.
  t.test('has, with a program attached to it, a reason to be one, not proof', async (t) => {
    const { event } = await session.drive('attached')
    t.equal(event.signals.bot.detected, false)
    t.equal(event.scores.bot, 0.64)
    t.match(event.scoreReasons, [{ score: 'bot', reason: 'inspector_attached' }])
  })

  t.test('is, under stealth patches, a bot and tampered', async (t) => {
    isBot(t, await session.drive('stealth', stealth), {
      tampered: true,
      methods: ['webdriver_hidden', 'tampered_environment'],
    })
    await session.close()
  })
  t.end()
})

t.test('Firefox without a window in a WebDriver session is a bot, by its driver and by what it lacks', async (t) => {
  const seen = await cast.driveFirefox('webdriver', { headless: true })
  isBot(t, seen, { tampered: false, type: 'automation', methods: ['webdriver', 'no_pointer', 'headless_style'] })
})

t.test('a person whose Chromium says it runs on Windows is no bot, but tampers', async (t) => {
  const seen = await cast.visit('chromium', 'liar', { flags: [`--user-agent=${CHROMIUM_WINDOWS}`] })
  isNoBot(t, seen, { tampered: true })
})

t.test('a person whose Firefox resists fingerprinting is no bot and does not tamper', async (t) => {
  const seen = await cast.visit('firefox', 'resisting', { prefs: { 'privacy.resistFingerprinting': true } })
  isNoBot(t, seen, { tampered: false })
})
