// So many in a second and no more, by a clock that never jumps.

import { SECOND_MS } from '../lib/durations.ts'

export interface Allowance {
  /** Whether there is one more now. */
  take(): boolean
}

export function openAllowance(perSecondMax: number, monotonic: () => number): Allowance {
  let left = perSecondMax
  let at = monotonic()
  return {
    take() {
      const now = monotonic()
      left = Math.min(perSecondMax, left + (perSecondMax * Math.max(0, now - at)) / SECOND_MS)
      at = now
      if (left < 1) return false
      left -= 1
      return true
    },
  }
}
