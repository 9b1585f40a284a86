// Visitor state: bounded in every part, small when stored, and the same after storing.

import { pack, unpack } from 'msgpackr'
import t from 'tap'
import { deviceOf } from '../../src/identity/attributes.ts'
import { addAccount, countAccounts, knowsAccount, type LinkedAccounts } from '../../src/identity/linked-accounts.ts'
import { VALUE_NAMES } from '../../src/identity/profile.ts'
import {
  newVisitor,
  recordVerdict,
  recordVisit,
  type VisitFacts,
  type VisitorState,
} from '../../src/identity/visitor.ts'
import { packVisitor, readLife, unpackVisitor } from '../../src/identity/visitor-record.ts'
import { Unreadable } from '../../src/lib/failures.ts'
import { sized } from '../helpers/depth.ts'
import { attributesOf, bareLinux, firefox, iphone, windowsPc } from '../helpers/recognition.ts'
import { type Rng, rng, testSeed } from '../helpers/rng.ts'

const ID = 'pv_abcdefghijABCDEFGHIJ'
const T0 = Date.UTC(2026, 0, 1)
const DAY = 86_400_000

function visit(atMs: number, ip: string, more: Partial<VisitFacts> = {}, request = windowsPc()): VisitFacts {
  const attributes = attributesOf(request)
  const device = deviceOf(attributes, request.body)
  const told = { method: 'exact', token: null, generation: 1, confidence: 0.95, linkedId: null } as const
  return { atMs, ip, attributes, device, ...told, ...more }
}

function randomVisitor(random: Rng): VisitorState {
  const state = newVisitor(ID, T0 + random.int(DAY * 300))
  for (let i = random.int(60); i >= 0; i--) {
    const request = random.pick([windowsPc, firefox, iphone, bareLinux])({
      screenResolution: [1000 + random.int(2000), 700 + random.int(500)],
      timezone: random.pick(['UTC', 'Europe/Prague', 'America/New_York', 'Asia/Tokyo']),
    })
    const token = random.chance(0.5) ? { visitorId: ID, generation: 1 + random.int(4), issuedAt: 1 } : null
    recordVisit(
      state,
      visit(
        T0 + random.int(DAY * 300),
        `${random.int(256)}.0.113.${random.int(256)}`,
        {
          method: token === null ? 'linked' : 'token',
          token,
          generation: 1 + random.int(4),
          linkedId: random.chance(0.3) ? `user_${random.int(20)}` : null,
        },
        request,
      ),
    )
    recordVerdict(state, random.pick(['allow', 'challenge', 'block', null]))
  }
  return state
}

/** Of the first build. */
const FIELDS_FIRST = 19
const VISITORS = sized({ quick: 50, usual: 100, long: 400 })

t.test('what is stored is what is read, for any visitor', async (t) => {
  const seed = testSeed()
  t.comment(`seed ${seed}`)
  const random = rng(seed)
  for (let i = 0; i < VISITORS; i++) {
    const state = randomVisitor(random)
    t.same(unpackVisitor(packVisitor(state)), state)
  }
  t.same(unpackVisitor(packVisitor(newVisitor(ID, T0))), newVisitor(ID, T0))
})

t.test('when a visitor was here is read alone as with the rest, of records of earlier builds too', async (t) => {
  const seed = testSeed()
  t.comment(`seed ${seed}`)
  const random = rng(seed)
  for (let i = 0; i < VISITORS; i++) {
    const state = randomVisitor(random)
    // Texts of each form: their length stands in front of them in none, one or two bytes.
    const gpu = random.pick([null, 'ANGLE', 'ANGLE'.padEnd(40, '.'), 'ANGLE'.padEnd(400, '.')])
    state.devices.unshift({ platform: 'Windows', browser: 'Chrome 141', gpu })
    const all = unpack(packVisitor(state)) as unknown[]
    const bytes = pack(all.slice(0, FIELDS_FIRST + random.int(all.length - FIELDS_FIRST + 1)))
    const { firstSeenAt, lastSeenAt, totalVisits, privateVisits, refutedFrom, olderAt } = unpackVisitor(bytes)
    t.same(readLife(bytes), { firstSeenAt, lastSeenAt, totalVisits, privateVisits, refutedFrom, olderAt })
  }
  t.throws(() => readLife(pack([2, ID, T0])), Unreadable)
})

t.test('a usual visitor with three networks takes less than 600 bytes', async (t) => {
  const state = newVisitor(ID, T0)
  const scales = [1, 1.5, 1.25]
  for (let i = 0; i < 40; i++) {
    const request = windowsPc({
      devicePixelRatio: scales[i % 3],
      timezone: i % 9 === 0 ? 'Asia/Tokyo' : 'Europe/Prague',
    })
    recordVisit(state, visit(T0 + i * DAY, `203.0.${i % 3}.7`, { linkedId: `user_${i % 2}` }, request))
    recordVerdict(state, 'allow')
  }
  const bytes = packVisitor(state)
  t.comment(`${bytes.length} bytes`)
  t.equal(state.networks.length, 3)
  t.ok(bytes.length <= 600, `${bytes.length} bytes`)
  t.equal(bytes.buffer.byteLength, bytes.length, 'in memory of its own')
})

t.test('no number of visits makes a visitor grow without bound', async (t) => {
  const state = newVisitor(ID, T0)
  for (let i = 0; i < 3_000; i++) {
    const request = windowsPc({
      screenResolution: [1000 + i, 800],
      webGlBasics: { renderer: `GPU ${i}` },
      timezone: `Zone/${i}`,
      canvas: { geometry: `g${i}`, text: 't', stable: true },
    })
    recordVisit(state, visit(T0 + i * 1000, `2001:db8:${(i % 5000).toString(16)}::1`, { linkedId: `u${i}` }, request))
  }
  t.match(state, { networks: { length: 4 }, devices: { length: 10 }, ips: { length: 20 }, totalVisits: 3_000 })
  for (const list of state.alternates) t.ok(list.length <= 2)
  t.equal(state.accounts.hashes.length, 1_000)
  t.ok(packVisitor(state).length < 12_000)
})

t.test('events out of order keep the earliest and latest time, and the latest profile', async (t) => {
  const state = newVisitor(ID, T0)
  recordVisit(state, visit(T0, '203.0.113.1', {}, windowsPc({ devicePixelRatio: 1 })))
  recordVisit(state, visit(T0 - 50 * DAY, '203.0.114.1', {}, windowsPc({ devicePixelRatio: 2 })))
  t.match(state, { firstSeenAt: T0 - 50 * DAY, lastSeenAt: T0, totalVisits: 2 })
  t.equal(state.profile?.values[VALUE_NAMES.indexOf('devicePixelRatio')], 1)
  t.equal(state.networks.length, 1, 'addresses older than 30 days are forgotten')
  t.same(state.ips, ['203.0.113.*', '203.0.114.*'], 'the latest first')
  recordVisit(state, visit(T0 + DAY, '203.0.113.1', {}, windowsPc({ devicePixelRatio: undefined })))
  t.equal(state.profile?.values[VALUE_NAMES.indexOf('devicePixelRatio')], 1, 'what is not told stays known')
})

t.test('an updated browser is the same device profile', async (t) => {
  const state = newVisitor(ID, T0)
  for (const [i, version] of ['146', '147', '146'].entries()) {
    const request = windowsPc()
    recordVisit(
      state,
      visit(T0 + i, '203.0.113.1', {}, { ...request, userAgent: request.userAgent.replace('147', version) }),
    )
  }
  t.same(state.devices, [{ platform: 'Windows', browser: 'Chrome 146', gpu: 'NVIDIA GeForce RTX 3060' }])
})

t.test('verdicts are counted', async (t) => {
  const state = newVisitor(ID, T0)
  for (const verdict of ['allow', 'block', 'allow', null] as const) recordVerdict(state, verdict)
  t.match(state, { verdicts: { allow: 2, challenge: 0, block: 1 }, lastVerdict: null })
})

t.test('linked accounts are exact to 1,000 and within 15 % beyond', async (t) => {
  const accounts: LinkedAccounts = { hashes: [], full: false }
  for (let i = 0; i < 1_000; i++) {
    addAccount(accounts, `user_${i}`)
    addAccount(accounts, `user_${i >> 1}`)
    if (countAccounts(accounts) !== i + 1) t.fail(`${i}`)
  }
  t.ok(knowsAccount(accounts, 'user_999'))
  t.notOk(knowsAccount(accounts, 'user_1000'))
  for (let i = 1_000; i < 20_000; i++) addAccount(accounts, `user_${i}`)
  const count = countAccounts(accounts)
  t.ok(count > 17_000 && count < 23_000, `${count}`)
  for (let i = 0; i < 20_000; i++) addAccount(accounts, `user_${i}`)
  t.equal(countAccounts(accounts), count, 'the same accounts again change nothing')
})

t.test('bytes that are no visitor are refused by class', async (t) => {
  for (const bytes of [new Uint8Array(0), Uint8Array.of(0xc1), Uint8Array.of(0x01), Uint8Array.of(0x91, 0x63)]) {
    t.throws(() => unpackVisitor(bytes), Unreadable)
  }
})
