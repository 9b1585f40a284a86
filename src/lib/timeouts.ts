// Many things that are waited for a bounded time: one sleeper for all of them instead of a timer for each. A signal for each would do
// the same, but Node keeps what waits for an aborted one from the scavenger (D227).

import type { Clock } from './clock.ts'
import { openInFlight } from './in-flight.ts'

const STEP_MS = 25

export interface Timeouts {
  /** Calls `expire` once, `ms` from now and at most 25 ms late, unless what is returned is called before. */
  add(ms: number, expire: () => void): () => void
}

interface Timeout {
  readonly dueAt: number
  readonly expire: () => void
}

export function openTimeouts(clock: Pick<Clock, 'monotonic' | 'sleep'>): Timeouts {
  const waiting = openInFlight<number, Timeout>((id) => id)
  let count = 0
  let isWatching = false

  async function watch(): Promise<void> {
    isWatching = true
    while (waiting.size() > 0) {
      await clock.sleep(STEP_MS)
      const now = clock.monotonic()
      const due: number[] = []
      for (const [id, { dueAt }] of waiting.entries()) if (dueAt <= now) due.push(id)
      for (const id of due) waiting.take(id)?.expire()
    }
    isWatching = false
  }

  return {
    add(ms, expire) {
      count += 1
      const id = count
      waiting.set(id, { dueAt: clock.monotonic() + ms, expire })
      if (!isWatching) void watch()
      return () => void waiting.take(id)
    },
  }
}
