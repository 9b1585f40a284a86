// Ranges of time that questions of analytics take.

const RANGE_DAY_MS = 86_400_000
const MINUTE_MS = 60_000

export type TimeRange = { readonly from: string; readonly to: string }

/** The days that an address asks for, where they are among those to choose from; else `usual`. */
export const daysOf = (asked: string | undefined, ranges: readonly (readonly [string, string])[], usual: string) =>
  ranges.find(([days]) => days === asked)?.[0] ?? usual

/** The days up to a moment; the running minute counts. */
export function rangeOf(days: number, toMs = (Math.floor(Date.now() / MINUTE_MS) + 1) * MINUTE_MS): TimeRange {
  return { from: new Date(toMs - days * RANGE_DAY_MS).toISOString(), to: new Date(toMs).toISOString() }
}
