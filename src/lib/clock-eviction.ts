// Making room in a map: an entry that was used since the last look stays once more. Keeping entries in order of use would cost
// each use two changes of the map.

import { SECOND_MS } from './durations.ts'

/** Of all entries, for one call: behind a pause nobody waits until each was looked at. */
const SHARE_MAX = 1 / 8

/** What the clock knows of an entry. */
export interface Watched {
  /** When it was found unused, in seconds of the clock's calls; whoever uses the entry sets null. */
  unusedSinceS: number | null
}

export interface ClockBounds {
  readonly entriesMax: number
  /**
   * What was not used for so long goes although there is room: not before half of it, and when it is twice as long as a rule, or half
   * of it later where most of the others went meanwhile. Pauses between calls count little.
   */
  readonly unusedMsMax: number
}

/** Each call looks at what has become due since the last one, and at more where entries are too many. `nowMs`: monotonic. */
export function openClock<K>(
  entries: Map<K, Watched>,
  { entriesMax, unusedMsMax }: ClockBounds,
): (nowMs: number, isKept: (key: K) => boolean) => void {
  const leastS = unusedMsMax / 2 / SECOND_MS
  let hand = entries.entries()
  let lookedMs: number | null = null
  /** When the hand was last at the beginning: its pace stays while entries go. */
  let sizeThen = 0
  /** Entries to be looked at, and a fraction of one that waits for the next call. */
  let due = 0

  return (nowMs, isKept) => {
    due += Math.max(sizeThen, entries.size) * Math.min(SHARE_MAX, (nowMs - (lookedMs ?? nowMs)) / unusedMsMax)
    lookedMs = nowMs
    const nowS = Math.floor(nowMs / SECOND_MS)
    // Once around finds what was not used, and once more lets it go. Only where entries are too many does a call begin anew.
    for (let looks = 2 * entries.size + 2; looks > 0 && (due >= 1 || entries.size > entriesMax); looks--) {
      due = Math.max(0, due - 1)
      const { value, done } = hand.next()
      if (done === true) {
        hand = entries.entries()
        sizeThen = entries.size
        due = 0
        continue
      }
      const [key, entry] = value
      const { unusedSinceS } = entry
      if (unusedSinceS === null) entry.unusedSinceS = nowS
      // Where many ahead of it went, the hand is back at once: how long ago it was here must be known.
      else if ((entries.size > entriesMax || nowS - unusedSinceS >= leastS) && !isKept(key)) entries.delete(key)
    }
    due %= 1
  }
}
