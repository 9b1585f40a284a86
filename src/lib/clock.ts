// Time as a parameter: whoever needs it is given a clock by app.ts or by the entry of its thread, so that tests can drive it.

export interface Clock {
  /** Milliseconds since the Unix epoch. May jump when the machine's clock is set. */
  now(): number
  /** Milliseconds from an arbitrary origin; never jumps. For durations and deadlines. */
  monotonic(): number
  /** Resolves after `ms`, or at once when `signal` aborts (it never rejects). */
  sleep(ms: number, signal?: AbortSignal): Promise<void>
}

/** Some `everyMs` from now, with all others that beat so in this process: while it is idle it is woken once for all its polls. */
export function nextBeat(
  clock: Pick<Clock, 'monotonic' | 'sleep'>,
  everyMs: number,
  signal?: AbortSignal,
): Promise<void> {
  return clock.sleep(toBeatMs(clock, everyMs), signal)
}

function toBeatMs({ monotonic }: Pick<Clock, 'monotonic'>, everyMs: number): number {
  const leftMs = everyMs - (monotonic() % everyMs)
  return leftMs < everyMs / 2 ? leftMs + everyMs : leftMs
}

/** Calls `act` with every beat of `everyMs`, until the returned function is called. */
export function onEveryBeat(clock: Pick<Clock, 'monotonic'>, everyMs: number, act: () => void): () => void {
  let timer: NodeJS.Timeout
  function plan(): void {
    timer = setTimeout(beat, Math.ceil(toBeatMs(clock, everyMs)))
  }
  function beat(): void {
    plan()
    act()
  }
  plan()
  return () => clearTimeout(timer)
}

/** Threads count from when each began: with this they count from the same moment, and their beats fall together. */
const ORIGIN_MS = performance.timeOrigin % 3_600_000

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => ORIGIN_MS + performance.now(),
  sleep: (ms, signal) =>
    new Promise((resolve) => {
      if (signal?.aborted) return resolve()
      const done = () => {
        clearTimeout(timer)
        signal?.removeEventListener('abort', done)
        resolve()
      }
      // What is left of a millisecond would be cut off: whoever looks at the time then is woken twice.
      const timer = setTimeout(done, Math.ceil(ms))
      signal?.addEventListener('abort', done)
    }),
}
