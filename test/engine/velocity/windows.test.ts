// Counting in windows, against lists that forget nothing.

import t from 'tap'
import {
  addDistinct,
  collectDistinct,
  DISTINCT_MAX,
  type Distinct,
  distinctCount,
  putDistinct,
  readDistinct,
} from '../../../src/engine/velocity/distinct.ts'
import {
  addMoment,
  countMoments,
  EXACT_MAX,
  KEPT_MS,
  noMoments,
  putMoments,
  readMoments,
  removeMoment,
} from '../../../src/engine/velocity/moments.ts'
import { DAY_MS } from '../../../src/lib/durations.ts'
import { beginPacking, takePacked } from '../../../src/lib/packing.ts'
import { beginReading, endReading } from '../../../src/lib/unpacking.ts'
import { rng } from '../../helpers/rng.ts'

const T0 = Date.UTC(2026, 9, 1)

/** What is read of what was written. */
function reread<T>(put: () => void, read: () => T): T {
  beginPacking()
  put()
  beginReading(takePacked())
  const made = read()
  endReading()
  return made
}
const WINDOWS_MS = [300_000, 3_600_000, DAY_MS]
const SEED = Number(process.env.SEED ?? Date.now() % 1_000_000)

const within = (times: readonly number[], at: number, windowMs: number) =>
  times.filter((time) => time > at - windowMs && time <= at).length

t.test('an event on the edge of a window is out, one a millisecond later is in', async (t) => {
  for (const windowMs of WINDOWS_MS) {
    const moments = noMoments()
    addMoment(moments, T0)
    addMoment(moments, T0 + 1)
    t.equal(countMoments(moments, T0 + windowMs - 1, windowMs), 2)
    t.equal(countMoments(moments, T0 + windowMs, windowMs), 1)
    t.equal(countMoments(moments, T0 + windowMs + 1, windowMs), 0)
    t.equal(countMoments(moments, T0, windowMs), 1, 'what comes later does not count')
  }
})

t.test(`counts are exact while a day brings at most ${EXACT_MAX} events, in any order (seed ${SEED})`, async (t) => {
  const random = rng(SEED)
  for (let run = 0; run < 200; run++) {
    const span = random.pick([600_000, 7_200_000, 2 * KEPT_MS])
    const times = Array.from({ length: 1 + random.int(EXACT_MAX) }, () => T0 + random.int(span)).sort((a, b) => a - b)
    // A little out of order, as events of several processes come.
    for (let i = 1; i < times.length; i++) {
      if (random.chance(0.2)) times.splice(i - 1, 2, times[i] as number, times[i - 1] as number)
    }
    let moments = noMoments()
    for (const [i, at] of times.entries()) {
      addMoment(moments, at)
      if (random.chance(0.1)) moments = reread(() => putMoments(moments), readMoments)
      const newest = Math.max(...times.slice(0, i + 1))
      for (const windowMs of WINDOWS_MS) {
        const got = countMoments(moments, newest, windowMs)
        const right = within(times.slice(0, i + 1), newest, windowMs)
        if (got !== right) return t.fail(`run ${run}: ${got} instead of ${right} in ${windowMs} ms`)
      }
    }
  }
  t.pass('200 runs')
})

t.test('what was folded stays counted when all exact events are taken out, stored or not', async (t) => {
  const moments = noMoments()
  for (let i = 0; i < 2 * EXACT_MAX; i++) addMoment(moments, T0 + i * 60_000)
  const folded = 2 * EXACT_MAX - moments.times.length
  for (const at of [...moments.times]) removeMoment(moments, at)
  const at = T0 + 2 * EXACT_MAX * 60_000
  t.ok(folded > 0)
  t.equal(countMoments(moments, at, KEPT_MS), folded)
  const again = reread(() => putMoments(moments), readMoments)
  t.equal(countMoments(again, at, KEPT_MS), folded)
  addMoment(again, at)
  t.equal(countMoments(again, at, KEPT_MS), folded + 1)
})

t.test(`busy keys are wrong by at most the events of two cells, and stay small (seed ${SEED})`, async (t) => {
  const random = rng(SEED + 1)
  for (const gapMs of [50, 1_000, 20_000]) {
    const moments = noMoments()
    const times: number[] = []
    let at = T0
    let largest = 0
    for (let i = 0; i < 20_000; i++) {
      at += 1 + random.int(2 * gapMs)
      times.push(at)
      addMoment(moments, at)
      largest = Math.max(largest, moments.times.length + moments.cells.length)
      if (i % 997 !== 0) continue
      for (const windowMs of WINDOWS_MS) {
        const right = within(times, at, windowMs)
        const got = countMoments(moments, at, windowMs)
        const allowed = Math.max(2, (2 * right) / 30)
        if (Math.abs(got - right) > allowed) return t.fail(`gap ${gapMs}: ${got} instead of ${right} in ${windowMs} ms`)
      }
    }
    t.ok(largest <= EXACT_MAX + 130, `at most ${largest} numbers are kept`)
  }
})

t.test('an event of long ago changes nothing', async (t) => {
  const moments = noMoments()
  addMoment(moments, T0)
  addMoment(moments, T0 - KEPT_MS)
  t.equal(countMoments(moments, T0, DAY_MS), 1)
})

t.test(
  `distinct things are counted exactly up to ${DISTINCT_MAX}, each for a day after it was seen last (seed ${SEED})`,
  async (t) => {
    const random = rng(SEED + 2)
    let distinct: Distinct = []
    const lastSeen = new Map<number, number>()
    let at = T0
    for (let i = 0; i < 5_000; i++) {
      at += random.int(KEPT_MS / 100)
      const hash = random.int(300)
      addDistinct(distinct, hash, at)
      lastSeen.set(hash, at)
      if (random.chance(0.01))
        distinct = reread(
          () => putDistinct(distinct, at),
          () => readDistinct(at),
        )
      const right = [...lastSeen.values()].filter((last) => last > at - DAY_MS).length
      const found = new Set<number>()
      collectDistinct(distinct, at, found)
      if (found.size !== right) return t.fail(`step ${i}: ${found.size} instead of ${right}`)
    }
    for (let hash = 0; hash < 10_000; hash++) addDistinct(distinct, hash, at)
    t.equal(distinctCount(distinct), DISTINCT_MAX)
  },
)

t.test('what several counters saw is counted once', async (t) => {
  const [one, other]: Distinct[] = [[], []]
  for (const hash of [1, 2, 3]) addDistinct(one as Distinct, hash, T0)
  for (const hash of [3, 4]) addDistinct(other as Distinct, hash, T0 + 5)
  const found = new Set<number>()
  collectDistinct(one as Distinct, T0 + 5, found)
  collectDistinct(other as Distinct, T0 + 5, found)
  t.equal(found.size, 4)
})

t.test('an event that comes a little late still sees what was seen a day before it', async (t) => {
  const distinct: Distinct = []
  addDistinct(distinct, 7, T0)
  addDistinct(distinct, 7, T0 + DAY_MS + 60_000)
  const until = T0 + DAY_MS + 60_000
  const again = reread(
    () => putDistinct(distinct, until),
    () => readDistinct(until),
  )
  for (const held of [distinct, again]) {
    const seenAt = (at: number) => {
      const found = new Set<number>()
      collectDistinct(held, at, found)
      return found.size
    }
    t.equal(seenAt(T0 + DAY_MS - 30_000), 1)
    t.equal(seenAt(T0 + DAY_MS + 30_000), 0, 'in between nothing was')
    t.equal(seenAt(T0 + DAY_MS + 60_000), 1)
  }
})
