// The way of made-up rows into ClickHouse: large inserts within one week each, so that one is one part, all or nothing. Several
// are under way at a time.

import type { ClickHouse } from '../clickhouse/clickhouse.ts'
import type { Env } from '../domain/event.ts'
import { requestTime } from '../domain/ids.ts'
import { COLUMNS, EVENTS_TABLE } from '../events/row.ts'
import { ROW_BYTES_MAX } from './seed-rows.ts'

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
  /** A place for the row of an event, in the order of time. `write` returns where the row ends. */
  add(atMs: number, write: (buffer: Buffer, at: number) => number, requestId: () => string): void
  /** Resolves when there is room for more. */
  room(): Promise<void>
  flush(): Promise<void>
  inserted(): number
}

const ROWS_MAX = 40_000
const BYTES_MAX = 48 * 1024 * 1024
const UNDER_WAY_MAX = 3
const WEEK_MS = 604_800_000
/** The epoch was a Thursday. */
const MONDAY_MS = 4 * 86_400_000
const weekOf = (atMs: number): number => Math.floor((atMs - MONDAY_MS) / WEEK_MS)

export function openSeedInserts(needs: SeedInsertsNeeds): SeedInserts {
  const { clickhouse, deployment, workspace, env, name, isResumed } = needs
  const underWay = new Set<Promise<void>>()
  const spare: Buffer[] = []
  let failure: { readonly error: unknown } | null = null
  let buffer: Buffer = Buffer.allocUnsafe(BYTES_MAX)
  let bytes = 0
  let rows = 0
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

  async function insert(lines: Buffer, filled: number, count: number, firstId: string, token: string): Promise<void> {
    if (!(isResumed && (await isThere(firstId)))) {
      await clickhouse.insert(EVENTS_TABLE, COLUMNS, lines.subarray(0, filled), { token })
      inserted += count
    }
    spare.push(lines)
  }

  function send(): void {
    if (rows === 0) return
    const token = `seed/${deployment}/${name}/${sent++}`
    const running: Promise<void> = insert(buffer, bytes, rows, first, token)
      .catch((error: unknown) => {
        failure ??= { error }
      })
      .finally(() => underWay.delete(running))
    underWay.add(running)
    buffer = spare.pop() ?? Buffer.allocUnsafe(BYTES_MAX)
    bytes = 0
    rows = 0
  }

  const check = () => {
    if (failure !== null) throw failure.error
  }

  return {
    add(atMs, write, requestId) {
      if (rows > 0 && (rows === ROWS_MAX || bytes + ROW_BYTES_MAX > BYTES_MAX || weekOf(atMs) !== week)) send()
      bytes = write(buffer, bytes)
      if (rows++ > 0) return
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
