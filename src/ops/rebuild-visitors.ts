// What events in ClickHouse tell of the visitors of a partition: their counts, times, devices, addresses and accounts, but
// nothing to recognise them by. Only events before the log's are asked for: what is in the log restores the rest exactly.

import type { ClickHouse } from '../clickhouse/clickhouse.ts'
import type { Env, Verdict } from '../domain/event.ts'
import { hash53 } from '../domain/ids.ts'
import { canonicalIp, lineOf, maskIp, subnetOf } from '../domain/ip.ts'
import { putAll } from '../engine/replay.ts'
import { ACCOUNTS_EXACT_MAX, addAccount } from '../identity/linked-accounts.ts'
import { providersOf } from '../identity/provider.ts'
import {
  DEVICES_MAX,
  IPS_MAX,
  NETWORK_KEPT_MS,
  NETWORKS_MAX,
  newVisitor,
  type VisitorState,
} from '../identity/visitor.ts'
import { packVisitor } from '../identity/visitor-record.ts'
import type { Kv } from '../kv/kv.ts'
import { ERASED, erasedId } from '../records/erasures.ts'
import { partitionScope, visitorKey } from '../records/partitions.ts'
import { packHeldVisitor } from '../records/visitors.ts'
import type { Progress } from './progress.ts'
import { SCAN } from './rebuild-read.ts'

/** Events of `partition` made of identifications before `before`. */
export interface Base {
  readonly partition: number
  readonly before: number
}

export interface RebuildVisitorsNeeds {
  readonly clickhouse: Pick<ClickHouse, 'query'>
  readonly kv: Pick<Kv, 'get' | 'commit'>
  readonly progress: Progress
  /** Of `stageVisits`. */
  readonly table: string
}

export const BASE = 'log_partition = {partition:UInt16} AND log_seq < {before:UInt64}'

/** Read at once, so that memory does not grow with the number of visitors. */
const VISITORS_AT_ONCE = 5_000
const HASHES = 2n ** 64n
const VISITOR = 'workspace_id, env, visitor_id'
/** In the order in which events were decided; those of a restored backup have no place in this log but their time. */
const NEWEST = '(log_seq, ts)'
/** Addresses and devices look alike once they are masked, or their version is left out. */
const SPARE = 2
const ACCOUNTS_PAGE = 10_000

interface OfVisitor {
  readonly workspace_id: string
  readonly env: Env
  readonly visitor_id: string
}
interface SummaryRow extends OfVisitor {
  readonly first_at: number
  readonly last_at: number
  readonly visits: number
  readonly by_token: number
  readonly newest_generation: number
  readonly allowed: number
  readonly challenged: number
  readonly blocked: number
  readonly newest_verdict: Verdict | 'none'
  readonly accounts: readonly string[]
}
interface AddressRow extends OfVisitor {
  readonly address: string
  readonly at: number
}
interface DeviceRow extends OfVisitor {
  readonly system: string
  readonly software: string
  readonly graphics: string
}

/** Writes every visitor that staged events before the log's tell of. Returns how many. Twice equals once. */
export async function rebuildVisitors(needs: RebuildVisitorsNeeds, base: Base): Promise<number> {
  const { clickhouse, table } = needs
  const [counted] = await clickhouse.query<{ visitors: number }>(
    `SELECT uniq(visitor_id) AS visitors FROM ${table} WHERE ${BASE}`,
    { ...base },
    SCAN,
  )
  const shares = BigInt(Math.ceil((counted?.visitors ?? 0) / VISITORS_AT_ONCE))
  let visitors = 0
  for (let share = 0n; share < shares; share++) {
    const low = (HASHES * share) / shares
    const high = (HASHES * (share + 1n)) / shares - 1n
    visitors += await rebuildShare(needs, base, { low: String(low), high: String(high) })
  }
  return visitors
}

async function rebuildShare(
  { clickhouse, kv, progress, table }: RebuildVisitorsNeeds,
  base: Base,
  share: { readonly low: string; readonly high: string },
): Promise<number> {
  const where = `${BASE} AND visitor_hash BETWEEN {low:UInt64} AND {high:UInt64}`
  const params = { ...base, ...share }
  const summaries = await clickhouse.query<SummaryRow>(
    `SELECT ${VISITOR},
       toUnixTimestamp64Milli(min(first_seen_at)) AS first_at, toUnixTimestamp64Milli(max(last_seen_at)) AS last_at,
       greatest(count(), max(total_visits)) AS visits, countIf(identity_method = 'token') AS by_token,
       max(generation) AS newest_generation,
       countIf(verdict = 'allow') AS allowed, countIf(verdict = 'challenge') AS challenged,
       countIf(verdict = 'block') AS blocked, argMax(verdict, ${NEWEST}) AS newest_verdict,
       groupUniqArrayIf(${ACCOUNTS_EXACT_MAX + 1})(linked_id, linked_id != '') AS accounts
     FROM ${table} WHERE ${where} GROUP BY ${VISITOR}`,
    params,
    SCAN,
  )
  const addresses = grouped(
    await clickhouse.query<AddressRow>(
      `SELECT ${VISITOR}, ip AS address, toUnixTimestamp64Milli(max(ts)) AS at FROM ${table} WHERE ${where}
       GROUP BY ${VISITOR}, ip ORDER BY ${VISITOR}, max(${NEWEST}) DESC LIMIT ${IPS_MAX * SPARE} BY ${VISITOR}`,
      params,
      SCAN,
    ),
  )
  const devices = grouped(
    await clickhouse.query<DeviceRow>(
      `SELECT ${VISITOR}, platform AS system, browser AS software, gpu AS graphics FROM ${table} WHERE ${where}
       GROUP BY ${VISITOR}, platform, browser, gpu
       ORDER BY ${VISITOR}, max(${NEWEST}) DESC LIMIT ${DEVICES_MAX * SPARE} BY ${VISITOR}`,
      params,
      SCAN,
    ),
  )
  const scope = partitionScope(base.partition)
  const erased = await kv.get(
    scope,
    summaries.map((row) => [ERASED, erasedId(row.workspace_id, row.env, row.visitor_id)] as const),
  )
  const put = []
  for (const [at, row] of summaries.entries()) {
    if (erased[at]) continue
    const accounts =
      row.accounts.length > ACCOUNTS_EXACT_MAX ? accountsOf(clickhouse, table, base, row) : [row.accounts]
    const name = nameOf(row)
    const state = await toState(row, addresses.get(name) ?? [], devices.get(name) ?? [], accounts)
    // Without keys the next visit puts the visitor under all of its own.
    const value = packHeldVisitor([], packVisitor(state))
    put.push({ key: visitorKey(row.workspace_id, row.env, row.visitor_id), value })
  }
  await putAll(kv, scope, put)
  progress.advance(put.length)
  return put.length
}

const nameOf = ({ workspace_id, env, visitor_id }: OfVisitor): string => `${workspace_id}/${env}/${visitor_id}`

function grouped<Row extends OfVisitor>(rows: readonly Row[]): Map<string, Row[]> {
  const groups = new Map<string, Row[]>()
  for (const row of rows) {
    const name = nameOf(row)
    const group = groups.get(name)
    if (group === undefined) groups.set(name, [row])
    else group.push(row)
  }
  return groups
}

async function toState(
  row: SummaryRow,
  addresses: readonly AddressRow[],
  devices: readonly DeviceRow[],
  accounts: AsyncIterable<readonly string[]> | Iterable<readonly string[]>,
): Promise<VisitorState> {
  const state = newVisitor(row.visitor_id, row.first_at)
  state.lastSeenAt = row.last_at
  state.totalVisits = row.visits
  state.tokenVisits = row.by_token
  state.generation = row.newest_generation
  state.verdicts = { allow: row.allowed, challenge: row.challenged, block: row.blocked }
  state.lastVerdict = row.newest_verdict === 'none' ? null : row.newest_verdict
  const seen = addresses.flatMap(({ address, at }) => {
    const ip = canonicalIp(address)
    return ip === null ? [] : [{ ip, at }]
  })
  state.ips = [...new Set(seen.map(({ ip }) => maskIp(ip)))].slice(0, IPS_MAX)
  state.networks = seen
    .filter(({ at }) => at >= row.last_at - NETWORK_KEPT_MS)
    .sort((a, b) => b.at - a.at)
    .slice(0, NETWORKS_MAX)
    .map(({ ip, at }) => ({ ip: hash53(lineOf(ip)), subnet: hash53(subnetOf(ip)), lastAt: at }))
  state.providers = providersOf(seen)
  const families = new Set<string>()
  for (const { system, software, graphics } of devices) {
    const family = `${system}|${software.replace(/ \d+$/, '')}|${graphics}`
    if (families.has(family) || families.size === DEVICES_MAX) continue
    families.add(family)
    state.devices.push({ platform: system, browser: software, gpu: graphics === '' ? null : graphics })
  }
  for await (const some of accounts) for (const account of some) addAccount(state.accounts, account)
  return state
}

/** Page by page, for the few visitors with so many. */
async function* accountsOf(clickhouse: Pick<ClickHouse, 'query'>, table: string, base: Base, row: OfVisitor) {
  let after = ''
  for (;;) {
    const page = await clickhouse.query<{ account: string }>(
      `SELECT DISTINCT linked_id AS account FROM ${table}
       WHERE ${BASE} AND workspace_id = {workspace:String} AND env = {env:String}
         AND visitor_hash = cityHash64({visitor:String}) AND visitor_id = {visitor:String} AND linked_id > {after:String}
       ORDER BY account LIMIT ${ACCOUNTS_PAGE}`,
      { ...base, workspace: row.workspace_id, env: row.env, visitor: row.visitor_id, after },
      SCAN,
    )
    yield page.map(({ account }) => account)
    const last = page.at(-1)
    if (last === undefined || page.length < ACCOUNTS_PAGE) return
    after = last.account
  }
}
