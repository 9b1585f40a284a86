// Asking again until there is an answer, where nobody tells when it comes.

import type { Clock } from './clock.ts'
import { Unavailable } from './failures.ts'

/** Milliseconds. Pauses double from `everyMs` to `everyMsMax`. */
export interface PollPace {
  readonly forMs: number
  readonly everyMs: number
  readonly everyMsMax?: number
  /** Nobody can have answered yet: a pause comes before the first question too. */
  readonly pauseFirst?: boolean
}

/** Resolves with the first answer that is not null; with null when the time is over or `signal` aborts. */
export async function pollUntil<T>(
  clock: Pick<Clock, 'monotonic' | 'sleep'>,
  { forMs, everyMs, everyMsMax = everyMs, pauseFirst = false }: PollPace,
  ask: () => Promise<T | null>,
  signal?: AbortSignal,
): Promise<T | null> {
  const deadline = clock.monotonic() + forMs
  let pauseMs = everyMs
  for (let isFirst = true; ; isFirst = false) {
    if (!isFirst || !pauseFirst) {
      const answer = await ask()
      if (answer !== null) return answer
    }
    if (signal?.aborted || clock.monotonic() >= deadline) return null
    await clock.sleep(pauseMs, signal)
    if (signal?.aborted) return null
    pauseMs = Math.min(everyMsMax, pauseMs * 2)
  }
}

/** The same question, answered with null while the backend cannot serve. */
export const whenAvailable =
  <T>(ask: () => Promise<T | null>) =>
  (): Promise<T | null> =>
    ask().catch((error: unknown) => {
      if (error instanceof Unavailable) return null
      throw error
    })
