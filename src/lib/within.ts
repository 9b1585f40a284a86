// One promise that is waited for a bounded time. For very many at once there is timeouts.ts.

import type { Clock } from './clock.ts'

/**
 * Resolves with what `work` resolves with (undefined where that is nothing), with null when `ms` milliseconds have passed before; fails as
 * it fails until then. The work goes on behind that, and if it fails there nobody is told.
 */
export async function within<T>(clock: Pick<Clock, 'sleep'>, ms: number, work: Promise<T>): Promise<T | null> {
  const settled = new AbortController()
  const late = clock.sleep(ms, settled.signal).then(() => null)
  try {
    return await Promise.race([work, late])
  } finally {
    settled.abort()
  }
}
