// The figures of a backtest from counted groups, against numbers worked out by hand.

import t from 'tap'
import {
  byDay,
  type CountedGroup,
  estimateFpr,
  labelled,
  quality,
  totals,
  verdictMatrix,
  wilson,
} from '../../src/reads/backtest-figures.ts'

const group = (more: Partial<CountedGroup>): CountedGroup => ({
  day: '2026-11-20',
  verdict: 'allow',
  label: null,
  matched: false,
  events: 1,
  ...more,
})

const near = (actual: readonly [number, number], expected: readonly [number, number]) =>
  actual.every((x, i) => Math.abs(x - (expected[i] as number)) < 0.00005)

t.test('the Wilson interval is that of the books, and stays inside 0 and 1', async (t) => {
  t.ok(near(wilson({ part: 1, whole: 10 }), [0.0179, 0.4042]), '1 of 10')
  t.ok(near(wilson({ part: 5, whole: 10 }), [0.2366, 0.7634]), '5 of 10')
  t.ok(near(wilson({ part: 81, whole: 263 }), [0.2553, 0.3662]), '81 of 263')
  t.ok(near(wilson({ part: 0, whole: 50 }), [0, 0.0713]), '0 of 50')
  t.ok(near(wilson({ part: 50, whole: 50 }), [0.9287, 1]), '50 of 50')
  t.same(wilson({ part: 0, whole: 0 }), [0, 1], 'nothing is known')
  for (let whole = 1; whole < 200; whole += 7) {
    for (let part = 0; part <= whole; part++) {
      const [low, high] = wilson({ part, whole })
      if (!(low >= 0 && low <= part / whole && part / whole <= high && high <= 1)) t.fail(`${part} of ${whole}`)
    }
  }
})

t.test('fifty labels are a basis, fewer are not, and an empty proxy is none', async (t) => {
  t.match(estimateFpr({ part: 5, whole: 50 }, { part: 1, whole: 2 }), { estimatedFpr: 0.1, fprBasis: 'labels' })
  t.match(estimateFpr({ part: 5, whole: 49 }, { part: 1, whole: 2 }), { estimatedFpr: 0.5, fprBasis: 'proxy' })
  t.same(estimateFpr({ part: 5, whole: 49 }, { part: 0, whole: 0 }), {
    estimatedFpr: 0,
    fprBasis: 'none',
    fprInterval: null,
  })
  t.equal(estimateFpr({ part: 0, whole: 0 }, null).fprBasis, 'none')
  t.equal(estimateFpr({ part: 5, whole: 49 }, null).fprBasis, 'none', 'an allow rule has labels of fraud or nothing')
})

const GROUPS: readonly CountedGroup[] = [
  group({ label: 'fraud', matched: true, events: 30 }),
  group({ label: 'fraud', matched: false, events: 10 }),
  group({ label: 'legitimate', matched: true, events: 6, verdict: null }),
  group({ label: 'legitimate', matched: false, events: 54 }),
  group({ matched: true, events: 100, verdict: 'block', day: '2026-11-18' }),
  group({ events: 800, day: '2026-11-18' }),
]

t.test('precision and recall follow what the rule is for', async (t) => {
  t.same(quality(GROUPS, 'block'), { precision: 30 / 36, recall: 30 / 40 })
  t.same(quality(GROUPS, null), { precision: 30 / 36, recall: 30 / 40 })
  t.same(quality(GROUPS, 'allow'), { precision: 6 / 36, recall: 6 / 60 })
  t.same(quality(GROUPS.slice(4), 'block'), { precision: null, recall: null }, 'without labels there is none')
  t.same(labelled(GROUPS, 'legitimate'), { part: 6, whole: 60 })
  t.same(totals(GROUPS), { part: 136, whole: 1_000 })
})

t.test('the matrix counts matched events by the verdict they had', async (t) => {
  t.same(verdictMatrix(GROUPS, 'challenge'), { 'allow→challenge': 30, 'block→challenge': 100, 'none→challenge': 6 })
  t.same(verdictMatrix(GROUPS, null), {})
})

t.test('days without events are there, and the first and last are those of the window', async (t) => {
  const from = Date.UTC(2026, 10, 17, 13)
  t.same(byDay(GROUPS, from, Date.UTC(2026, 10, 20, 0, 0, 0, 1)), [
    { day: '2026-11-17', total: 0, matched: 0 },
    { day: '2026-11-18', total: 900, matched: 100 },
    { day: '2026-11-19', total: 0, matched: 0 },
    { day: '2026-11-20', total: 100, matched: 36 },
  ])
})
