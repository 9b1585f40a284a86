// What a shard does between two short turns of its loop while what it appended is on its way to the disk, or what it handed over is being
// decided: it sleeps until another thread has something for it, most often that this is done. Requests that arrive meanwhile are then read,
// decided, appended and flushed together, as a network card gathers packets instead of interrupting for each (D233, D240).

import type { Clock } from '../lib/clock.ts'
import type { Bell } from '../lib/doorbell.ts'
import type { TurnHooks } from '../lib/turn.ts'

export interface CoalescingNeeds {
  readonly bell: Bell
  readonly clock: Pick<Clock, 'monotonic'>
  /** Whether the shard has nothing to do before other threads are done with what it gave them. */
  readonly isWaiting: () => boolean
}

export interface Coalescing extends TurnHooks {
  /** Milliseconds slept so far. */
  sleptMs(): number
}

/** A turn and the sleep behind it take so long at most, unless the turn alone does: what sockets bring waits no longer for a sleep. */
export const TURN_MS_MAX = 4
/** Shorter sleeps are not worth their calls. */
const SLEEP_MS_MIN = 0.5

export function openCoalescing({ bell, clock, isWaiting }: CoalescingNeeds): Coalescing {
  let beganAt = 0
  let rings = 0
  let slept = 0
  return {
    began() {
      beganAt = clock.monotonic()
      rings = bell.rings()
    },
    ended() {
      const endedAt = clock.monotonic()
      const leftMs = TURN_MS_MAX - (endedAt - beganAt)
      if (leftMs < SLEEP_MS_MIN || !isWaiting()) return
      // What was sent since the turn began is not looked at yet: it ends the sleep at once.
      bell.sleep(rings, leftMs)
      slept += clock.monotonic() - endedAt
    },
    sleptMs: () => slept,
  }
}
