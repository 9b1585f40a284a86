// Time as a parameter. Nothing below app.ts reads the clock or sleeps by itself, so tests can drive both.

export interface Clock {
  /** Milliseconds since the Unix epoch. May jump when the machine's clock is set. */
  now(): number
  /** Milliseconds from an arbitrary origin; never jumps. For durations and deadlines. */
  monotonic(): number
  /** Resolves after `ms`, or at once when `signal` aborts (it never rejects). */
  sleep(ms: number, signal?: AbortSignal): Promise<void>
}

/** Some `everyMs` from now, with all others that beat so in this thread: an idle process is woken once for all its polls. */
export function nextBeat(
  clock: Pick<Clock, 'monotonic' | 'sleep'>,
  everyMs: number,
  signal?: AbortSignal,
): Promise<void> {
  const leftMs = everyMs - (clock.monotonic() % everyMs)
  return clock.sleep(leftMs < everyMs / 2 ? leftMs + everyMs : leftMs, signal)
}

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  sleep: (ms, signal) =>
    new Promise((resolve) => {
      if (signal?.aborted) return resolve()
      const done = () => {
        clearTimeout(timer)
        signal?.removeEventListener('abort', done)
        resolve()
      }
      const timer = setTimeout(done, ms)
      signal?.addEventListener('abort', done)
    }),
}
