// Long work on the thread that accepts, in steps: one at a time, each followed by a rest as long as it took, so that whoever
// identifies meanwhile waits for one step at most and the thread is never taken for more than half of the time.

import type { Clock } from '../lib/clock.ts'

export interface PacedSteps {
  /** Runs `step` when it is its turn. */
  take<T>(step: () => T): Promise<T>
  /** Runs `step` at once. When that took long, the next turn comes after a rest as long. */
  atOnce<T>(step: () => T): T
}

/** What takes less is not long. */
export const SHORT_MS = 0.5

export function openPacedSteps(clock: Pick<Clock, 'monotonic' | 'sleep'>): PacedSteps {
  let last: Promise<unknown> = Promise.resolve()
  return {
    take<T>(step: () => T): Promise<T> {
      const turn = last.then(() => {
        const startedMs = clock.monotonic()
        try {
          return { done: step() }
        } finally {
          tookMs = clock.monotonic() - startedMs
        }
      })
      let tookMs = 0
      const rest = () => clock.sleep(tookMs)
      last = turn.then(rest, rest)
      return turn.then(({ done }) => done)
    },
    atOnce(step) {
      const startedMs = clock.monotonic()
      const done = step()
      const tookMs = clock.monotonic() - startedMs
      if (tookMs >= SHORT_MS) last = last.then(() => clock.sleep(tookMs))
      return done
    },
  }
}
