// Inserts that may have happened before, of which ClickHouse itself knows too much or too little. Without replicas it notes the token
// of an insert before the rows, so that a crash in between leaves the token alone, and a repetition adds nothing and succeeds;
// and it flushes the rows but not the token, so that a power cut leaves the rows alone, and a repetition adds them again. Whoever
// repeats an insert therefore looks for the rows first, inserts those that are missing, and looks again.

import { hash } from 'node:crypto'
import type { ClickHouse } from '../clickhouse/clickhouse.ts'
import { COLUMNS, EVENTS_TABLE } from '../events/row.ts'
import { REFUSED_SEQ } from './whose.ts'

/** One is used up by each crash at the wrong moment. */
const ATTEMPTS_MAX = 20
const ROWS_MAX = 1_000_000
const PARTITION = COLUMNS.indexOf('log_partition')
const SEQ = COLUMNS.indexOf('log_seq')
const TS = COLUMNS.indexOf('ts')

interface Line {
  readonly text: string
  readonly partition: number
  readonly seq: number
  readonly ts: number
}

/**
 * Inserts what is missing of `lines`, all of one partition of the log, which may have been inserted under `token`. Under that token first:
 * ClickHouse remembers it for each week by itself, so another sink that is about to insert them, or does the same, adds nothing
 * twice. Then under tokens that follow from it. Fails with BadRow as an insert of all does; rejects when rows do not stay.
 */
export async function insertMissing(
  clickhouse: Pick<ClickHouse, 'insert' | 'query'>,
  lines: Uint8Array,
  token: string,
): Promise<void> {
  for (let attempt = 0; attempt <= ATTEMPTS_MAX; attempt++) {
    const missing = await missingOf(clickhouse, lines)
    if (missing.length === 0) return
    await clickhouse.insert(EVENTS_TABLE, COLUMNS, missing, { token: attemptToken(token, attempt) })
  }
  throw new Error(`rows of ${token} are not in ClickHouse although they were inserted`)
}

/** Those of `lines`, all of one partition of the log, that are not in ClickHouse. */
export async function missingOf(clickhouse: Pick<ClickHouse, 'query'>, lines: Uint8Array): Promise<Uint8Array> {
  const all = Buffer.from(lines.buffer, lines.byteOffset, lines.byteLength)
    .toString()
    .split('\n')
    .filter((text) => text !== '')
    .map(readLine)
  if (all.length === 0) return lines
  const there = await seqsThere(clickhouse, all)
  const missing = all.filter(({ seq }) => !there.has(seq))
  return missing.length === all.length ? lines : Buffer.from(missing.map(({ text }) => `${text}\n`).join(''))
}

/** The same for one row of another table. */
export async function insertMissingRow(
  clickhouse: Pick<ClickHouse, 'insert'>,
  { table, columns, line, token }: InsertedRow,
  isThere: () => Promise<boolean>,
): Promise<void> {
  for (let attempt = 0; attempt <= ATTEMPTS_MAX; attempt++) {
    if (await isThere()) return
    await clickhouse.insert(table, columns, line, { token: attemptToken(token, attempt) })
  }
  throw new Error(`the row of ${token} is not in ${table} although it was inserted`)
}

const attemptToken = (token: string, attempt: number): string => (attempt === 0 ? token : `${token}/lost/${attempt}`)

export interface InsertedRow {
  readonly table: string
  readonly columns: readonly string[]
  readonly line: Uint8Array
  readonly token: string
}

function readLine(text: string): Line {
  const cells = JSON.parse(text) as readonly unknown[]
  return { text, partition: Number(cells[PARTITION]), seq: Number(cells[SEQ]), ts: Number(cells[TS]) }
}

/** Also when it was a visitor's who was erased since, or is another's: a split changes its bytes, and leaves its place in the log. */
export async function isRefused(
  clickhouse: Pick<ClickHouse, 'query'>,
  partition: number,
  { raw, token }: { readonly raw: string; readonly token: string },
): Promise<boolean> {
  const [found] = await clickhouse.query<{ rows: number }>(
    `SELECT count() AS rows FROM quarantine
     WHERE log_partition = {home:UInt16} AND token = {token:String}
       AND (lower(hex(SHA256(raw))) = {digest:String} OR {seq:UInt64} > 0 AND ${REFUSED_SEQ} = {seq:UInt64})`,
    { home: partition, token, digest: hash('sha256', raw, 'hex'), seq: seqOf(raw) },
    { hidden: true },
  )
  return found !== undefined && found.rows > 0
}

/** 0 where that cannot be read: no event has it. */
function seqOf(raw: string): number {
  try {
    const { seq } = readLine(raw)
    return Number.isSafeInteger(seq) && seq > 0 ? seq : 0
  } catch {
    return 0
  }
}

/** Those of erased visitors as well: they are hidden, not lost. */
async function seqsThere(clickhouse: Pick<ClickHouse, 'query'>, lines: readonly Line[]): Promise<ReadonlySet<number>> {
  const [low, high] = span(lines.map(({ seq }) => seq))
  const [from, to] = span(lines.map(({ ts }) => ts))
  const found = await clickhouse.query<{ seq: number }>(
    `SELECT log_seq AS seq FROM ${EVENTS_TABLE}
     WHERE log_partition = {home:UInt16} AND log_seq BETWEEN {low:UInt64} AND {high:UInt64}
       AND ts BETWEEN fromUnixTimestamp64Milli({from:Int64}) AND fromUnixTimestamp64Milli({to:Int64})`,
    { home: lines[0]?.partition, low, high, from, to },
    { hidden: true, rowsMax: ROWS_MAX },
  )
  return new Set(found.map(({ seq }) => seq))
}

function span(numbers: readonly number[]): readonly [least: number, most: number] {
  let least = Number.POSITIVE_INFINITY
  let most = Number.NEGATIVE_INFINITY
  for (const number of numbers) {
    least = Math.min(least, number)
    most = Math.max(most, number)
  }
  return [least, most]
}
