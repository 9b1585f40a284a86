// When stored moments make work due, with clocks that were ahead when they were stored.

import t from 'tap'
import { dueInMs } from '../../src/lib/due.ts'

t.test('work is due when its time has passed, and at once where its last time is still to come', async (t) => {
  const table: readonly (readonly [lastMs: number, everyMs: number, nowMs: number, dueInMs: number])[] = [
    [1_000, 500, 1_200, 300],
    [1_000, 500, 1_500, 0],
    [1_000, 500, 9_000, -7_500],
    [1_000, 500, 1_000, 500],
    [9_000, 500, 1_000, 0],
    [Number.NEGATIVE_INFINITY, 500, 0, Number.NEGATIVE_INFINITY],
  ]
  for (const [lastMs, everyMs, nowMs, due] of table) t.equal(dueInMs(lastMs, everyMs, nowMs), due)
})
