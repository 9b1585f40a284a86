// Chromium and Firefox stay one visitor through what people do to them: every change in every browser, each in a browser that
// was started for it. `recognition.test.ts` shows each change in one of them.

import t, { type Test } from 'tap'
import type { Kind } from './by-hand.ts'
import { clearStorage, type Manner, setCast } from './cast.ts'
import type { Seen } from './visits.ts'

t.setTimeout(800_000)
const cast = setCast(t)

type Change = readonly [what: string, of: Readonly<Record<Kind, Manner>>]

const CHANGES: readonly Change[] = [
  [
    'another size of window',
    { chromium: { flags: ['--window-size=1040,700'] }, firefox: { flags: ['--width', '1040', '--height', '700'] } },
  ],
  [
    'a scale of 1.5',
    {
      chromium: { flags: ['--force-device-scale-factor=1.5'] },
      firefox: { prefs: { 'layout.css.devPixelsPerPx': '1.5' } },
    },
  ],
  ['another time zone', { chromium: { env: { TZ: 'Asia/Tokyo' } }, firefox: { env: { TZ: 'Asia/Tokyo' } } }],
]

const NEWER = 'a newer version in the User-Agent'

/** The User-Agent of the release after this one. */
const nextOf = (userAgent: string): string =>
  userAgent.replace(/(Chrome\/|rv:|Firefox\/)(\d+)/g, (_, name: string, major: string) => `${name}${Number(major) + 1}`)

const newer = (userAgent: string): Readonly<Record<Kind, Manner>> => ({
  chromium: { flags: [`--user-agent=${nextOf(userAgent)}`] },
  firefox: { prefs: { 'general.useragent.override': nextOf(userAgent) } },
})

// Without a graphics card and fonts of their own, machines like those that run tests look all alike: the languages of
// the person in front give them something to be known by.
const HOME: Manner = { languages: 'cs-CZ,cs,en', env: { TZ: 'Europe/Prague' } }
const ABROAD: Manner = { languages: 'fr-CA,fr,en', env: { TZ: 'America/Toronto' } }

const methodOf = ({ event }: Seen): string => event.identity.method
const reasonsOf = ({ event }: Seen) => JSON.stringify(event.scoreReasons)

for (const kind of ['chromium', 'firefox'] as const) {
  t.test(`${kind}, opened by a person`, async (t) => {
    const profileDir = await cast.makeProfile()
    const genuine = (t: Test, seen: Seen) => {
      t.equal(seen.event.signals.bot.detected, false, `no bot: ${reasonsOf(seen)}`)
      t.equal(seen.event.signals.tampered, false, `not tampered: ${reasonsOf(seen)}`)
    }
    const first = await cast.visit(kind, `${kind} first`, { ...HOME, profileDir })

    t.test('a first visit is a new visitor, no bot and not tampered', async (t) => {
      t.equal(first.visitorFound, false)
      t.match(first.event, {
        signals: { bot: { detected: false }, tampered: false, incognito: false, emulator: false },
      })
    })

    t.test('restarted it is the same visitor, by its token', async (t) => {
      const again = await cast.visit(kind, `${kind} restarted`, { ...HOME, profileDir })
      t.equal(again.visitorId, first.visitorId)
      t.equal(methodOf(again), 'token')
      t.ok(again.confidence > 0.99)
      genuine(t, again)
    })

    t.test('its private window is the same visitor and is seen as private', async (t) => {
      const again = await cast.visit(kind, `${kind} private`, { ...HOME, profileDir, isPrivate: true })
      t.equal(again.hadToken, false)
      t.not(methodOf(again), 'token')
      t.equal(again.visitorId, first.visitorId)
      t.equal(again.event.signals.incognito, true)
      genuine(t, again)
    })

    t.test('with its storage cleared it is the same visitor', async (t) => {
      await clearStorage(kind, profileDir)
      const again = await cast.visit(kind, `${kind} cleared`, { ...HOME, profileDir })
      t.equal(again.hadToken, false)
      t.not(methodOf(again), 'token')
      t.equal(again.visitorId, first.visitorId)
      t.equal(again.event.signals.incognito, false)
      genuine(t, again)
    })

    for (const [what, of] of [...CHANGES, [NEWER, newer(first.components.userAgent.value)] as const]) {
      t.test(`with ${what} and no token it is the same visitor`, async (t) => {
        const again = await cast.visit(kind, `${kind} ${what}`, { ...HOME, ...of[kind] })
        t.not(methodOf(again), 'token')
        t.equal(again.visitorId, first.visitorId, JSON.stringify(again.event.identity))
        t.equal(again.event.signals.bot.detected, false, reasonsOf(again))
        // A flag changes the text alone: the version in the client hints, which a real update changes too, stays.
        const inconsistent = kind === 'chromium' && what === NEWER
        t.equal(again.event.signals.tampered, inconsistent, reasonsOf(again))
        if (inconsistent) t.same(again.event.signalDetails.tampered.methods, ['hints_version'])
      })
    }
    t.end()
  })
}

// Nothing tells a second profile of one browser on one machine from a first one whose storage was cleared, until both
// come back with the tokens they got.
t.test('a second profile begins as the same visitor, below the confidence of a token', async (t) => {
  const [one, second] = [await cast.makeProfile(), await cast.makeProfile()]
  const { visitorId } = await cast.visit('chromium', 'first profile', { ...ABROAD, profileDir: one })
  const begins = await cast.visit('chromium', 'second profile', { ...ABROAD, profileDir: second })
  t.equal(begins.visitorId, visitorId)
  t.not(methodOf(begins), 'token')
  t.ok(begins.confidence > 0.7 && begins.confidence < 0.99, `${begins.confidence}`)
  const returns = await cast.visit('chromium', 'second profile again', { ...ABROAD, profileDir: second })
  t.equal(methodOf(returns), 'token')
  t.equal(returns.visitorId, visitorId, 'until the first profile is seen again')
  const other = await cast.visit('chromium', 'first profile again', { ...ABROAD, profileDir: one })
  t.equal(other.visitorId, visitorId, 'the first profile keeps its visitor')
  const told = await cast.visit('chromium', 'second profile once more', { ...ABROAD, profileDir: second })
  t.not(told.visitorId, visitorId, 'now the two are told apart')
})
