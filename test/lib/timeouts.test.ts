// What is waited for a bounded time: each ends once, by its time or before, and all of them share one sleeper.

import t from 'tap'
import { openTimeouts } from '../../src/lib/timeouts.ts'
import { rng, testSeed } from '../helpers/rng.ts'

/** A clock whose time passes only while somebody sleeps. */
function sleepingClock() {
  let nowMs = 0
  let sleeping = 0
  return {
    monotonic: () => nowMs,
    async sleep(ms: number) {
      sleeping += 1
      if (sleeping > 1) throw new Error('a second sleeper')
      await new Promise((resolve) => setImmediate(resolve))
      nowMs += ms
      sleeping -= 1
    },
  }
}

t.test('each expires once, when its time is over and at most 25 ms later, unless it was stopped', async (t) => {
  const seed = testSeed()
  t.comment(`seed ${seed}`)
  const random = rng(seed)
  const clock = sleepingClock()
  const timeouts = openTimeouts(clock)
  let open = 0
  let expired = 0
  let stopped = 0
  for (let step = 0; step < 400; step++) {
    for (let i = random.int(5); i > 0; i--) {
      const dueAt = clock.monotonic() + random.int(400)
      let isOver = false
      open++
      const stop = timeouts.add(dueAt - clock.monotonic(), () => {
        if (isOver) t.fail('ended twice')
        isOver = true
        open--
        expired++
        const lateMs = clock.monotonic() - dueAt
        if (lateMs < 0 || lateMs > 25) t.fail(`${lateMs} ms late`)
      })
      if (random.int(3) === 0) {
        setImmediate(() => {
          stop()
          stop()
          if (isOver) return
          isOver = true
          open--
          stopped++
        })
      }
    }
    await new Promise((resolve) => setImmediate(resolve))
  }
  while (open > 0) await new Promise((resolve) => setImmediate(resolve))
  t.ok(expired > 100 && stopped > 100, `${expired} expired, ${stopped} stopped`)
})
