// How fast a receiver is called: as many attempts at once as it bears, a breaker while it is down, and a mark while it is slow, so
// that it cannot take the places of others. Times are monotonic milliseconds.

const AT_ONCE_MAX = 32
const SUCCESSES_TO_GROW = 10
const OUTAGES_TO_OPEN = 5
const OUTAGES_WITHIN_MS = 60_000
const OPEN_MS = 30_000
const OPEN_MS_MAX = 300_000
const SLOW_MS = 2_000
const DURATIONS_KEPT = 16

export interface Pace {
  /** Attempts that may be under way at once. */
  atOnce: number
  successes: number
  /** Times of the failures since the last success that speak of an outage, the newest OUTAGES_TO_OPEN. */
  outages: number[]
  /** Nothing is sent before; 0: the breaker is closed. */
  openUntil: number
  openMs: number
  /** The newest attempts. */
  durations: number[]
}

export const newPace = (): Pace => ({
  atOnce: AT_ONCE_MAX,
  successes: 0,
  outages: [],
  openUntil: 0,
  openMs: OPEN_MS,
  durations: [],
})

/** Closed again: somebody says that the receiver is well. */
export function closeCircuit(pace: Pace): void {
  pace.outages = []
  pace.openUntil = 0
  pace.openMs = OPEN_MS
}

/** Attempts that may be begun now, with `inFlight` under way. After the breaker's time one attempt has to find out. */
export function roomIn(pace: Pace, inFlight: number, now: number): number {
  if (pace.openUntil > now) return 0
  return (pace.openUntil > 0 ? 1 : pace.atOnce) - inFlight
}

export const isSlow = (pace: Pace): boolean => pace.openUntil > 0 || isMedianAbove(pace.durations, SLOW_MS)

export function recordAttempt(
  pace: Pace,
  { ok, outage, durationMs, now }: { ok: boolean; outage: boolean; durationMs: number; now: number },
): void {
  pace.durations.push(durationMs)
  if (pace.durations.length > DURATIONS_KEPT) pace.durations.shift()
  if (ok) {
    closeCircuit(pace)
    pace.successes += 1
    if (pace.successes % SUCCESSES_TO_GROW === 0) pace.atOnce = Math.min(AT_ONCE_MAX, pace.atOnce + 1)
    return
  }
  if (!outage) return
  pace.successes = 0
  pace.atOnce = Math.max(1, Math.floor(pace.atOnce / 2))
  pace.outages.push(now)
  if (pace.outages.length > OUTAGES_TO_OPEN) pace.outages.shift()
  if (pace.openUntil > now) return
  const isProbe = pace.openUntil > 0
  const [first = now] = pace.outages
  const areMany = pace.outages.length === OUTAGES_TO_OPEN && now - first <= OUTAGES_WITHIN_MS
  if (!isProbe && !areMany) return
  if (isProbe) pace.openMs = Math.min(OPEN_MS_MAX, pace.openMs * 2)
  pace.openUntil = now + pace.openMs
}

/** Without sorting: this is asked for every attempt. */
function isMedianAbove(values: readonly number[], bound: number): boolean {
  let above = 0
  for (const value of values) if (value > bound) above += 1
  return above > 0 && above >= values.length - (values.length >> 1)
}
