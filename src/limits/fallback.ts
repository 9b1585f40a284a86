// Limits that go on while the shared ones cannot be asked: by counters of this process, which is better than refusing everybody
// and better than refusing nobody.

import type { Clock } from '../lib/clock.ts'
import { Unavailable } from '../lib/failures.ts'
import { openTimeouts } from '../lib/timeouts.ts'
import type { Limits } from './limits.ts'

/** A slow answer is none: every request waits for it. */
const WAIT_MS_MAX = 250
/** After a failure nobody waits for the shared ones for so long. */
const PAUSE_MS = 1_000

export interface FallbackConfig {
  readonly shared: Limits
  readonly local: Limits
  readonly clock: Pick<Clock, 'monotonic' | 'sleep'>
}

/** Closing it closes both. */
export function openFallbackLimits({ shared, local, clock }: FallbackConfig): Limits {
  const timeouts = openTimeouts(clock)
  let pausedUntil = Number.NEGATIVE_INFINITY

  function inTime<T>(work: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const late = () => reject(new Unavailable('the shared limits do not answer'))
      const stop = timeouts.add(WAIT_MS_MAX, late)
      work.then(resolve, reject).finally(stop)
    })
  }

  return {
    async take(key, rules, cost) {
      if (clock.monotonic() < pausedUntil) return local.take(key, rules, cost)
      try {
        return await inTime(shared.take(key, rules, cost))
      } catch (error) {
        if (!(error instanceof Unavailable)) throw error
        pausedUntil = clock.monotonic() + PAUSE_MS
        return local.take(key, rules, cost)
      }
    },
    async close() {
      await Promise.all([shared.close(), local.close()])
    },
  }
}
