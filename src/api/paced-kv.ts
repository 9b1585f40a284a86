// The kv for answers: embedded, it decodes what is read on the thread that accepts, and a hundred long records take as long as a
// hundred visits. Many keys are read in steps, and what turns out to be long takes turns with whatever else is.

import type { Kv, KvEntry, KvKey, Scope } from '../kv/kv.ts'
import type { Clock } from '../lib/clock.ts'
import { type PacedSteps, SHORT_MS } from './paced-steps.ts'

const KEYS_FIRST = 4

/** Up to four keys are read together as ever; of more, some may be newer than others. */
export function openPacedKv(kv: Kv, turns: PacedSteps, clock: Pick<Clock, 'monotonic'>): Kv {
  /** Collections whose records took long when they were last read: whoever reads them next waits for a turn. */
  const long = new Set<string>()

  /** Wrapped, because a turn must not last until a server answers. */
  async function inTurn<T>(collection: string, read: () => Promise<T>) {
    let tookMs = 0
    const step = () => {
      const startedMs = clock.monotonic()
      const reading = read()
      tookMs = clock.monotonic() - startedMs
      return { reading }
    }
    const { reading } = long.has(collection) ? await turns.take(step) : turns.atOnce(step)
    const isShort = tookMs < SHORT_MS
    if (isShort) long.delete(collection)
    else long.add(collection)
    return { found: await reading, isShort }
  }

  return {
    ...kv,
    async get<T>(scope: Scope, keys: readonly KvKey[]): Promise<(KvEntry<T> | null)[]> {
      const [first] = keys
      if (first === undefined) return []
      const all: (KvEntry<T> | null)[] = []
      for (let at = 0, atOnce = KEYS_FIRST; at < keys.length; ) {
        const some = keys.slice(at, at + atOnce)
        const { found, isShort } = await inTurn(first[0], () => kv.get<T>(scope, some))
        all.push(...found)
        at += atOnce
        atOnce = isShort ? atOnce * 4 : KEYS_FIRST
      }
      return all
    },

    scan: async (scope, collection, range) =>
      (await inTurn(collection, () => kv.scan(scope, collection, range))).found as never,
  }
}
