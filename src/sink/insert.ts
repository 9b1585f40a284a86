// Inserting lines of which some may be bad: one bad row never drops a batch. The halves are tried until the row at fault
// stands alone; it goes to the quarantine table with the engine's reason.

import { BadRow, type ClickHouse } from '../clickhouse/clickhouse.ts'
import { insertMissing, insertMissingRow, isRefused } from './lost.ts'

export const QUARANTINE_TABLE = 'quarantine'
export const QUARANTINE_COLUMNS = ['at', 'source', 'log_partition', 'token', 'reason', 'raw'] as const

export interface InsertContext {
  readonly at: number
  readonly partition: number
  readonly onQuarantine: (reason: string) => void
  /** Somebody may have inserted some of it, and ClickHouse may not know: see `lost.ts`. */
  readonly isLookedFor?: boolean
}

const utf8 = new TextDecoder()

/** Resolves with the number of rows inserted when every line is either in the table or in quarantine. */
export async function insertRows(
  clickhouse: Pick<ClickHouse, 'insert' | 'query'>,
  table: string,
  columns: readonly string[],
  lines: Uint8Array,
  token: string,
  context: InsertContext,
): Promise<number> {
  const starts = lineStarts(lines)
  if (starts.length === 0) return 0

  async function insert(from: number, to: number): Promise<number> {
    const whole = from === 0 && to === starts.length
    const part = lines.subarray(starts[from], starts[to] ?? lines.length)
    const itsToken = whole ? token : `${token}/${from}-${to}`
    try {
      if (context.isLookedFor) await insertMissing(clickhouse, part, itsToken)
      else await clickhouse.insert(table, columns, part, { token: itsToken })
      return to - from
    } catch (error) {
      if (!(error instanceof BadRow)) throw error
      if (to - from > 1) {
        const middle = (from + to) >> 1
        return (await insert(from, middle)) + (await insert(middle, to))
      }
      const raw = utf8.decode(part)
      const row = [context.at, table, context.partition, token, error.message.slice(0, 1_000), raw]
      const line = Buffer.from(`${JSON.stringify(row)}\n`)
      const inserted = { table: QUARANTINE_TABLE, columns: QUARANTINE_COLUMNS, line, token: `${token}/${from}/bad` }
      const isThere = async () => isRefused(clickhouse, context.partition, { raw, token })
      if (context.isLookedFor) await insertMissingRow(clickhouse, inserted, isThere)
      else await clickhouse.insert(QUARANTINE_TABLE, QUARANTINE_COLUMNS, line, { token: inserted.token })
      context.onQuarantine(error.message)
      return 0
    }
  }
  return await insert(0, starts.length)
}

function lineStarts(lines: Uint8Array): number[] {
  const starts: number[] = []
  for (let at = 0; at < lines.length; ) {
    starts.push(at)
    const end = lines.indexOf(10, at)
    at = end < 0 ? lines.length : end + 1
  }
  return starts
}
