// Chromium and Firefox as people use them, with windows and without any protocol: they stay one visitor through what people do
// to them, and are taken neither for bots nor for tampered. Each change in one browser; `recognition.long.test.ts` has all in both.

import t, { type Test } from 'tap'
import type { Kind } from './by-hand.ts'
import { type Manner, type Session, setCast } from './cast.ts'
import { untilStored } from './stored.ts'
import type { Seen } from './visits.ts'

t.setTimeout(1_200_000)
const cast = setCast(t)

// Without a graphics card and fonts of their own, machines like those that run tests look all alike: the languages of
// the person in front give them something to be known by.
const HOME: Manner = { languages: 'cs-CZ,cs,en', env: { TZ: 'Europe/Prague' } }

/** The User-Agent of the release after this one. */
const nextOf = (userAgent: string): string =>
  userAgent.replace(/(rv:|Firefox\/)(\d+)/g, (_, name: string, major: string) => `${name}${Number(major) + 1}`)

const methodOf = ({ event }: Seen): string => event.identity.method

function genuine(t: Test, { event }: Seen, { incognito = false } = {}): void {
  const reasons = JSON.stringify(event.scoreReasons)
  t.equal(event.signals.bot.detected, false, `no bot: ${reasons}`)
  t.equal(event.signals.tampered, false, `not tampered: ${reasons}`)
  t.equal(event.signals.incognito, incognito, reasons)
}

/** The same visitor as `first`, though nothing that was stored says so. */
function found(t: Test, seen: Seen, first: Seen): void {
  t.equal(seen.hadToken, false)
  t.not(methodOf(seen), 'token')
  t.equal(seen.visitorId, first.visitorId, JSON.stringify(seen.event.identity))
}

/** Starts the browser on a new profile, ends it and starts it again. The second session stays open. */
async function restarted(t: Test, kind: Kind, profileDir: string): Promise<{ first: Seen; session: Session }> {
  const earlier = await cast.open(kind, `${kind} first`, { ...HOME, profileDir })
  const { first } = earlier
  await untilStored(profileDir)
  await earlier.close()
  const session = await cast.open(kind, `${kind} restarted`, { ...HOME, profileDir })

  t.test('a first visit is a new visitor, no bot and not tampered', async (t) => {
    t.equal(first.visitorFound, false)
    genuine(t, first)
    t.equal(first.event.signals.emulator, false)
  })

  t.test('restarted it is the same visitor, by its token', async (t) => {
    // Whichever store kept it: Firefox may lose what a page put into its local storage the moment before it ended.
    const again = session.first
    t.equal(again.visitorId, first.visitorId)
    const why = JSON.stringify({ hadToken: again.hadToken, ...again.event.identity })
    t.equal(methodOf(again), 'token', why)
    t.ok(again.confidence > 0.99, why)
    genuine(t, again)
  })

  t.test('with its storage cleared it is the same visitor', async (t) => {
    const again = await session.emptied(`${kind} emptied`)
    found(t, again, first)
    genuine(t, again)
  })
  return { first, session }
}

t.test('chromium, opened by a person', async (t) => {
  const profileDir = await cast.makeProfile()
  const { first, session } = await restarted(t, 'chromium', profileDir)

  t.test('its private window is the same visitor and is seen as private', async (t) => {
    const again = await cast.visit('chromium', 'chromium private', { ...HOME, profileDir, isPrivate: true })
    found(t, again, first)
    genuine(t, again, { incognito: true })
  })

  for (const [what, manner] of [
    ['a scale of 1.5', { flags: ['--force-device-scale-factor=1.5'] }],
    ['another time zone', { env: { TZ: 'Asia/Tokyo' } }],
  ] as const) {
    t.test(`with ${what} and no token it is the same visitor`, async (t) => {
      const again = await cast.visit('chromium', `chromium ${what}`, { ...HOME, ...manner })
      found(t, again, first)
      genuine(t, again)
    })
  }

  // Nothing tells a second profile of one browser on one machine from a first one whose storage was cleared, until both
  // come back with the tokens they got.
  t.test('a second profile begins as the same visitor, below the confidence of a token', async (t) => {
    const second = await cast.open('chromium', 'second profile', HOME)
    found(t, second.first, first)
    t.ok(second.first.confidence > 0.7 && second.first.confidence < 0.99, `${second.first.confidence}`)
    const returns = await second.again('second profile again')
    t.equal(methodOf(returns), 'token')
    t.equal(returns.visitorId, first.visitorId, 'until the first profile is seen again')
    const other = await session.again('first profile again')
    t.equal(other.visitorId, first.visitorId, 'the first profile keeps its visitor')
    const told = await second.again('second profile once more')
    t.not(told.visitorId, first.visitorId, 'now the two are told apart')
    await second.close()
    await session.close()
  })
  t.end()
})

t.test('firefox, opened by a person', async (t) => {
  const profileDir = await cast.makeProfile()
  const { first, session } = await restarted(t, 'firefox', profileDir)

  t.test('its private window, of another size, is the same visitor and is seen as private', async (t) => {
    await session.close()
    const manner = { flags: ['--width', '1040', '--height', '700'], isPrivate: true }
    const again = await cast.visit('firefox', 'firefox private', { ...HOME, profileDir, ...manner })
    found(t, again, first)
    t.not(again.components.window.value.outer.join(), first.components.window.value.outer.join())
    genuine(t, again, { incognito: true })
  })

  t.test('with a newer version in the User-Agent and no token it is the same visitor', async (t) => {
    const prefs = { 'general.useragent.override': nextOf(first.components.userAgent.value) }
    const again = await cast.visit('firefox', 'firefox newer', { ...HOME, prefs })
    t.not(again.components.userAgent.value, first.components.userAgent.value)
    found(t, again, first)
    genuine(t, again)
  })
  t.end()
})
