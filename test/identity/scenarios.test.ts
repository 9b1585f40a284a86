// What a person may do to a browser, and what must come of it: the same visitor, another one, or an honest "not sure".

import t from 'tap'
import { auditPlaces, learnAudit } from '../../src/identity/calibration.ts'
import { newMatchStatistics } from '../../src/identity/match-statistics.ts'
import { recognise } from '../../src/identity/matcher.ts'
import { samePanel, screenCode } from '../../src/identity/profile.ts'
import { hardwareKey } from '../../src/identity/routing.ts'
import {
  ANDROID,
  attributesOf,
  bareLinux,
  CHROME_WINDOWS,
  firefox,
  iphone,
  openStore,
  request,
  windowsPc,
} from '../helpers/recognition.ts'

const HOME = '203.0.113.7'
const ELSEWHERE = '198.51.100.20'

t.test('a kept profile is recognised by its token, with certainty', async (t) => {
  const store = openStore()
  const first = store.visit(windowsPc(), HOME)
  t.match(first.recognition, { method: 'new', confidence: 0.99, visitor: null, anonymitySet: 1 })
  const again = store.visit(windowsPc(), ELSEWHERE, first.token)
  t.match(again.recognition, { method: 'token', anonymitySet: 1, reissueGeneration: false, generation: 1 })
  t.ok(again.recognition.confidence >= 0.99)
  t.equal(again.visitor.id, first.visitor.id)
})

for (const [name, device] of [
  ['a machine with GPU and fonts', windowsPc],
  ['a bare container', bareLinux],
] as const) {
  t.test(`cleared storage, private windows and window sizes leave ${name} the same visitor, exactly`, async (t) => {
    const store = openStore()
    const { visitor } = store.visit(device(), HOME)
    const cleared = store.visit(device(), HOME)
    t.match(cleared.recognition, { method: 'exact', reissueGeneration: true, generation: 2 })
    const incognito = store.visit(device({ incognito: { isPrivate: true, browserName: 'Chrome' } }), HOME)
    t.match(incognito.recognition, { method: 'exact', reissueGeneration: false, generation: 2 })
    const resized = store.visit(device({ window: { inner: [400, 300], outer: [410, 400] } }), HOME)
    t.equal(resized.recognition.method, 'exact')
    for (const visit of [cleared, incognito, resized]) {
      t.equal(visit.visitor.id, visitor.id)
      t.ok(visit.recognition.confidence > 0.9, `confidence ${visit.recognition.confidence}`)
    }
  })

  t.test(`another display scale links ${name} to its visitor`, async (t) => {
    const store = openStore()
    const { visitor } = store.visit(device(), HOME)
    const [w, h] = attributesOf(device()).screen as [number, number]
    const scaled = device({
      screenResolution: [Math.round(w / 1.5), Math.round(h / 1.5)],
      devicePixelRatio: 1.5,
      canvas: { winding: true, geometry: 'a9b1f30b', text: '52e10cb9', stable: true },
    })
    const visit = store.visit(scaled, HOME)
    t.equal(visit.recognition.method, 'linked')
    t.equal(visit.visitor.id, visitor.id)
    t.ok(visit.recognition.confidence > 0.8, `confidence ${visit.recognition.confidence}`)
    t.equal(store.visit(device(), HOME).visitor.id, visitor.id, 'and back')
  })

  t.test(`another time zone and a newer browser leave ${name} the same visitor`, async (t) => {
    const store = openStore()
    const { visitor } = store.visit(device(), HOME)
    t.equal(store.visit(device({ timezone: 'America/New_York' }), HOME).visitor.id, visitor.id)
    const newer = device()
    const updated = { ...newer, userAgent: newer.userAgent.replace('147', '148') }
    t.equal(store.visit(updated, HOME).visitor.id, visitor.id)
  })
}

t.test('a cleared machine with rare hardware is found again on another network', async (t) => {
  const store = openStore()
  const { visitor } = store.visit(windowsPc(), HOME)
  const moved = store.visit(windowsPc(), ELSEWHERE)
  t.equal(moved.visitor.id, visitor.id)
  t.ok(moved.recognition.confidence < 0.995, 'less sure than by its token')
})

t.test(
  'a token that was given on a guess proves no more than the guess, until the one before it had time to come back',
  async (t) => {
    const store = openStore()
    store.visit(windowsPc(), HOME)
    const guessed = store.visit(windowsPc(), ELSEWHERE)
    const { confidence } = guessed.recognition
    t.equal(guessed.recognition.generation, 2)
    const next = store.visit(windowsPc(), ELSEWHERE, guessed.token)
    t.equal(next.recognition.method, 'token')
    t.ok(
      Math.abs(next.recognition.confidence - confidence) < 0.01,
      `${next.recognition.confidence} after ${confidence}`,
    )
    store.wait(90 * 86_400_000)
    t.ok(store.visit(windowsPc(), ELSEWHERE, guessed.token).recognition.confidence >= 0.99)
  },
)

t.test(
  'links are told with no more than hidden tokens show to be right, and an office full of one machine with less than a household',
  async (t) => {
    const office = openStore()
    const { attributes, visit } = { attributes: attributesOf(windowsPc()), visit: office.visit(windowsPc(), HOME) }
    const asked = (totals: Readonly<Record<string, number>>, statistics = newMatchStatistics()) =>
      recognise({
        attributes,
        ip: HOME,
        atMs: visit.visitor.lastSeenAt + 60_000,
        token: null,
        tokenVisitor: null,
        exact: [visit.visitor],
        linked: [],
        incognito: false,
        totals,
        statistics,
      }).confidence
    t.ok(asked({ c: 7, e: 1 }) > 0.9, 'many at the address, nobody else of that look')
    t.ok(asked({ c: 2, e: 2 }) > 0.9, 'a household')
    t.ok(asked({ c: 7, e: 2 }) < asked({ c: 2, e: 2 }))
    const taught = (wrongOf100: number) => {
      const learned = newMatchStatistics()
      const none = { chance: 0, nearby: false }
      for (let i = 0; i < 100; i++) {
        const best = { chance: i % 2 === 0 ? 0.97 : 0.985, nearby: true }
        learnAudit(learned.audits, auditPlaces({ best, isRight: i >= wrongOf100, stranger: none }))
      }
      return learned
    }
    t.ok(asked({ c: 1, e: 1 }, taught(0)) > 0.95)
    t.ok(asked({ c: 1, e: 1 }, taught(20)) < 0.9, 'where hidden tokens show them to be mistaken for each other')
  },
)

t.test('a machine that looks like any other is not claimed on another network', async (t) => {
  const store = openStore()
  const { visitor } = store.visit(bareLinux(), HOME)
  const other = store.visit(bareLinux(), ELSEWHERE)
  t.not(other.visitor.id, visitor.id)
})

t.test('two different machines behind one address are two visitors', async (t) => {
  const store = openStore()
  const a = store.visit(windowsPc(), HOME)
  const b = store.visit(
    windowsPc({
      webGlBasics: { rendererUnmasked: 'ANGLE (Intel, Intel(R) UHD Graphics 620 Direct3D11 vs_5_0 ps_5_0, D3D11)' },
      hardwareConcurrency: 8,
      deviceMemory: 4,
      fonts: ['Calibri', 'Century'],
    }),
    HOME,
  )
  t.not(b.visitor.id, a.visitor.id)
  t.equal(b.recognition.method, 'new')
  t.ok(b.recognition.confidence > 0.9)
  const c = store.visit(bareLinux({ hardwareConcurrency: 16, deviceMemory: 32 }), HOME)
  const d = store.visit(bareLinux(), HOME)
  t.not(c.visitor.id, d.visitor.id, 'even without GPU and fonts')
})

t.test('clients that say next to nothing are never merged', async (t) => {
  const store = openStore()
  const curl = request('curl/8.5.0', {}, {}, {})
  const browser = request(CHROME_WINDOWS, { userAgent: CHROME_WINDOWS, timezone: 'UTC', languages: [['en-US']] })
  for (const sparse of [curl, browser, request('', {}), request(ANDROID, {})]) {
    const first = store.visit(sparse, HOME)
    const second = store.visit(sparse, HOME)
    t.not(second.visitor.id, first.visitor.id)
    // Whoever was there before makes no difference, so that the engine does not even look for them.
    const alone = { method: 'new', evidence: ['sparse'], candidates: 0, scores: [], newChance: 1, possible: null }
    t.match(second.recognition, alone)
    t.ok(second.recognition.confidence < 0.5)
    t.equal(store.visit(sparse, HOME, first.token).visitor.id, first.visitor.id, 'their token still decides')
  }
})

t.test('identical machines of a fleet: the token tells them apart, without it nobody is named', async (t) => {
  const store = openStore()
  const pcs = Array.from({ length: 6 }, () => store.visit(windowsPc(), HOME).token)
  // Each comes back in turn: the older storage being alive proves that the younger one is another machine.
  for (let round = 0; round < 8; round++) {
    pcs.forEach((token, i) => {
      pcs[i] = store.visit(windowsPc(), HOME, token).token
    })
  }
  t.equal(new Set(pcs.map((token) => token.visitorId)).size, 6, 'six machines, six visitors')
  const stranger = store.visit(windowsPc(), HOME)
  t.equal(stranger.recognition.method, 'new')
  t.ok(stranger.recognition.confidence < 0.5, `confidence ${stranger.recognition.confidence}`)
  t.ok(stranger.recognition.anonymitySet > 1)
  t.equal(stranger.recognition.scores.length, 6)
})

t.test('iPhones are not merged across networks, and only on a shared one when nothing differs', async (t) => {
  const store = openStore()
  const { visitor } = store.visit(iphone(), HOME)
  t.not(store.visit(iphone(), ELSEWHERE).visitor.id, visitor.id)
  t.equal(store.visit(iphone(), HOME).visitor.id, visitor.id)
  t.not(store.visit(iphone({ screenResolution: [430, 932] }), HOME).visitor.id, visitor.id)
  t.not(store.visit(iphone({ languages: [['cs-CZ']] }), HOME).visitor.id, visitor.id)
})

t.test(
  'Firefox keeps its visitor though it draws differently and reports other cores in private windows',
  async (t) => {
    const store = openStore()
    const { visitor } = store.visit(firefox(), HOME)
    const canvas = { winding: true, geometry: '6258cbca', text: 'c193820e', stable: true }
    t.match(store.visit(firefox({ canvas }), HOME), { visitor: { id: visitor.id }, recognition: { method: 'exact' } })
    const hidden = firefox({ hardwareConcurrency: 4, canvas, incognito: { isPrivate: true, browserName: 'Firefox' } })
    t.match(store.visit(hidden, HOME), { visitor: { id: visitor.id }, recognition: { method: 'exact' } })
    t.equal(visitor.profile?.values[4], 2, 'the honest core count stays')
  },
)

t.test('a token on another system keeps its visitor but says that something is wrong', async (t) => {
  const store = openStore()
  const { token, visitor } = store.visit(windowsPc(), HOME)
  const stolen = store.visit(firefoxOnMac(), ELSEWHERE, token)
  t.equal(stolen.visitor.id, visitor.id)
  t.match(stolen.recognition, { method: 'token', evidence: ['token_contradiction'] })
  t.ok(stolen.recognition.confidence <= 0.5)
  t.equal(visitor.profile?.os, 'Windows', 'and the thief teaches it nothing')
})

function firefoxOnMac() {
  const ua = 'Mozilla/5.0 (Macintosh; Intel Mac OS X 10.15; rv:150.0) Gecko/20100101 Firefox/150.0'
  return { ...firefox({ userAgent: ua, platform: 'MacIntel' }), userAgent: ua }
}

t.test('a token of a visitor nobody remembers decides all the same, whoever looks like it', async (t) => {
  const { token } = openStore().visit(windowsPc(), HOME)
  const store = openStore()
  store.visit(windowsPc(), HOME)
  const { recognition } = store.visit(windowsPc(), HOME, { ...token, visitorId: 'pv_00000000000000000009' })
  t.match(recognition, { method: 'token', visitor: null, confidence: 0.995, evidence: ['token_unknown_visitor'] })
})

t.test('a device that was taken for another loses its id as soon as both storages came back', async (t) => {
  const store = openStore()
  const first = store.visit(windowsPc(), HOME)
  const taken = store.visit(windowsPc(), HOME)
  t.equal(taken.visitor.id, first.visitor.id, 'looks the same')
  const again = store.visit(windowsPc(), HOME, first.token)
  t.equal(again.visitor.id, first.visitor.id, 'its storage was never cleared')
  store.wait(3_600_000)
  store.visit(windowsPc(), HOME, first.token)
  const split = store.visit(windowsPc(), HOME, taken.token)
  t.match(split.recognition, { method: 'new', evidence: ['token_refuted'] })
})

t.test(
  'a storage that turns out alive makes the next one without a token a stranger, though the wrong one never came back, if that was no private window',
  async (t) => {
    const known = { incognito: { isPrivate: false, browserName: 'Chrome' } }
    const askedAgain = (says: Readonly<Record<string, unknown>>) => {
      const store = openStore()
      const first = store.visit(windowsPc(says), HOME)
      store.wait(3_600_000)
      t.equal(store.visit(windowsPc(says), HOME).visitor.id, first.visitor.id, 'looks the same, and keeps no storage')
      store.wait(3_600_000)
      store.visit(windowsPc(says), HOME, first.token)
      return store.visit(windowsPc(says), HOME).recognition
    }
    const judged = askedAgain(known)
    t.match(judged, { method: 'new' })
    const unknown = askedAgain({ incognito: null })
    const chance = ({ scores }: typeof judged) => scores[0]?.posterior ?? 0
    t.ok(chance(unknown) > chance(judged), `else it may have been one: ${chance(unknown)}, ${chance(judged)}`)
  },
)

t.test('tabs that race after the storage was cleared are no clone, whichever of them stays', async (t) => {
  const DAY_MS = 86_400_000
  for (const stays of ['earlier', 'later'] as const) {
    const store = openStore()
    const first = store.visit(windowsPc(), HOME)
    store.wait(DAY_MS)
    const [earlier, later] = [store.visit(windowsPc(), HOME), store.visit(windowsPc(), HOME)]
    store.wait(DAY_MS)
    const again = store.visit(windowsPc(), HOME, { earlier, later }[stays].token)
    t.equal(again.visitor.id, first.visitor.id, `the ${stays} one`)
    store.wait(DAY_MS)
    t.equal(store.visit(windowsPc(), HOME).visitor.id, first.visitor.id, 'cleared once more')
  }
})

t.test('an address of IPv6 is known again by its /64', async (t) => {
  const store = openStore()
  const { visitor } = store.visit(iphone(), '2001:db8:1:2:aaaa::1')
  t.equal(store.visit(iphone(), '2001:db8:1:2:bbbb::9').visitor.id, visitor.id)
})

t.test('iPhones are found again on any network they were seen at', async (t) => {
  const store = openStore()
  const { visitor, token } = store.visit(iphone(), HOME)
  store.visit(iphone(), ELSEWHERE, token)
  t.equal(store.visit(iphone(), ELSEWHERE).visitor.id, visitor.id)
  t.equal(store.visit(iphone(), HOME).visitor.id, visitor.id)
})

t.test('a panel is the same at any scale, rounding included, and no other panel is', async (t) => {
  t.ok(samePanel(screenCode(1920, 1080), 1, screenCode(1280, 720), 1.5))
  t.ok(samePanel(screenCode(800, 600), 1, screenCode(534, 400), 1.5))
  t.notOk(samePanel(screenCode(1920, 1080), 1, screenCode(1366, 768), 1.5))
  t.notOk(samePanel(screenCode(1920, 1200), 1, screenCode(1280, 720), 1.5))
})

t.test('the hardware key outlives what users change, and tells machines apart', async (t) => {
  const keyOf = (r: ReturnType<typeof windowsPc>) => hardwareKey(r.body, r.headers, r.userAgent)
  const key = keyOf(windowsPc())
  const updated = windowsPc()
  t.equal(keyOf({ ...updated, userAgent: updated.userAgent.replace('147', '148') }), key, 'browser update')
  t.equal(keyOf(windowsPc({ screenResolution: [1280, 720], devicePixelRatio: 1.5, timezone: 'UTC' })), key)
  t.equal(keyOf(windowsPc({ canvas: null, hardwareConcurrency: 4 })), key)
  const renderer = 'ANGLE (NVIDIA, NVIDIA GeForce RTX 3060 Direct3D11 vs_5_0 ps_5_0, D3D11-31.0.15.1659)'
  t.equal(keyOf(windowsPc({ webGlBasics: { rendererUnmasked: renderer } })), key, 'driver update')
  t.not(keyOf(windowsPc({ webGlBasics: { rendererUnmasked: 'Intel' } })), key)
  t.not(keyOf(firefox()), key)
  t.equal(keyOf(iphone({ timezone: 'Asia/Tokyo' })), keyOf(iphone()), 'an iPhone that travels')
  t.not(keyOf(iphone()), keyOf(iphone({ languages: [['cs-CZ']] })), 'iPhones are spread by language')
  t.equal(keyOf(iphone({ screenResolution: [844, 390] })), keyOf(iphone()), 'nor by turning them')
})
