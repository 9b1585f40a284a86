// Reads of more keys than one get takes.

import { GET_KEYS_MAX } from './checks.ts'
import type { Kv, KvEntry, KvKey, Scope } from './kv.ts'

/** In the order of the keys. Asks before it returns, so that what is asked after the call is answered after it. */
export async function getAll<T>(
  kv: Pick<Kv, 'get'>,
  scope: Scope,
  keys: readonly KvKey[],
): Promise<readonly (KvEntry<T> | null)[]> {
  if (keys.length <= GET_KEYS_MAX) return kv.get<T>(scope, keys)
  const parts: ReturnType<typeof kv.get<T>>[] = []
  for (let from = 0; from < keys.length; from += GET_KEYS_MAX) {
    parts.push(kv.get<T>(scope, keys.slice(from, from + GET_KEYS_MAX)))
  }
  return (await Promise.all(parts)).flat()
}
