// Ranges of time that questions of analytics take.

export const DAY_MS = 86_400_000
const MINUTE_MS = 60_000

export type Range = { readonly from: string; readonly to: string }

/** The days up to a moment; the running minute counts. */
export function rangeOf(days: number, toMs = (Math.floor(Date.now() / MINUTE_MS) + 1) * MINUTE_MS): Range {
  return { from: new Date(toMs - days * DAY_MS).toISOString(), to: new Date(toMs).toISOString() }
}
