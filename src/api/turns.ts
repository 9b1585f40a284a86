// Long work on the thread that accepts, in steps: one at a time, each followed by a rest as long as it took, so that whoever
// identifies meanwhile waits for one step at most and the thread is never taken for more than half of the time.

import type { Clock } from '../lib/clock.ts'

export interface Turns {
  /** Runs `step` when it is its turn. */
  take<T>(step: () => T): Promise<T>
}

export function openTurns(clock: Pick<Clock, 'monotonic' | 'sleep'>): Turns {
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
  }
}
