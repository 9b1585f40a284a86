// Rows of a made-up history as they would be read back, from the columns they are inserted as.

import type { NativeColumn } from '../../src/clickhouse/native.ts'
import type { Cell } from '../../src/events/row.ts'
import { columnsOf, type Rows } from '../../src/ops/seed-pieces.ts'

/** Each row in the order of COLUMNS. */
export function rowsOf(rows: Rows): Cell[][] {
  const columns = columnsOf(rows, new Map()).map((column) => cellsOf(column, rows.size))
  return Array.from({ length: rows.size }, (_, row) => columns.map((cells) => cells[row] as Cell))
}

function cellsOf(column: NativeColumn, size: number): Cell[] {
  if ('texts' in column) return textsIn(Buffer.from(column.texts.bytes()))
  const { values, at } = column
  return Array.from({ length: size }, (_, row) => values[at === null ? row : (at[row] as number)] as Cell)
}

/** Each after its length; those of a seed are shorter than 128 bytes. */
function textsIn(bytes: Buffer): string[] {
  const texts: string[] = []
  for (let at = 0; at < bytes.length; ) {
    const end = at + 1 + (bytes[at] as number)
    texts.push(bytes.toString('utf8', at + 1, end))
    at = end
  }
  return texts
}
