// How often a batch may fail before one of its records is given up on (src/README.md, The protocol, 4): attempts are counted here, and
// a failing batch is halved until the record at fault stands alone.

import { Conflict, Unavailable } from '../lib/failures.ts'
import type { LogRecord } from '../log/log.ts'

const ATTEMPTS_MAX = 3

export interface PoisonRetry {
  readonly recordsMax: () => number
  attempt<T>(batch: readonly LogRecord[], decide: (poisoned: readonly number[]) => Promise<T>): Promise<T>
}

/** `givenUp`: records that are given up on at once. */
export function createPoisonRetry(recordsMax: number, givenUp: readonly number[] = []): PoisonRetry {
  let limit = recordsMax
  const failures = new Map(givenUp.map((seq) => [seq, ATTEMPTS_MAX]))

  return {
    recordsMax: () => limit,
    async attempt(batch, decide) {
      const poisoned = batch.map((r) => r.seq).filter((seq) => (failures.get(seq) ?? 0) >= ATTEMPTS_MAX)
      try {
        const result = await decide(poisoned)
        for (const { seq } of batch) failures.delete(seq)
        limit = Math.min(recordsMax, limit * 2)
        return result
      } catch (error) {
        // A port that does not answer is no fault of the records.
        if (!(error instanceof Unavailable) && !(error instanceof Conflict)) {
          limit = Math.max(1, batch.length >> 1)
          const [only] = batch
          if (batch.length === 1 && only !== undefined) failures.set(only.seq, (failures.get(only.seq) ?? 0) + 1)
        }
        throw error
      }
    },
  }
}
