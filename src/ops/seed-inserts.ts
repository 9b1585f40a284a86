// The way of made-up rows into ClickHouse: large inserts within one week each, so that one is one part, all or nothing. Several
// are under way at a time.

import type { ClickHouse } from '../clickhouse/clickhouse.ts'
import type { Env, StoredEvent } from '../domain/event.ts'
import { requestTime } from '../domain/ids.ts'
import { COLUMNS, EVENTS_TABLE } from '../events/row.ts'
import { writeRow } from '../events/write-row.ts'
import { WEEK_MS } from '../lib/durations.ts'
import { clearLines, linesBetween, linesEnd } from '../lib/json-lines.ts'

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
  /** Takes events in the order of time. */
  add(event: StoredEvent, partition: number): void
  /** Resolves when there is room for more. */
  room(): Promise<void>
  flush(): Promise<void>
  inserted(): number
}

const ROWS_MAX = 40_000
const UNDER_WAY_MAX = 2
/** The epoch was a Thursday. */
const MONDAY_MS = 4 * 86_400_000
const weekOf = (atMs: number): number => Math.floor((atMs - MONDAY_MS) / WEEK_MS)

export function openSeedInserts(needs: SeedInsertsNeeds): SeedInserts {
  const { clickhouse, deployment, workspace, env, name, isResumed } = needs
  const underWay = new Set<Promise<void>>()
  let failure: { readonly error: unknown } | null = null
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

  async function insert(lines: Uint8Array, count: number, firstId: string, token: string): Promise<void> {
    if (isResumed && (await isThere(firstId))) return
    await clickhouse.insert(EVENTS_TABLE, COLUMNS, lines, { token })
    inserted += count
  }

  function send(): void {
    if (rows === 0) return
    const token = `seed/${deployment}/${name}/${sent++}`
    const running: Promise<void> = insert(Buffer.from(linesBetween(0, linesEnd())), rows, first, token)
      .catch((error: unknown) => {
        failure ??= { error }
      })
      .finally(() => underWay.delete(running))
    underWay.add(running)
    rows = 0
    clearLines()
  }

  const check = () => {
    if (failure !== null) throw failure.error
  }

  return {
    add(event, partition) {
      if (rows === ROWS_MAX || (rows > 0 && weekOf(event.timestamp) !== week)) send()
      if (rows === 0) {
        // Whoever wrote rows in this thread before may have left some.
        clearLines()
        week = weekOf(event.timestamp)
        first = event.requestId
      }
      // A place of 0 in the log marks rows that are older than anything in it.
      writeRow(event, partition, 0)
      rows++
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
