// The references that recognition is compared with, and the counting of who is right.

import t from 'tap'
import type { Answer } from '../../bench/identity/answer.ts'
import { createExactHash } from '../../bench/identity/exact-hash.ts'
import { createFpStalker, similarity } from '../../bench/identity/fp-stalker.ts'
import { openPopulation, type Truth, type Visit } from '../../bench/identity/population.ts'
import { createTally, wilson } from '../../bench/identity/tally.ts'

const DAY_MS = 86_400_000

/** Any visit of a Windows PC with Chrome, as raw material. */
const base = (() => {
  const visits = openPopulation({ devices: 60, days: 30, seed: 3, perturb: null, half: 'even' }).visits()
  for (const visit of visits) {
    if (visit.truth.platform === 'windows' && visit.truth.browser === 'chrome' && !visit.truth.isPrivate) return visit
  }
  throw new Error('no PC in the population')
})()

function visitOf(device: number, values: Readonly<Record<string, unknown>> = {}, more: Partial<Visit> = {}): Visit {
  const components = { ...base.body.components }
  for (const [name, value] of Object.entries(values)) components[name] = { value }
  return {
    ...base,
    ...more,
    body: { ...base.body, components },
    truth: { ...base.truth, device, tokenless: true, isPrivate: false },
  }
}
const withToken = (visit: Visit): Visit => ({ ...visit, truth: { ...visit.truth, tokenless: false } })
const updated = (visit: Visit): Visit => {
  const agent = visit.headers['user-agent'] ?? ''
  const next = agent.replace(/Chrome\/(\d+)/, (_, major) => `Chrome/${Number(major) + 1}`)
  return { ...visit, headers: { ...visit.headers, 'user-agent': next } }
}

t.test('exact hash merges equal devices and loses every change', async (t) => {
  const hash = createExactHash(false)
  const { id } = hash.answer(visitOf(1))
  t.equal(hash.answer(visitOf(2)).id, id)
  t.equal(hash.answer(updated(visitOf(1))).id, id, 'the version is no part of it')
  t.not(hash.answer(visitOf(1, { timezone: 'Asia/Tokyo' })).id, id)
})

t.test('exact hash with a token keeps what the token names', async (t) => {
  const hash = createExactHash(true)
  const { id } = hash.answer(visitOf(1))
  t.equal(hash.answer(withToken(visitOf(1, { timezone: 'Asia/Tokyo' }))).id, id)
})

t.test('the rules follow small changes and never a canvas, an older version or a second candidate', async (t) => {
  const fresh = () => {
    const rules = createFpStalker(false)
    return { rules, id: rules.answer(visitOf(1)).id }
  }
  for (const [name, visit, same] of [
    ['nothing', visitOf(1), true],
    ['a newer version', updated(visitOf(1)), true],
    ['another time zone', visitOf(1, { timezone: 'Asia/Tokyo' }), true],
    ['time zone and screen', visitOf(1, { timezone: 'Asia/Tokyo', screenResolution: [1, 1] }), false],
    ['another canvas', visitOf(1, { canvas: { geometry: 'x', text: 'y' } }), false],
  ] as const) {
    const { rules, id } = fresh()
    t.equal(rules.answer(visit).id === id, same, name)
  }
  const back = createFpStalker(false)
  const newer = back.answer(updated(visitOf(1))).id
  t.not(back.answer(visitOf(1)).id, newer, 'an older version')

  const two = createFpStalker(false)
  const a = two.answer(visitOf(1, { timezone: 'Asia/Tokyo' })).id
  const b = two.answer(visitOf(2, { screenResolution: [1, 1] })).id
  t.not(a, b)
  t.notOk([a, b].includes(two.answer(visitOf(3)).id), 'two candidates are none')
})

t.test('the rules forget after thirty days', async (t) => {
  const rules = createFpStalker(false)
  const { id } = rules.answer(visitOf(1))
  const later = visitOf(1, {}, { atMs: base.atMs + 29 * DAY_MS })
  t.equal(rules.answer(later).id, id)
  t.not(rules.answer({ ...later, atMs: later.atMs + 31 * DAY_MS }).id, id)
})

t.test('similarity is one for equal texts, zero for strangers', async (t) => {
  t.equal(similarity('abc', 'abc'), 1)
  t.equal(similarity('abc', 'xyz'), 0)
  t.equal(similarity('', ''), 1)
  t.equal(similarity('abcd', 'abxd'), 0.75)
})

t.test('a tally tells merges, splits and links apart', async (t) => {
  const tally = createTally()
  const truth = (device: number, returning: boolean, tokenless = true): Truth => ({
    device,
    platform: 'windows',
    browser: 'chrome',
    fleet: false,
    returning,
    tokenless,
    isPrivate: false,
  })
  const answer = (id: string, confidence = 0.95): Answer => ({ id, confidence })
  tally.add(truth(1, false), answer('a'))
  tally.add(truth(2, false), answer('a'))
  tally.add(truth(1, true), answer('a'))
  tally.add(truth(1, true), answer('b'))
  tally.add(truth(2, true), answer('b', 0.5))
  tally.add(truth(2, true), answer('c'))
  tally.add(truth(2, true, false), answer('c', 0.995))
  const result = tally.result()
  t.equal(result.visits, 7)
  t.strictSame(result.hard, { n: 4, correct: 1, wrong: 1, split: 2 })
  t.strictSame(result.families, { Chrome: result.hard })
  t.equal(result.falseMerges, 2 / 7)
  t.equal(result.newMerged, 1 / 2)
  t.match(result.linkPrecision, { n: 3, right: 1 })
  t.equal(result.stable, 3 / 5)
  t.match(result.sureLinks, { Chrome: { n: 2, right: 1 } })
  t.match(result.sureFound, { Chrome: { n: 3, right: 2 } })
  t.match(result.frontier.at(-4), { confidenceMin: 0.9, linked: 1 / 4, wrong: 0, newMerged: 1 / 2, precision: 1 / 2 })
  t.equal(result.pairPrecision, (pairs(2) + pairs(2)) / (pairs(3) + pairs(2) + pairs(2)))
})

const pairs = (n: number): number => (n * (n - 1)) / 2

t.test('the lower end of an interval is far off for few and near for many', async (t) => {
  t.ok(Math.abs(wilson(98, 100).lower - 0.93) < 0.005)
  t.ok(wilson(9_800, 10_000).lower > 0.977)
  t.strictSame(wilson(0, 0), { n: 0, right: 0, share: 0, lower: 0 })
})
