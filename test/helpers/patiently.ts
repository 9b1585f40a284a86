// Asking again while a server is away.

import { Unavailable } from '../../src/lib/failures.ts'
import { pause } from './processes.ts'

/** Runs `call` until it does not fail with Unavailable any more; for `msMax` milliseconds at most. */
export async function patiently<T>(call: () => Promise<T>, msMax = 60_000): Promise<T> {
  for (const deadline = performance.now() + msMax; ; ) {
    try {
      return await call()
    } catch (error) {
      if (!(error instanceof Unavailable) || performance.now() > deadline) throw error
      await pause(20)
    }
  }
}
