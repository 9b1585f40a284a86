// Who waits for records of a partition: for durable ones, or for those that were submitted already.

import type { Clock } from '../lib/clock.ts'
import type { ReadLimits } from './log.ts'

export interface Readers {
  /** Ends the waits for what was submitted, or those for what is durable. */
  wake(submitted: boolean): void
  wakeAll(): void
  /** Resolves when woken, after `ms` or when `signal` aborts. */
  wait(limits: Pick<ReadLimits, 'submitted'>, ms: number, signal?: AbortSignal): Promise<void>
}

export function openReaders(clock: Clock): Readers {
  const waiting = new Set<{ readonly submitted: boolean; readonly wake: () => void }>()
  return {
    wake(submitted) {
      for (const reader of waiting) if (reader.submitted === submitted) reader.wake()
    },
    wakeAll() {
      for (const { wake } of waiting) wake()
    },
    async wait({ submitted = false }, ms, signal) {
      const woken = new AbortController()
      const reader = { submitted, wake: () => woken.abort() }
      waiting.add(reader)
      signal?.addEventListener('abort', reader.wake)
      try {
        await clock.sleep(ms, woken.signal)
      } finally {
        waiting.delete(reader)
        signal?.removeEventListener('abort', reader.wake)
      }
    },
  }
}
