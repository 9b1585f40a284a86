// How often a rule matched: the sum of what each partition counted.

import type { Env } from '../domain/event.ts'
import type { Kv } from '../kv/kv.ts'
import { partitionScope, ruleStatKeys } from '../records/partitions.ts'

export interface RuleStats {
  readonly matchCount: number
  /** Milliseconds since the epoch; null when it never matched. */
  readonly lastMatchAt: number | null
  readonly monitorMatchCount: number
}

export async function readRuleStats(
  kv: Pick<Kv, 'get'>,
  partitions: number,
  workspace: string,
  env: Env,
  ruleId: string,
): Promise<RuleStats> {
  const { live, monitor, last } = ruleStatKeys(`${workspace}/${env}/${ruleId}`)
  const counts = await Promise.all(
    Array.from({ length: partitions }, (_, partition) =>
      kv.get<number>(partitionScope(partition), [live, monitor, last]),
    ),
  )
  let matchCount = 0
  let monitorMatchCount = 0
  let lastMatchAt = 0
  for (const [matched, monitored, at] of counts) {
    matchCount += matched?.value ?? 0
    monitorMatchCount += monitored?.value ?? 0
    lastMatchAt = Math.max(lastMatchAt, at?.value ?? 0)
  }
  return { matchCount, lastMatchAt: lastMatchAt === 0 ? null : lastMatchAt, monitorMatchCount }
}
