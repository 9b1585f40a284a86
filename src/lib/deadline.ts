// Many things with the same time to live: one queue in order of arrival and one sleeper, instead of a timer for each.

import type { Clock } from './clock.ts'

const STEP_MS = 25

export interface Deadline {
  /** Calls `expire` once, `ms` from now and at most 25 ms late, unless what is returned is called before. */
  add(expire: () => void): () => void
}

export function openDeadline(clock: Pick<Clock, 'monotonic' | 'sleep'>, ms: number): Deadline {
  const waiting = new Map<() => void, number>()
  let isWatching = false

  async function watch(): Promise<void> {
    isWatching = true
    while (waiting.size > 0) {
      await clock.sleep(STEP_MS)
      const now = clock.monotonic()
      for (const [expire, dueAt] of waiting) {
        if (dueAt > now) break
        waiting.delete(expire)
        expire()
      }
    }
    isWatching = false
  }

  return {
    add(expire) {
      const once = () => expire()
      waiting.set(once, clock.monotonic() + ms)
      if (!isWatching) void watch()
      return () => void waiting.delete(once)
    },
  }
}
