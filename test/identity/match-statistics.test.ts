// What is learned from traffic: bounded, the same after storing, followed slowly, and honest about newcomers.

import t from 'tap'
import { SAME_ADDRESS } from '../../src/identity/agreement.ts'
import { keeping, staying, versionsAt } from '../../src/identity/estimates.ts'
import {
  addObservation,
  LATER_PAIRS,
  newMatchStatistics,
  type Observation,
  packMatchStatistics,
  packObservation,
  unpackMatchStatistics,
  unpackObservation,
} from '../../src/identity/match-statistics.ts'
import { newConfidence } from '../../src/identity/new-confidence.ts'
import { returningNow, returnsOf } from '../../src/identity/returns.ts'
import { SHORTLIST_MAX, shortlist } from '../../src/identity/shortlist.ts'
import { versionRatio } from '../../src/identity/versions.ts'
import { newVisitor } from '../../src/identity/visitor.ts'
import { sized } from '../helpers/depth.ts'
import { rng, testSeed } from '../helpers/rng.ts'

const SEED = testSeed()
t.comment(`SEED=${SEED}`)

const pair: Observation = {
  kind: 'token',
  age: 1,
  compared: 0b11,
  equal: 0b01,
  network: SAME_ADDRESS,
  bin: -1,
  blind: 'none',
  alike: 0,
  isPrivate: false,
  hours: 100,
  major: 150,
  majorBefore: 149,
  source: 0,
  twin: -1,
  traits: [],
  strangerCompared: 0,
  strangerEqual: 0,
  audit: [],
}
const found: Observation = { ...pair, blind: 'found', alike: 1 }
const missed: Observation = { ...pair, blind: 'new', bin: 5 }
const link: Observation = { ...pair, kind: 'link', compared: 0, equal: 0, age: 0 }
const fresh: Observation = { ...link, kind: 'new', bin: 5, hours: -1 }

const LESSONS = sized({ quick: 300, usual: 600, long: 2_000 })

t.test('lessons and what they taught are the same after storing', async (t) => {
  const r = rng(SEED)
  const learned = newMatchStatistics()
  for (let i = 0; i < LESSONS; i++) {
    const lesson = r.pick([pair, found, missed, link, fresh])
    t.strictSame(unpackObservation(packObservation(lesson)), lesson) || t.bailout()
    addObservation(learned, lesson)
  }
  t.strictSame(unpackMatchStatistics(packMatchStatistics(learned)), learned)
  t.strictSame(unpackMatchStatistics([1, 2, 3]), newMatchStatistics(), 'of another build')
})

t.test('chances follow traffic from where the literature has them', async (t) => {
  const learned = newMatchStatistics()
  t.equal(keeping(learned, 0.9, 0, 1), 0.9)
  for (let i = 0; i < 1_000; i++) addObservation(learned, pair)
  t.ok(keeping(learned, 0.9, 0, 1) > 0.98, 'a value that keeps')
  t.ok(keeping(learned, 0.9, 1, 1) < 0.6, 'and one that does not')
  t.ok(keeping(learned, 0.9, 1, 1) > 0.5, 'though no further from there than a bound: it may have been sent to mislead')
  t.equal(keeping(learned, 0.9, 0, 3), 0.9, 'at this age of the earlier visit only')
  t.ok(staying(learned, SAME_ADDRESS, 1) > 0.9)
  t.ok(staying(learned, SAME_ADDRESS, 1) < 1)
})

t.test(
  'a version that few have says more than the newest, and an update is expected once others have it',
  async (t) => {
    const day = 86_400_000
    const learned = newMatchStatistics()
    for (let i = 0; i < 200; i++) addObservation(learned, { ...fresh, major: i % 20 === 0 ? 140 : 150 })
    const ratio = (known: number, seen: number, days: number) =>
      versionRatio(versionsAt(learned, 2), known, seen, days * day)
    t.ok(ratio(140, 140, 1) > 1 && ratio(140, 140, 1) > ratio(150, 150, 1) + 1, 'of few')
    t.ok(ratio(150, 150, 60) > -0.5, 'that nobody left is no news')
    t.ok(ratio(149, 150, 40) > ratio(149, 150, 0.1) + 1, 'after a release, and within the hour')
    t.ok(ratio(150, 140, 40) < -2, 'backward')
    t.ok(Number.isFinite(ratio(149, 150, 0)), 'at the same time')
    t.ok(ratio(149, 190, 1) <= -3, 'faster than releases come')
    t.equal(versionRatio(versionsAt(learned, 2), null, 150, day), 0)
    const before = ratio(149, 150, 10)
    for (let i = 0; i < 400; i++) addObservation(learned, { ...pair, age: 2, majorBefore: 149 })
    t.ok(ratio(149, 150, 10) > before, 'as tokens show it')
  },
)

t.test('versions that only one client claims push nobody out', async (t) => {
  const learned = newMatchStatistics()
  for (let i = 0; i < 150; i++) addObservation(learned, { ...fresh, major: 150 })
  const before = versionRatio(versionsAt(learned, 1), 140, 140, 0)
  for (let i = 0; i < 30; i++) addObservation(learned, { ...fresh, major: 1_000 + i })
  t.ok(Math.abs(versionRatio(versionsAt(learned, 1), 150, 150, 0)) < 0.5)
  t.ok(versionRatio(versionsAt(learned, 1), 140, 140, 0) > before - 0.5)
  t.equal(learned.versions.length, newMatchStatistics().versions.length)
})

t.test('what builds before counted is kept', async (t) => {
  const learned = newMatchStatistics()
  for (let i = 0; i < 50; i++) addObservation(learned, i % 2 === 0 ? pair : link)
  const { versions, updates, sources, providers, twins, rarity, audits } = newMatchStatistics()
  const packed = packMatchStatistics(learned)
  const added = [versions, updates, sources, providers, twins, rarity, audits]
  const older = packed.slice(0, packed.length - added.reduce((sum, list) => sum + list.length, LATER_PAIRS))
  t.strictSame(unpackMatchStatistics(older), { ...learned, versions, updates, providers })
  t.strictSame(unpackObservation(packObservation(pair).slice(0, 10)), { ...pair, major: -1, majorBefore: -1 })
})

t.test('counts stay bounded and old ones fade', async (t) => {
  const learned = newMatchStatistics()
  for (let i = 0; i < 60_000; i++) addObservation(learned, i % 2 === 0 ? found : link)
  const { returns, updates, ...others } = learned
  t.ok(packMatchStatistics({ ...others, returns: [], updates: [] }).every((count) => count <= 25_000))
  t.ok(updates.every((hundredths) => hundredths <= 25_000 * 100))
  t.ok(returns.every((hours) => hours <= 25_000 * 400 * 24))
  for (let i = 0; i < 60_000; i++) addObservation(learned, missed)
  t.ok(learned.blindFound < learned.blind / 4, 'what was found long ago')
})

t.test('a newcomer is certain as long as nobody was missed, and not beyond what hidden tokens show', async (t) => {
  const learned = newMatchStatistics()
  t.ok(newConfidence(learned, 1) > 0.98)
  for (let i = 0; i < 100; i++) addObservation(learned, fresh)
  t.ok(newConfidence(learned, 1) > 0.98)
  // Half of those who come back are missed: of 100 links' worth as many again look new.
  for (let i = 0; i < 40; i++) {
    addObservation(learned, found)
    addObservation(learned, missed)
    addObservation(learned, link)
  }
  const confidence = newConfidence(learned, 1)
  t.ok(confidence > 0.5 && confidence < 0.7, `${confidence}`)
  t.ok(newConfidence(learned, 0.1) <= confidence, 'grows with the chance')
  const { odds } = returnsOf(learned, false)
  t.ok(odds > 0.5 && odds < 2, `${odds}`)
})

t.test(
  'where few are accepted, devices still return: those left likelier known than new are counted too',
  async (t) => {
    const learned = newMatchStatistics()
    const unsure: Observation = { ...fresh, bin: 1 }
    for (let i = 0; i < 100; i++) {
      addObservation(learned, { ...missed, bin: 1 })
      addObservation(learned, unsure)
      if (i % 2 === 0) addObservation(learned, fresh)
    }
    const { odds } = returnsOf(learned, false)
    t.ok(odds > 1 && odds < 3, `nobody was linked, two of three came back: ${odds}`)
  },
)

t.test(
  'visits that hardly look new are told new with what the chance says, even if more seem to be missed',
  async (t) => {
    const learned = newMatchStatistics()
    for (let i = 0; i < 200; i++) {
      addObservation(learned, { ...missed, bin: 0 })
      addObservation(learned, link)
      if (i % 4 === 0) addObservation(learned, { ...fresh, bin: 0 })
    }
    const confidence = newConfidence(learned, 0.1)
    t.ok(confidence > 0.1 && confidence < 0.2, `${confidence}`)
  },
)

t.test('who lost a storage before does so again, and whoever opens private windows opens them again', async (t) => {
  const learned = newMatchStatistics()
  const hour = 3_600_000
  const weight = (privateVisits: number, tokenVisits: number, isPrivate: boolean, hours = 10) =>
    returningNow(
      returnsOf(learned, isPrivate),
      { ...newVisitor('pv_a', 0), totalVisits: 21, tokenVisits, privateVisits },
      hours * hour,
    )
  t.ok(weight(0, 0, false) > 2, 'always without')
  t.ok(weight(0, 20, false) < 0.2, 'never without')
  t.ok(weight(10, 10, false) < 0.3, 'only in private windows, and this is none')
  t.ok(weight(10, 10, true) > 2)
  const soon: Observation = { ...link, hours: 10 }
  for (let i = 0; i < 200; i++) addObservation(learned, i % 4 === 0 ? { ...link, hours: 2_000 } : soon)
  t.ok(weight(0, 10, false) > 5 * weight(0, 10, false, 1_000), 'after as long as others stay away')
})

t.test('nearly everybody seen in a private window was seen before, if newcomers come as often in one', async (t) => {
  const learned = newMatchStatistics()
  for (let i = 0; i < 300; i++) {
    addObservation(learned, found)
    addObservation(learned, fresh)
    addObservation(learned, link)
    addObservation(learned, { ...link, isPrivate: true })
    if (i % 10 === 0) addObservation(learned, { ...fresh, isPrivate: true })
  }
  t.ok(returnsOf(learned, true).odds > 2 * returnsOf(learned, false).odds)
})

t.test('the shortlist is the head of all in order of worth', async (t) => {
  const r = rng(SEED)
  const worths = { a: 2, b: 3, c: 4, d: 2, e: 3 }
  for (let round = 0; round < 200; round++) {
    const keys = ['e1', 'a1', 'b1', 'c1', 'd1'].filter(() => r.chance(0.8))
    const entries = keys.map(() => {
      const ids = Array.from({ length: 40 }, (_, i) => `v${i}`).filter(() => r.chance(0.3))
      return { ids, total: ids.length }
    })
    const worthOf = (id: string) =>
      keys.reduce((sum, key, k) => {
        const { ids } = entries[k] as { ids: string[] }
        const at = ids.indexOf(id)
        return at < 0 ? sum : sum + worths[key[0] as 'a'] + (at + 1) / ids.length / 16
      }, 0)
    const all = [...new Set(entries.flatMap(({ ids }) => ids))]
    const sorted = all.sort((a, b) => worthOf(b) - worthOf(a) || (a < b ? -1 : 1))
    t.strictSame(shortlist(keys, entries).ids, sorted.slice(0, SHORTLIST_MAX)) || t.bailout()
  }
})

t.test('whoever shares an address comes before a crowd that shares looks, and the list is bounded', async (t) => {
  const crowd = Array.from({ length: 32 }, (_, i) => `v${i}`)
  const entries = [{ ids: crowd, total: 400 }, null, { ids: ['neighbour', 'v3'], total: 2 }]
  const { ids, exact, totals } = shortlist(['e1', 'a1', 'c1'], entries)
  t.equal(ids.length, SHORTLIST_MAX)
  t.strictSame(ids.slice(0, 2), ['v3', 'neighbour'])
  t.ok(exact.includes('v3') && !exact.includes('neighbour'))
  t.strictSame(totals, { e: 400, c: 2 })
})
