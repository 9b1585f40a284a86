// What else of a partition's records ClickHouse can tell: how often rules matched, which visitors were erased, and how
// far that has come.

import type { ClickHouse } from '../clickhouse/clickhouse.ts'
import type { Env } from '../domain/event.ts'
import { putAll } from '../engine/replay.ts'
import { HAS_MONITORED, MONITORED_RULE } from '../events/detail-sql.ts'
import { EVENTS_TABLE } from '../events/row.ts'
import type { Kv, KvKey } from '../kv/kv.ts'
import { type ExecutedErasure, executedPuts } from '../records/erasure-progress.ts'
import { ERASED, type Tombstone } from '../records/erasures.ts'
import { partitionScope, ruleStatKeys } from '../records/partitions.ts'
import { ERASURES_TABLE } from '../sink/erase.ts'
import { SCAN } from './rebuild-read.ts'
import { BASE, type Base } from './rebuild-visitors.ts'

export interface RebuildCountsNeeds {
  readonly clickhouse: Pick<ClickHouse, 'query'>
  readonly kv: Pick<Kv, 'get' | 'commit'>
}

interface MatchRow {
  readonly workspace_id: string
  readonly env: Env
  readonly rule: string
  readonly hits: number
  readonly newest_at: number
}

const MATCHES = `count() AS hits, toUnixTimestamp64Milli(max(ts)) AS newest_at FROM ${EVENTS_TABLE} WHERE ${BASE}`
const TOMBSTONES_PAGE = 5_000

/** Sets the counters of every rule that events before the log's matched. Twice equals once. */
export async function rebuildRuleCounts({ clickhouse, kv }: RebuildCountsNeeds, base: Base): Promise<void> {
  const live = await clickhouse.query<MatchRow>(
    `SELECT workspace_id, env, arrayJoin(matched_rules) AS rule, ${MATCHES} GROUP BY workspace_id, env, rule`,
    { ...base },
    SCAN,
  )
  const monitored = await clickhouse.query<MatchRow>(
    `SELECT workspace_id, env, ${MONITORED_RULE} AS rule, ${MATCHES}
       AND ${HAS_MONITORED} GROUP BY workspace_id, env, rule`,
    { ...base },
    SCAN,
  )
  const scope = partitionScope(base.partition)
  const keysOf = ({ workspace_id, env, rule }: MatchRow) => ruleStatKeys(`${workspace_id}/${env}/${rule}`)
  await setCounters(kv, scope, [
    ...live.map((row) => [keysOf(row).live, row.hits] as const),
    ...monitored.map((row) => [keysOf(row).monitor, row.hits] as const),
  ])
  await putAll(
    kv,
    scope,
    live.map((row) => ({ key: keysOf(row).last, value: row.newest_at })),
  )
}

async function setCounters(
  kv: Pick<Kv, 'get' | 'commit'>,
  scope: string,
  counters: readonly (readonly [KvKey, number])[],
): Promise<void> {
  for (const [key, wanted] of counters) {
    // An interrupted run may have set it already.
    const [found] = await kv.get<number>(scope, [key])
    const by = wanted - (found?.value ?? 0)
    if (by !== 0) await kv.commit([{ scope, add: [[key, by]] }])
  }
}

interface Executed {
  readonly erased: string
  readonly erasure: string
  readonly erased_at: number
}

/** Erasures that ClickHouse has executed, by what they erased. */
async function* executedErasures(clickhouse: Pick<ClickHouse, 'query'>, partition: number): AsyncGenerator<Executed[]> {
  let after = ''
  for (;;) {
    const page = await clickhouse.query<Executed>(
      `SELECT erased_id AS erased, argMin(erasure_id, at) AS erasure, toUnixTimestamp64Milli(min(at)) AS erased_at
       FROM ${ERASURES_TABLE} WHERE log_partition = {partition:UInt16} AND erased_id > {after:String}
       GROUP BY erased_id ORDER BY erased LIMIT ${TOMBSTONES_PAGE}`,
      { partition, after },
      SCAN,
    )
    yield page
    const last = page.at(-1)
    if (last === undefined || page.length < TOMBSTONES_PAGE) return
    after = last.erased
  }
}

/** Writes what is left of visitors whose erasure ClickHouse has executed. Returns how many. */
export async function rebuildTombstones({ clickhouse, kv }: RebuildCountsNeeds, partition: number): Promise<number> {
  let count = 0
  for await (const page of executedErasures(clickhouse, partition)) {
    const put = page.map(({ erased, erasure, erased_at }) => {
      const value: Tombstone = { erasureId: erasure, at: erased_at }
      return { key: [ERASED, erased] as const, value }
    })
    await putAll(kv, partitionScope(partition), put)
    count += put.length
  }
  return count
}

/**
 * Writes how far these erasures have come, for whoever asks for them: executed now, because nobody knows what was removed from disks
 * since, and `seq` is the record of `events` up to which the log may hold what was decided before.
 */
export async function rebuildErasures(
  { clickhouse, kv }: RebuildCountsNeeds,
  partition: number,
  executed: Pick<ExecutedErasure, 'at' | 'seq'>,
): Promise<void> {
  for await (const page of executedErasures(clickhouse, partition)) {
    const erasures = page.map(({ erased, erasure, erased_at }) => {
      const [workspace, env] = erased.split('/') as [string, Env]
      return { erasureId: erasure, workspace, env, at: erased_at, erased }
    })
    await putAll(kv, partitionScope(partition), executedPuts(erasures, executed))
  }
}
