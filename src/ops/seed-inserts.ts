// The way of made-up rows into ClickHouse: large inserts within one week each, so that one is one part, all or nothing. Several
// are under way at a time.

import type { ClickHouse } from '../clickhouse/clickhouse.ts'
import { encodeNative } from '../clickhouse/native.ts'
import type { Env } from '../domain/event.ts'
import { requestTime } from '../domain/ids.ts'
import { COLUMNS, EVENTS_TABLE } from '../events/row.ts'
import { columnsOf, newRows, ROWS_MAX, type Rows } from './seed-pieces.ts'

export interface SeedInsertsNeeds {
  readonly clickhouse: Pick<ClickHouse, 'insert' | 'query'>
  readonly deployment: string
  readonly workspace: string
  readonly env: Env
  readonly name: string
  /** Inserts of an earlier attempt may be there, longer ago than ClickHouse remembers their tokens. */
  readonly isResumed: boolean
}

export interface SeedInserts {
  /** Where the row of an event goes that `make` adds, in the order of time. */
  add(atMs: number, make: (rows: Rows) => void, requestId: () => string): void
  /** Resolves when there is room for more. */
  room(): Promise<void>
  flush(): Promise<void>
  inserted(): number
}

const UNDER_WAY_MAX = 2
const WEEK_MS = 604_800_000
/** The epoch was a Thursday. */
const MONDAY_MS = 4 * 86_400_000
const weekOf = (atMs: number): number => Math.floor((atMs - MONDAY_MS) / WEEK_MS)

export async function openSeedInserts(needs: SeedInsertsNeeds): Promise<SeedInserts> {
  const { clickhouse, deployment, workspace, env, name, isResumed } = needs
  const underWay = new Set<Promise<void>>()
  const found = await clickhouse.query<{ name: string; type: string }>(
    'SELECT name, type FROM system.columns WHERE database = currentDatabase() AND table = {table:String}',
    { table: EVENTS_TABLE },
  )
  const types = new Map(found.map(({ name, type }) => [name, type]))
  let failure: { readonly error: unknown } | null = null
  let rows = newRows()
  let week = 0
  let first = ''
  let sent = 0
  let inserted = 0

  async function isThere(requestId: string): Promise<boolean> {
    const found = await clickhouse.query(
      `SELECT 1 FROM ${EVENTS_TABLE} WHERE workspace_id = {workspace:String} AND env = {env:String}
         AND ts = fromUnixTimestamp64Milli({ts:Int64}) AND request_id = {id:String} LIMIT 1`,
      { workspace, env, ts: requestTime(requestId), id: requestId },
    )
    return found.length > 0
  }

  async function insert(block: Buffer, count: number, firstId: string, token: string): Promise<void> {
    if (isResumed && (await isThere(firstId))) return
    await clickhouse.insert(EVENTS_TABLE, COLUMNS, block, { token, format: 'Native' })
    inserted += count
  }

  function send(): void {
    const { size } = rows
    if (size === 0) return
    const token = `seed/${deployment}/${name}/${sent++}`
    const running: Promise<void> = insert(encodeNative(columnsOf(rows, types), size), size, first, token)
      .catch((error: unknown) => {
        failure ??= { error }
      })
      .finally(() => underWay.delete(running))
    underWay.add(running)
    rows = newRows()
  }

  const check = () => {
    if (failure !== null) throw failure.error
  }

  return {
    add(atMs, make, requestId) {
      if (rows.size === ROWS_MAX || (rows.size > 0 && weekOf(atMs) !== week)) send()
      make(rows)
      if (rows.size > 1) return
      week = weekOf(atMs)
      first = requestId()
    },
    async room() {
      while (underWay.size >= UNDER_WAY_MAX && failure === null) await Promise.race(underWay)
      check()
    },
    async flush() {
      send()
      await Promise.all(underWay)
      check()
    },
    inserted: () => inserted,
  }
}
