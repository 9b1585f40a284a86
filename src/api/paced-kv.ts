// The kv for answers: embedded, it decodes what is read on the thread that accepts, and a hundred long records take as long as a
// hundred visits. Many keys are read in steps, and what turns out to be long takes turns with whatever else is.

import type { Entry, Key, Kv, Scope } from '../kv/kv.ts'
import type { Clock } from '../lib/clock.ts'
import type { Turns } from './turns.ts'

const KEYS_FIRST = 4
/** A step that took less is followed by a larger one at once. */
const SHORT_MS = 0.5

/** Up to four keys are read together as ever; of more, some may be newer than others. */
export function openPacedKv(kv: Kv, turns: Turns, clock: Pick<Clock, 'monotonic'>): Kv {
  return {
    ...kv,
    async get<T>(scope: Scope, keys: readonly Key[]): Promise<(Entry<T> | null)[]> {
      if (keys.length <= KEYS_FIRST) return kv.get<T>(scope, keys)
      const found: (Entry<T> | null)[] = []
      let tookMs = 0
      const read = (some: readonly Key[]) => {
        const startedMs = clock.monotonic()
        const reading = kv.get<T>(scope, some)
        tookMs = clock.monotonic() - startedMs
        // Wrapped, because a turn must not last until a server answers.
        return { reading }
      }
      for (let at = 0, atOnce = KEYS_FIRST; at < keys.length; ) {
        const some = keys.slice(at, at + atOnce)
        const isShort = at > 0 && tookMs < SHORT_MS
        const { reading } = isShort ? read(some) : await turns.take(() => read(some))
        found.push(...(await reading))
        at += atOnce
        if (tookMs < SHORT_MS) atOnce *= 4
        else atOnce = KEYS_FIRST
      }
      return found
    },
  }
}
