// The kv for readers: before it is asked for what decisions change, their owner brings it up to date.

import type { Kv, KvKey, Scope } from '../kv/kv.ts'
import { ruleStatKeys, visitorKey } from '../records/partitions.ts'

const CHANGED_BY_DECISIONS: ReadonlySet<string> = new Set([visitorKey('', 'live', '')[0], ruleStatKeys('').live[0]])
const PARTITION = /^p\/(\d+)$/

/** `freshen` resolves when the kv has what was answered before; what fails is read as old as it is. */
export function openFreshKv(kv: Kv, freshen: (partition: number) => Promise<unknown>): Kv {
  async function freshened(scope: Scope, keys: readonly KvKey[]): Promise<void> {
    const [, partition] = PARTITION.exec(scope) ?? []
    if (partition === undefined || !keys.some(([collection]) => CHANGED_BY_DECISIONS.has(collection))) return
    await freshen(Number(partition)).catch(() => undefined)
  }

  return {
    ...kv,
    async get(scope, keys) {
      await freshened(scope, keys)
      return kv.get(scope, keys)
    },
  }
}
