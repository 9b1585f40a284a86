// The tables of a backup: rows as lines, read page by page so that memory does not grow with the history.

import type { ClickHouse } from '../clickhouse/clickhouse.ts'
import { EVENTS_TABLE, SELECT_COLUMNS } from '../events/row.ts'
import { ERASURES_TABLE } from '../sink/erase.ts'
import { QUARANTINE_TABLE } from '../sink/insert.ts'
import { FRAME_BYTES_MAX, type FrameWriter } from './backup-files.ts'
import type { Progress } from './progress.ts'
import { SCAN } from './rebuild-read.ts'

const PAGE_ROWS = 10_000
const FRAME_BYTES = FRAME_BYTES_MAX / 4

type Row = Readonly<Record<string, unknown>>

/**
 * Writes the rows of `events` that the log cannot give any more: those of identifications before `before[partition]`. Their
 * lines are those the sink inserted.
 */
export async function backupEvents(
  clickhouse: Pick<ClickHouse, 'query'>,
  out: FrameWriter,
  before: readonly number[],
  progress: Progress,
): Promise<void> {
  const where = 'log_seq < {before:Array(UInt64)}[log_partition + 1]'
  const [all] = await clickhouse.query<{ rows: number }>(
    `SELECT count() AS rows FROM ${EVENTS_TABLE} WHERE ${where}`,
    { before },
    SCAN,
  )
  progress.begin('events', all?.rows ?? 0)
  const tenants = await clickhouse.query<{ workspace_id: string; env: string }>(
    `SELECT DISTINCT workspace_id, env FROM ${EVENTS_TABLE} ORDER BY workspace_id, env`,
    {},
    SCAN,
  )
  let rows = 0
  for (const { workspace_id: workspace, env } of tenants) {
    const pages = pagesOf(async (last) => {
      // The bound on ts alone is redundant and what prunes the parts.
      const after =
        last === undefined
          ? ''
          : `AND ts >= fromUnixTimestamp64Milli({ts:Int64})
             AND (ts, request_id) > (fromUnixTimestamp64Milli({ts:Int64}), {id:String})`
      return clickhouse.query<Row>(
        `SELECT ${SELECT_COLUMNS} FROM ${EVENTS_TABLE}
         WHERE workspace_id = {workspace:String} AND env = {env:String} AND ${where} ${after}
         ORDER BY workspace_id, env, ts, request_id LIMIT ${PAGE_ROWS}`,
        { before, workspace, env, ...(last === undefined ? {} : { ts: last.ts_ms, id: last.request_id }) },
        SCAN,
      )
    })
    for await (const page of pages) {
      await writeLines(out, page)
      rows += page.length
      progress.advance(page.length)
    }
  }
  progress.end(`${rows} rows`)
}

/** Writes the executed erasures. */
export async function backupErasures(clickhouse: Pick<ClickHouse, 'query'>, out: FrameWriter): Promise<void> {
  const pages = pagesOf((last) =>
    clickhouse.query<Row>(
      `SELECT workspace_id, env, erased_id, erasure_id, toUnixTimestamp64Milli(at) AS erased_at, log_partition
       FROM ${ERASURES_TABLE} WHERE (log_partition, erased_id, erasure_id) > ({partition:Int32}, {erased:String}, {id:String})
       ORDER BY log_partition, erased_id, erasure_id LIMIT ${PAGE_ROWS}`,
      { partition: last?.log_partition ?? -1, erased: last?.erased_id ?? '', id: last?.erasure_id ?? '' },
      SCAN,
    ),
  )
  for await (const page of pages) await writeLines(out, page)
}

/** Writes the refused rows, but not those whose lines the log still has. */
export async function backupQuarantine(
  clickhouse: Pick<ClickHouse, 'query'>,
  out: FrameWriter,
  before: readonly number[],
): Promise<void> {
  const pages = pagesOf((last) =>
    clickhouse.query<Row>(
      `SELECT toUnixTimestamp64Milli(at) AS at_ms, source, log_partition, token, reason, raw FROM ${QUARANTINE_TABLE}
       WHERE (source != '${EVENTS_TABLE}' OR JSONExtractUInt(raw, -1) < {before:Array(UInt64)}[log_partition + 1])
         AND (at, token, raw) > (fromUnixTimestamp64Milli({at:Int64}), {token:String}, {raw:String})
       ORDER BY at, token, raw LIMIT ${PAGE_ROWS}`,
      { before, at: last?.at_ms ?? 0, token: last?.token ?? '', raw: last?.raw ?? '' },
      SCAN,
    ),
  )
  for await (const page of pages) await writeLines(out, page)
}

async function* pagesOf(read: (last: Row | undefined) => Promise<readonly Row[]>): AsyncGenerator<readonly Row[]> {
  let last: Row | undefined
  for (;;) {
    const page = await read(last)
    if (page.length > 0) yield page
    last = page.at(-1)
    if (page.length < PAGE_ROWS) return
  }
}

async function writeLines(out: FrameWriter, rows: readonly Row[]): Promise<void> {
  let lines: string[] = []
  let bytes = 0
  const flush = async () => {
    if (lines.length > 0) await out.write(Buffer.from(lines.join('')), lines.length)
    lines = []
    bytes = 0
  }
  for (const row of rows) {
    const line = `${JSON.stringify(Object.values(row))}\n`
    lines.push(line)
    bytes += Buffer.byteLength(line)
    if (bytes >= FRAME_BYTES) await flush()
  }
  await flush()
}
