// What fails again and again told once and then now and then, with how often it happened in between.

import type { Clock } from './clock.ts'

const EVERY_MS = 60_000

export function openRepeats(
  clock: Pick<Clock, 'monotonic'>,
  tell: (error: unknown, times: number) => void,
): (error: unknown) => void {
  let times = 0
  let toldAt = Number.NEGATIVE_INFINITY
  return (error) => {
    times++
    if (clock.monotonic() - toldAt < EVERY_MS) return
    toldAt = clock.monotonic()
    tell(error, times)
    times = 0
  }
}
