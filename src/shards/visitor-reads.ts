// The state as an engine reads it, with a count of the visitors it did not hold: how well what it keeps in memory serves it.

import type { Kv } from '../kv/kv.ts'
import type { Tally } from '../lib/prometheus.ts'
import { VISITOR } from '../records/partitions.ts'

export interface VisitorReads {
  readonly found: Tally
  readonly absent: Tally
}

/** The same kv, of which reads of visitors are counted once they are answered. */
export function countVisitorReads<Port extends Pick<Kv, 'get'>>(kv: Port, { found, absent }: VisitorReads): Port {
  const get: Kv['get'] = async <T>(scope: string, keys: Parameters<Kv['get']>[1]) => {
    const entries = await kv.get<T>(scope, keys)
    for (const [at, [collection]] of keys.entries()) {
      if (collection === VISITOR) (entries[at] ? found : absent).add(1)
    }
    return entries
  }
  return { ...kv, get }
}
