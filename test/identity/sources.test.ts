// Who may teach the matcher, and how much: one network and one visitor only their share, what is a disguise nothing.

import t from 'tap'
import { newMatchStatistics } from '../../src/identity/match-statistics.ts'
import { recognise } from '../../src/identity/matcher.ts'
import { observationBit, observationOf } from '../../src/identity/observation.ts'
import { mayTeach, newSources, noteSource, sourceOf } from '../../src/identity/sources.ts'
import { newVisitor } from '../../src/identity/visitor.ts'
import { packVisitor, unpackVisitor } from '../../src/identity/visitor-record.ts'
import { attributesOf, windowsPc } from '../helpers/recognition.ts'

const DAY_MS = 86_400_000
const AT = Date.UTC(2026, 4, 1)

t.test(
  'a network teaches a twentieth of the lessons of late at most, whatever number of visitors it has',
  async (t) => {
    const sources = newSources()
    const one = sourceOf('192.0.2.66')
    let taken = 0
    for (let i = 0; i < 5_000; i++) {
      for (const source of [one, sourceOf(`10.${i >> 6}.${(i & 63) * 4}.1`)]) {
        if (!mayTeach(sources, source)) continue
        noteSource(sources, source)
        if (source === one) taken++
      }
    }
    t.ok(taken > 10, `${taken}`)
    t.ok(taken <= 0.055 * 5_000, `${taken} of 5,000 lessons`)
  },
)

t.test('a /24 and a /48 are one network each', async (t) => {
  t.equal(sourceOf('192.0.2.1'), sourceOf('192.0.2.254'))
  t.equal(sourceOf('2001:db8:7::1'), sourceOf('2001:db8:7:ffff::2'))
  t.not(sourceOf('192.0.2.1'), sourceOf('192.0.3.1'))
})

t.test('a visitor teaches once after each kind of absence', async (t) => {
  const attributes = attributesOf(windowsPc())
  const known = { ...newVisitor('pv_1', AT), profile: attributes.profile, totalVisits: 1 }
  const token = { visitorId: 'pv_1', generation: 1, issuedAt: AT }
  const lesson = (taught: number, atMs: number, learned = newMatchStatistics()) => {
    const tokenVisitor = { ...known, taught }
    const input = {
      attributes,
      ip: '192.0.2.1',
      atMs,
      token,
      tokenVisitor,
      exact: [],
      linked: [],
      incognito: false,
      learned,
    }
    return observationOf(input, recognise(input), null)
  }
  const bit = observationBit(known, AT + 2 * DAY_MS)
  t.ok(lesson(0, AT + 2 * DAY_MS))
  t.equal(lesson(bit, AT + 3 * DAY_MS), null)
  t.ok(lesson(bit, AT + 20 * DAY_MS), 'after weeks it is another lesson')
  t.equal(unpackVisitor(packVisitor({ ...known, taught: bit })).taught, bit, 'which is kept with it')
  const full = newMatchStatistics()
  for (let i = 0; i < 2; i++) noteSource(full.sources, sourceOf('192.0.2.1'))
  t.equal(lesson(0, AT + 2 * DAY_MS, full), null, 'nor beyond the share of its network')
})
