// When a shard sleeps between two turns of its loop, and for how long at most.

import t from 'tap'
import { openUtilization } from '../../src/lib/utilization.ts'
import { openCoalescing, TURN_MS_MAX } from '../../src/shards/coalescing.ts'

/** A shard whose clock and bell the test drives; a sleep lasts as long as it may. */
function open() {
  let nowMs = 1_000
  let rings = 0
  let isWaiting = true
  const slept: (readonly [rings: number, msMax: number])[] = []
  const coalescing = openCoalescing({
    bell: {
      rings: () => rings,
      sleep(before, msMax) {
        slept.push([before, msMax])
        nowMs += msMax
      },
    },
    clock: { monotonic: () => nowMs },
    isWaiting: () => isWaiting,
  })
  return {
    slept,
    coalescing,
    waiting(is: boolean) {
      isWaiting = is
    },
    turn(tookMs: number, rang = 0) {
      coalescing.began()
      nowMs += tookMs
      rings += rang
      coalescing.ended()
    },
  }
}

t.test(
  'behind a short turn it sleeps for the rest of its time, as long as nobody has rung since the turn began',
  async (t) => {
    const { slept, coalescing, turn } = open()
    turn(1)
    turn(2, 3)
    t.same(slept, [
      [0, TURN_MS_MAX - 1],
      [0, TURN_MS_MAX - 2],
    ])
    turn(1)
    t.same(slept.at(-1), [3, TURN_MS_MAX - 1])
    t.equal(coalescing.sleptMs(), 3 * TURN_MS_MAX - 4)
  },
)

t.test('it does not sleep behind a long turn, nor while nothing is on its way to the disk', async (t) => {
  const { slept, coalescing, turn, waiting } = open()
  turn(TURN_MS_MAX)
  turn(10 * TURN_MS_MAX)
  waiting(false)
  turn(1)
  t.same(slept, [])
  t.equal(coalescing.sleptMs(), 0)
})

t.test('a thread that slept is not taken for busy', async (t) => {
  let slept = 0
  const awake = openUtilization(() => slept)
  const all = openUtilization()
  const cell = new Int32Array(new SharedArrayBuffer(4))
  Atomics.wait(cell, 0, 0, 100)
  slept += 100
  await new Promise((resolve) => setTimeout(resolve, 10))
  const [share, before] = [awake(), all()]
  t.ok(before > 0.5, `${before}`)
  t.ok(share < before - 0.5, `${share} instead of ${before}`)
})
