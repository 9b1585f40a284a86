// Devices with a look-alike at the same address: how many there are is learned from tokens, and says how sure a link there can be.

import t from 'tap'
import { SAME_ADDRESS } from '../../src/identity/agreement.ts'
import { twinShare } from '../../src/identity/estimates.ts'
import {
  addObservation,
  newMatchStatistics,
  type Observation,
  packMatchStatistics,
  packObservation,
  unpackMatchStatistics,
  unpackObservation,
} from '../../src/identity/match-statistics.ts'
import { type RecogniseInput, recognise } from '../../src/identity/matcher.ts'
import { observationOf } from '../../src/identity/observation.ts'
import type { VisitorState } from '../../src/identity/visitor.ts'
import { attributesOf, iphone, openStore, windowsPc } from '../helpers/recognition.ts'

const HOME = '203.0.113.7'
const DAY_MS = 86_400_000
const lesson = (twin: -1 | 0 | 1): Observation => ({
  ...unpackObservation([0, 1]),
  network: SAME_ADDRESS,
  hours: 30,
  twin,
})

function learnedWith(share: number, visits = 2_000) {
  const learned = newMatchStatistics()
  for (let i = 0; i < visits; i++) addObservation(learned, lesson(i < visits * share ? 1 : 0))
  return learned
}

t.test('the share of look-alikes follows what tokens prove, within a factor of eight of what is assumed', async (t) => {
  const assumed = twinShare(newMatchStatistics())
  t.ok(Math.abs(assumed - 0.05) < 1e-9)
  t.ok(twinShare(learnedWith(0.01)) < 0.012)
  t.ok(Math.abs(twinShare(learnedWith(0.1)) - 0.1) < 0.01)
  t.ok(twinShare(learnedWith(1, 15_000)) < 0.31, 'whoever sends nothing but look-alikes does not decide it')
  t.ok(twinShare(learnedWith(0, 15_000)) > 0.006)
  const learned = learnedWith(0.1)
  t.same(unpackMatchStatistics(packMatchStatistics(learned)).twins, learned.twins)
  for (let i = 0; i < 50_000; i++) addObservation(learned, lesson(0))
  t.ok(twinShare(learned) < 0.02, 'and is forgotten')
  addObservation(learned, lesson(-1))
  t.equal(unpackObservation(packObservation(lesson(1))).twin, 1)
  t.equal(
    unpackObservation(packObservation(lesson(1)).slice(0, 13)).twin,
    -1,
    'lessons of builds before say nothing of it',
  )
})

t.test(
  'where many have a look-alike at home a link there is less sure, and a second profile is never sure',
  async (t) => {
    const store = openStore()
    const { visitor } = store.visit(windowsPc(), HOME)
    const confidenceWith = (share: number | null) => {
      const input: RecogniseInput = {
        attributes: attributesOf(windowsPc()),
        ip: HOME,
        atMs: visitor.lastSeenAt + DAY_MS,
        token: null,
        tokenVisitor: null,
        exact: [visitor],
        linked: [],
        incognito: false,
        totals: { a: 1, b: 1, c: 1, d: 1, e: 1, f: 1 },
        ...(share === null ? {} : { statistics: learnedWith(share) }),
      }
      return recognise(input).scores[0]?.posterior ?? 0
    }
    t.ok(confidenceWith(0.01) > confidenceWith(0.05))
    t.ok(confidenceWith(0.05) > confidenceWith(0.2))
    t.ok(confidenceWith(null) < 0.98)
  },
)

t.test(
  'a look-alike counts when it has a token of its own, was at the address and lives at the same time',
  async (t) => {
    const store = openStore()
    const own = store.visit(windowsPc(), HOME)
    const attributes = attributesOf(windowsPc())
    const atMs = own.visitor.lastSeenAt + 2 * DAY_MS
    const twinWith = (other: Partial<VisitorState>) => {
      const twin: VisitorState = { ...own.visitor, id: 'pv_00000000000000000099', tokenVisits: 3, ...other }
      const input = {
        attributes,
        ip: HOME,
        atMs,
        token: own.token,
        tokenVisitor: own.visitor,
        exact: [own.visitor, twin],
        linked: [],
        incognito: false,
      }
      const blind = recognise({ ...input, token: null, tokenVisitor: null })
      return observationOf(input, recognise(input), blind)?.twin
    }
    t.equal(twinWith({}), 1)
    t.equal(twinWith({ tokenVisits: 0 }), 0, 'it may be a copy')
    t.equal(twinWith({ networks: [] }), 0, 'it was never there')
    t.equal(twinWith({ lastSeenAt: own.visitor.firstSeenAt - 1 }), 0, 'it was gone before')
    t.equal(twinWith({ id: own.visitor.id }), 0, 'nobody is a look-alike of itself')
  },
)

t.test(
  'a record that is probably of the same device is no stranger, and right when a hidden token leads to it',
  async (t) => {
    const store = openStore()
    const own = store.visit(windowsPc(), HOME)
    const atMs = own.visitor.lastSeenAt + 2 * DAY_MS
    const { firstSeenAt } = own.visitor
    const auditWith = (newness: number, other: Partial<VisitorState>) => {
      const visitor = { ...own.visitor, newness }
      const older = { ...own.visitor, id: 'pv_00000000000000000099', newness: 0.99, totalVisits: 9, ...other }
      const input = {
        attributes: attributesOf(windowsPc()),
        ip: HOME,
        atMs,
        token: own.token,
        tokenVisitor: visitor,
        exact: [older, visitor],
        linked: [],
        incognito: false,
      }
      const blind = recognise({ ...input, token: null, tokenVisitor: null })
      t.equal(blind.scores[0]?.visitorId, older.id, 'the other one looks likelier')
      return observationOf(input, recognise(input), blind)?.audit
    }
    const gone = { firstSeenAt: firstSeenAt - 9 * DAY_MS, lastSeenAt: firstSeenAt - 60_000 }
    const places = (one: readonly number[] | undefined) => (one ?? []).map((place) => place % 3)
    const FIRST_BIN = 2
    t.same(places(auditWith(0.1, gone)), [0, 2])
    t.equal(auditWith(0.1, gone)?.[1], FIRST_BIN, 'nobody else is there')
    t.same(places(auditWith(0.9, gone)), [1, 2], 'who was surely new when it began is another device')
    t.ok((auditWith(0.9, gone)?.[1] ?? 0) > FIRST_BIN)
    t.same(places(auditWith(0.1, { ...gone, lastSeenAt: firstSeenAt + DAY_MS })), [1, 2], 'both lived at one time')
    t.same(auditWith(0.1, { privateVisits: 9 }), [], 'private windows prove nothing')
  },
)

t.test('how many had the whole look is counted, and what is assumed of its parts does not outweigh that', async (t) => {
  const store = openStore()
  const { visitor } = store.visit(iphone(), HOME)
  const likelihood = (e: number, a: number) => {
    const totals = { a, d: e, e }
    const { scores } = recognise({
      attributes: attributesOf(iphone()),
      ip: '198.51.100.7',
      atMs: visitor.lastSeenAt + 3 * DAY_MS,
      token: null,
      tokenVisitor: null,
      exact: [visitor],
      linked: [],
      incognito: false,
      totals,
      statistics: { ...newMatchStatistics(), visitors: 4_000 },
    })
    return scores[0]?.posterior ?? 0
  }
  t.ok(likelihood(1, 1) > 3 * likelihood(10, 10))
  t.equal(likelihood(1, 40), likelihood(1, 1), 'the rest of them is known not to have it')
})
