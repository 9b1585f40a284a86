// The arithmetic of analytics: edges of hours, days and weeks, and when a share has changed.

import t from 'tap'
import { bucketOf, bucketsIn, trendOf } from '../../src/reads/analytics-figures.ts'

const at = (text: string) => Date.parse(text)
const iso = (ms: number) => new Date(ms).toISOString()

t.test('a bucket begins with its first millisecond, whatever clocks do anywhere', async (t) => {
  const cases = [
    ['hour', '2026-03-29T01:00:00.000Z', '2026-03-29T01:00:00.000Z'],
    ['hour', '2026-03-29T01:59:59.999Z', '2026-03-29T01:00:00.000Z'],
    ['day', '2026-10-25T23:59:59.999Z', '2026-10-25T00:00:00.000Z'],
    ['day', '2024-02-29T12:00:00.000Z', '2024-02-29T00:00:00.000Z'],
    ['week', '2026-11-22T23:59:59.999Z', '2026-11-16T00:00:00.000Z'],
    ['week', '2026-11-23T00:00:00.000Z', '2026-11-23T00:00:00.000Z'],
    ['week', '2027-01-01T00:00:00.000Z', '2026-12-28T00:00:00.000Z'],
    ['week', '1970-01-01T00:00:00.000Z', '1969-12-29T00:00:00.000Z'],
  ] as const
  for (const [unit, moment, begin] of cases) t.equal(iso(bucketOf(at(moment), unit)), begin, `${unit} of ${moment}`)
})

t.test('a range has every bucket that it touches', async (t) => {
  const days = bucketsIn({ from: at('2026-11-20T23:59:59.999Z'), to: at('2026-11-22T00:00:00.000Z') }, 'day')
  t.same(days.map(iso), ['2026-11-20T00:00:00.000Z', '2026-11-21T00:00:00.000Z'])
  t.equal(bucketsIn({ from: at('2026-11-21T00:00:00Z'), to: at('2026-11-21T00:00:00.001Z') }, 'week').length, 1)
  t.equal(bucketsIn({ from: at('2026-01-01T00:00:00Z'), to: at('2026-04-01T00:00:00Z') }, 'hour').length, 90 * 24)
})

t.test('a share goes up or down only when it is sure, by a tenth, and of enough events', async (t) => {
  const cases = [
    [[30, 100], [10, 100], 'up'],
    [[10, 100], [30, 100], 'down'],
    [[30, 99], [10, 100], 'stable'],
    [[30, 100], [10, 99], 'stable'],
    [[12, 100], [10, 100], 'stable'],
    [[109_000, 1_000_000], [100_000, 1_000_000], 'stable'],
    [[110_500, 1_000_000], [100_000, 1_000_000], 'up'],
    [[0, 1_000], [0, 1_000], 'stable'],
    [[1_000, 1_000], [1_000, 1_000], 'stable'],
    [[5, 1_000], [0, 1_000], 'up'],
    [[0, 1_000], [3, 1_000], 'stable'],
    // 1.96 is where it becomes sure: z is 1.953 and 2.013.
    [[133, 1_000], [105, 1_000], 'stable'],
    [[134, 1_000], [105, 1_000], 'up'],
  ] as const
  for (const [now, then, trend] of cases) {
    const share = ([part, whole]: readonly [number, number]) => ({ part, whole })
    t.equal(trendOf(share(now), share(then)), trend, `${now.join('/')} after ${then.join('/')}`)
  }
})
