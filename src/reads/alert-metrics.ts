// The figures alerts are about, over the last while of one environment.

import type { ClickHouse } from '../clickhouse/clickhouse.ts'
import type { Alert, AlertFilters } from '../domain/alert.ts'
import type { Env } from '../domain/event.ts'
import { decodeEventsRecord } from '../events/record.ts'
import { EVENTS_TABLE } from '../events/row.ts'
import type { Kv } from '../kv/kv.ts'
import type { Clock } from '../lib/clock.ts'
import type { Log } from '../log/log.ts'
import { readTally } from '../records/deliveries.ts'
import { listErasing } from '../records/erasures.ts'
import { decodeIdentification } from '../records/identification.ts'
import { DECIDED_TO, partitionScope, SINK_POSITION } from '../records/partitions.ts'
import { readWebhooks } from '../records/webhooks.ts'
import { SIGNAL_COLUMNS } from './signal-columns.ts'
import { unerased } from './unerased.ts'

export interface AlertMetricsNeeds {
  readonly clickhouse: Pick<ClickHouse, 'query'>
  readonly kv: Pick<Kv, 'get' | 'scan' | 'position'>
  readonly log: Pick<Log, 'read'>
  readonly partitions: number
  readonly clock: Pick<Clock, 'now'>
}

export interface Measured {
  readonly value: number
  /** What it was measured on: events, or deliveries. */
  readonly events: number
}

/** `to` in milliseconds, exclusive. Fails with Unavailable. */
export type MeasureAlert = (workspace: string, env: Env, alert: Alert, to: number) => Promise<Measured>

const ONE = { recordsMax: 1, bytesMax: 1, waitMsMax: 0 }
const WINDOW = `workspace_id = {workspace:String} AND env = {env:String}
  AND ts >= fromUnixTimestamp64Milli({from:Int64}) AND ts < fromUnixTimestamp64Milli({to:Int64})`

/** Which events count at all; what a rate is the share of is not among them. */
function whereOf({ verdict, ruleId, signal, platform }: AlertFilters, metric: Alert['metric']) {
  const terms: string[] = []
  const params: Record<string, unknown> = {}
  if (verdict !== undefined && metric !== 'block_rate') {
    terms.push('verdict = {verdict:String}')
    params.verdict = verdict
  }
  if (ruleId !== undefined && metric !== 'match_rate') {
    terms.push('has(matched_rules, {rule:String})')
    params.rule = ruleId
  }
  if (signal !== undefined && metric !== 'signal_rate') terms.push(SIGNAL_COLUMNS[signal])
  if (platform !== undefined) {
    terms.push('platform = {platform:String}')
    params.platform = platform
  }
  return { sql: terms.map((term) => ` AND ${term}`).join(''), params }
}

function partOf({ metric, filters }: Alert): { readonly sql: string; readonly params: Record<string, unknown> } {
  if (metric === 'block_rate') return { sql: "verdict = 'block'", params: {} }
  if (metric === 'signal_rate') return { sql: SIGNAL_COLUMNS[filters.signal ?? 'bot'], params: {} }
  if (metric === 'match_rate') {
    return filters.ruleId === undefined
      ? { sql: 'notEmpty(matched_rules)', params: {} }
      : { sql: 'has(matched_rules, {rule:String})', params: { rule: filters.ruleId } }
  }
  return { sql: 'true', params: {} }
}

export function openAlertMetrics({ clickhouse, kv, log, partitions, clock }: AlertMetricsNeeds): MeasureAlert {
  async function ofEvents(workspace: string, env: Env, alert: Alert, to: number): Promise<Measured> {
    const leftOut = unerased(await listErasing(kv, partitions, workspace, env))
    const where = whereOf(alert.filters, alert.metric)
    const part = partOf(alert)
    const [row] = await clickhouse.query<{ whole: number; part: number }>(
      `SELECT count() AS whole, countIf(${part.sql}) AS part FROM ${EVENTS_TABLE} WHERE ${WINDOW}${where.sql}${leftOut.sql}`,
      {
        workspace,
        env,
        from: to - alert.windowSeconds * 1_000,
        to,
        ...where.params,
        ...part.params,
        ...leftOut.params,
      },
    )
    const { whole, part: count } = row ?? { whole: 0, part: 0 }
    if (alert.metric === 'events') return { value: whole, events: whole }
    return { value: whole === 0 ? 0 : count / whole, events: whole }
  }

  /** Of deliveries that ended in the minutes that the window touches. */
  async function ofWebhooks(workspace: string, env: Env, { windowSeconds }: Alert, to: number): Promise<Measured> {
    let delivered = 0
    let failed = 0
    for (const { id } of await readWebhooks(kv, workspace, env)) {
      const ended = await readTally(kv, id, to - windowSeconds * 1_000, to)
      delivered += ended.delivered
      failed += ended.failed
    }
    const events = delivered + failed
    return { value: events === 0 ? 0 : failed / events, events }
  }

  /** For how long the oldest accepted identification waits to be decided, or its event for ClickHouse; of all partitions. */
  async function lag(): Promise<Measured> {
    const now = clock.now()
    let oldest = now
    for (let partition = 0; partition < partitions; partition++) {
      const scope = partitionScope(partition)
      const [decided] = await kv.get<number>(scope, [DECIDED_TO])
      const sunk = await kv.position(scope, SINK_POSITION)
      const [event] = sunk === null ? [] : await log.read('events', partition, sunk, ONE)
      const [identification] = await log.read('identifications', partition, decided?.value ?? 0, ONE)
      if (event !== undefined) oldest = Math.min(oldest, decodeEventsRecord(event.bytes).items[0]?.acceptedAt ?? now)
      if (identification !== undefined) oldest = Math.min(oldest, acceptedAt(identification.bytes) ?? now)
    }
    return { value: now - oldest, events: Number.MAX_SAFE_INTEGER }
  }

  return (workspace, env, alert, to) => {
    if (alert.metric === 'ingest_lag_ms') return lag()
    if (alert.metric === 'webhook_failure_rate') return ofWebhooks(workspace, env, alert, to)
    return ofEvents(workspace, env, alert, to)
  }
}

/** null for a command, which nobody waits to see. */
function acceptedAt(bytes: Uint8Array): number | null {
  try {
    return decodeIdentification(bytes).meta.acceptedAt ?? null
  } catch {
    return null
  }
}
