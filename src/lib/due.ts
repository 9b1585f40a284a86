// When work is due again that was last done at a stored moment of the wall clock, which people and NTP set back at times.

/**
 * Milliseconds until `everyMs` have passed since `lastMs`, 0 or less when they have. A moment that is still to come was told by a clock
 * that was ahead: waiting for it would stop the work for as long, so it counts as due.
 */
export const dueInMs = (lastMs: number, everyMs: number, nowMs: number): number =>
  lastMs > nowMs ? 0 : lastMs + everyMs - nowMs
