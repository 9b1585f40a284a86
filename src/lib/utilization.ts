// The share of its time in which a thread does something.

/**
 * The returned function tells the share, from 0 to 1, since it was called last. `sleptMs`: how long the thread has slept so far while its
 * event loop took it for busy.
 */
export function openUtilization(sleptMs: () => number = () => 0): () => number {
  let loop = performance.eventLoopUtilization()
  let sleptBefore = sleptMs()
  return () => {
    const now = performance.eventLoopUtilization()
    const { active, idle } = performance.eventLoopUtilization(now, loop)
    const slept = sleptMs()
    const share = (active - (slept - sleptBefore)) / (active + idle)
    loop = now
    sleptBefore = slept
    return Number.isNaN(share) ? 0 : Math.max(0, share)
  }
}
