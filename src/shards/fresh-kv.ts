// The kv for readers: before it is asked for what decisions change, their owner brings it up to date.

import type { Kv, KvKey, Scope } from '../kv/kv.ts'
import { ruleStatKeys, visitorKey } from '../records/partitions.ts'
import type { Freshen } from './freshen.ts'

const CHANGED_BY_DECISIONS: ReadonlySet<string> = new Set([visitorKey('', 'live', '')[0], ruleStatKeys('').live[0]])
/** As long as it takes at most until the partition of an owner that died is decided by another one. */
const WAIT_MS_MAX = 5_000
const PARTITION = /^p\/(\d+)$/

/** What `freshen` does not bring up to date is read as old as it is. */
export function openFreshKv(kv: Kv, freshen: Freshen): Kv {
  async function freshened(scope: Scope, keys: readonly KvKey[]): Promise<void> {
    const [, partition] = PARTITION.exec(scope) ?? []
    if (partition === undefined || !keys.some(([collection]) => CHANGED_BY_DECISIONS.has(collection))) return
    await freshen(Number(partition), WAIT_MS_MAX).catch(() => undefined)
  }

  return {
    ...kv,
    async get(scope, keys) {
      await freshened(scope, keys)
      return kv.get(scope, keys)
    },
  }
}
