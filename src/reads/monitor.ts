// What a monitored rule would have changed: counted over the events that were decided while it was monitored as it is now. Every
// event carries the revision of the ruleset that decided it, and the audit log says how the rule was at which revision.

import type { ClickHouse } from '../clickhouse/clickhouse.ts'
import type { Env } from '../domain/event.ts'
import { EVENTS_TABLE } from '../events/row.ts'
import type { Kv } from '../kv/kv.ts'
import type { Clock } from '../lib/clock.ts'
import { DAY_MS } from '../lib/durations.ts'
import { readAudit } from '../records/audit.ts'
import { listErasing } from '../records/erasures.ts'
import { readRules, type StoredRule } from '../records/rules.ts'
import type { RetentionDays } from './event-rows.ts'
import { unerased } from './unerased.ts'

export interface MonitorNeeds {
  readonly clickhouse: Pick<ClickHouse, 'query'>
  readonly kv: Pick<Kv, 'get' | 'scan' | 'position'>
  readonly clock: Pick<Clock, 'now'>
  readonly partitions: number
  /** Older events do not exist for anyone, whether ClickHouse has dropped them yet or not. */
  readonly retentionDays: RetentionDays
}

export interface MonitorFigures {
  /** Events decided while the rule was monitored, and those of them that it matched. */
  readonly evaluated: number
  readonly matched: number
  /** `allow→block`: how many verdicts would have been others, had the rule been live. */
  readonly wouldChange: Readonly<Record<string, number>>
  /** Milliseconds; when the window or the monitoring began, whichever is later. */
  readonly since: number
}

/** Revisions `from` up to but without `to` decided with the rule monitored. */
interface Span {
  readonly from: number
  readonly to: number
  readonly since: number
}

interface GroupRow {
  readonly decision: string
  readonly decided_by: string
  readonly decided_priority: number
  readonly seen: number
  readonly hits: number
}

const VERSIONS_PAGE = 100
const NEVER = Number.MAX_SAFE_INTEGER

export type ReadMonitor = (workspace: string, env: Env, rule: StoredRule, days: number) => Promise<MonitorFigures>

export function openMonitor({ clickhouse, kv, clock, partitions, retentionDays }: MonitorNeeds): ReadMonitor {
  return async (workspace, env, rule, days) => {
    const oldest = clock.now() - Math.min(days, retentionDays(workspace)) * DAY_MS
    const span = await latestSpan(kv, workspace, env, rule.id)
    if (span === null) return { evaluated: 0, matched: 0, wouldChange: {}, since: oldest }
    const since = Math.max(oldest, span.since)
    const leftOut = unerased(await listErasing(kv, partitions, workspace, env))
    const where = `workspace_id = {workspace:String} AND env = {env:String} AND ts >= fromUnixTimestamp64Milli({oldest:Int64})
      AND rules_revision >= {from:UInt64} AND rules_revision < {to:UInt64} AND evaluation_error = ''${leftOut.sql}`
    const { from, to } = span
    // A decision may be a moment older than the command by which the rule began to count, if clocks differ.
    const params = { workspace, env, oldest, from, to, ...leftOut.params }
    // One question for both figures: rows that come between two would make more matches than events.
    const groups = await clickhouse.query<GroupRow>(
      `SELECT verdict AS decision, rule_id AS decided_by, rule_priority AS decided_priority, count() AS seen,
         countIf(has(monitor_rules, {rule:String})) AS hits
       FROM ${EVENTS_TABLE} WHERE ${where} GROUP BY decision, decided_by, decided_priority`,
      { ...params, rule: rule.id },
    )
    const isTied = (group: GroupRow) => group.decided_by !== '' && group.decided_priority === rule.priority
    const tied = groups.filter(isTied).map(({ decided_by }) => decided_by)
    const madeAt = await createdAtOf(kv, workspace, env, new Set(tied))
    /** Whether a live rule would have stayed in front: as the engine orders them, by priority, then age. */
    const decidesFirst = ({ decided_by: id, decided_priority: priority }: GroupRow): boolean => {
      if (id === '' || priority !== rule.priority) return id !== '' && priority < rule.priority
      const createdAt = madeAt.get(id) ?? 0
      return createdAt < rule.createdAt || (createdAt === rule.createdAt && id < rule.id)
    }
    const wouldChange: Record<string, number> = {}
    let evaluated = 0
    let matched = 0
    for (const group of groups) {
      const { decision, seen, hits } = group
      evaluated += seen
      matched += hits
      if (hits === 0) continue
      if (decidesFirst(group) || decision === rule.action.verdict) continue
      const change = `${decision}→${rule.action.verdict}`
      wouldChange[change] = (wouldChange[change] ?? 0) + hits
    }
    return { evaluated, matched, wouldChange, since }
  }
}

/** When rules were created; of those that are gone the audit log knows it. */
async function createdAtOf(kv: Pick<Kv, 'get' | 'scan'>, workspace: string, env: Env, ids: ReadonlySet<string>) {
  const there = await readRules(kv, workspace, env, [...ids])
  const madeAt = new Map(there.map(({ id, createdAt }) => [id, createdAt]))
  for (const id of ids) {
    if (madeAt.has(id)) continue
    await readAudit(kv, workspace, env, { resource: 'rule', id }, 1, null, ({ before, after }) => {
      const last = (after ?? before) as StoredRule | null
      if (last !== null) madeAt.set(id, last.createdAt)
      return false
    })
  }
  return madeAt
}

/** The newest stretch of time in which the rule was monitored with the same conditions and verdict; null: never. */
async function latestSpan(kv: Pick<Kv, 'get' | 'scan'>, workspace: string, env: Env, id: string): Promise<Span | null> {
  let span = null as Span | null
  let meaning = null as StoredRule | null
  let next = NEVER
  let before: number | null = null
  for (;;) {
    let isOver = false
    before = await readAudit(kv, workspace, env, { resource: 'rule', id }, VERSIONS_PAGE, before, (entry) => {
      const { seq, at } = entry
      const rule = entry.after as StoredRule | null
      const isMonitored = rule?.status === 'monitor'
      const same = isMonitored && (meaning === null || isSame(rule, meaning))
      isOver = span !== null && !same
      if (isOver) return false
      if (isMonitored) {
        span = { from: seq, to: span?.to ?? next, since: at }
        meaning = rule
      }
      next = seq
      return true
    })
    if (isOver || before === null) return span
  }
}

/** Versions that were read together share the conditions they have in common. */
const isSame = (one: StoredRule, other: StoredRule): boolean =>
  one.action.verdict === other.action.verdict &&
  (one.conditions === other.conditions || JSON.stringify(one.conditions) === JSON.stringify(other.conditions))
