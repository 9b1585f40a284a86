// When a visit shows two records to be one device, and when it must not: a copied browser, two lives at one time, a guess.

import t from 'tap'
import { healingOf, mayHeal } from '../../src/identity/healing.ts'
import { recognise } from '../../src/identity/matcher.ts'
import type { VisitorState } from '../../src/identity/visitor.ts'
import { attributesOf, openStore, windowsPc } from '../helpers/recognition.ts'

const HOME = '203.0.113.7'
const DAY_MS = 86_400_000
const KEYS = ['a1', 'b1', 'c1', 'd1', 'e1', 'f1']

/** A device was `older`, lost its token, and comes back as `own` a day later. */
function comesBack(
  change: { older?: Partial<VisitorState>; own?: Partial<VisitorState>; others?: readonly VisitorState[] } = {},
) {
  const store = openStore()
  const { visitor, token } = store.visit(windowsPc(), HOME)
  const seenAt = visitor.lastSeenAt
  const since = { networks: visitor.networks.map((one) => ({ ...one, lastAt: seenAt + DAY_MS })) }
  const older: VisitorState = { ...visitor, id: 'pv_00000000000000000001', ...change.older }
  const own: VisitorState = {
    ...visitor,
    ...since,
    firstSeenAt: seenAt + DAY_MS,
    lastSeenAt: seenAt + DAY_MS,
    generationAt: seenAt + DAY_MS,
    ...change.own,
  }
  const exact = [older, own, ...(change.others ?? [])]
  const count = exact.length
  const input = {
    attributes: attributesOf(windowsPc()),
    ip: HOME,
    atMs: seenAt + 2 * DAY_MS,
    token: { ...token, issuedAt: seenAt + DAY_MS },
    tokenVisitor: own,
    exact,
    linked: [],
    incognito: false,
    totals: Object.fromEntries(KEYS.map((key) => [key[0], count])),
  }
  const { confidence } = recognise(input)
  return { healing: healingOf(input, own, input.token, confidence, KEYS), older, own, input }
}

t.test('a visitor that came when another had gone for good, with its looks, at its home, is that one', async (t) => {
  const { healing, older, own } = comesBack()
  t.match(healing, { visitorId: own.id, survivor: older.id })
  t.ok((healing?.confidence ?? 0) >= 0.95)
})

t.test('two that lived at one time are two, but for one that was only ever in private windows', async (t) => {
  const { input } = comesBack()
  const until = input.atMs - DAY_MS / 2
  t.equal(comesBack({ older: { lastSeenAt: until } }).healing, null)
  t.equal(comesBack({ older: { lastSeenAt: until }, own: { privateVisits: 0 } }).healing, null)
  const isPrivate = comesBack({ older: { lastSeenAt: until }, own: { privateVisits: 1, totalVisits: 1 } })
  t.match(isPrivate.healing, { survivor: isPrivate.older.id })
})

t.test('a copied browser heals nobody: its token lives twice, so both are in doubt', async (t) => {
  t.equal(comesBack({ older: { refutedFrom: 2, refutedTo: 2, generation: 2 } }).healing, null)
  t.equal(comesBack({ own: { refutedFrom: 2, refutedTo: 2, generation: 2 } }).healing, null)
  t.equal(comesBack({ older: { olderAt: 1 } }).healing, null, 'an older storage of it came back')
  const { own } = comesBack()
  t.notOk(mayHeal({ ...own, refutedFrom: 2 }))
  t.notOk(mayHeal({ ...own, olderAt: 1 }))
})

t.test('a token that was given out with a guess shows nothing, nor does an older one', async (t) => {
  t.equal(comesBack({ own: { generationChance: 0.85 } }).healing, null)
  t.equal(comesBack({ own: { generation: 2 } }).healing, null)
})

t.test('where somebody else looks the same at that address, nobody is healed', async (t) => {
  const { older } = comesBack()
  const twin = { ...older, id: 'pv_00000000000000000002', tokenVisits: 3 }
  t.equal(comesBack({ others: [twin] }).healing, null)
})

t.test('others are looked up at the first return, the second, the fourth and so on', async (t) => {
  const { own } = comesBack()
  const looked = Array.from({ length: 20 }, (_, tokenVisits) => mayHeal({ ...own, tokenVisits }))
  t.same(
    looked.flatMap((is, i) => (is ? [i + 1] : [])),
    [1, 2, 4, 8, 16],
  )
})
