// ClickHouse as small as it can be: tables of rows, a window of insert tokens, the deletes of erasures, and the two questions
// about events, told apart by their parameters.

import { BadRow, type ClickHouse, type Params } from '../../src/clickhouse/clickhouse.ts'
import { COLUMNS } from '../../src/events/row.ts'
import { QUARANTINE_COLUMNS } from '../../src/sink/insert.ts'
import type { Host } from './host.ts'

export interface StoredRow {
  readonly cells: readonly unknown[]
  readonly by: string
}
export interface ClickHouseStore {
  readonly rows: Map<string, StoredRow[]>
  /** The newest tokens of each table: only these are recognised. */
  readonly tokens: Map<string, string[]>
}
export const createClickHouseStore = (): ClickHouseStore => ({ rows: new Map(), tokens: new Map() })

export const TOKENS_MAX = 100
/** A row with this text in it is refused by the engine. */
export const BAD_ROW = 'a row nobody can store'

const CELLS = new Map<string, number>(COLUMNS.map((name, at) => [name, at]))
const RAW = QUARANTINE_COLUMNS.indexOf('raw')
const cellOf = ({ cells }: StoredRow, column: (typeof COLUMNS)[number]): unknown => cells[CELLS.get(column) as number]
const isOf = (row: StoredRow, { workspace, env }: Params): boolean =>
  cellOf(row, 'workspace_id') === workspace && cellOf(row, 'env') === env

const toSummary = (row: StoredRow) => ({
  request_id: cellOf(row, 'request_id'),
  visitor_id: cellOf(row, 'visitor_id'),
  scaled_confidence: cellOf(row, 'confidence'),
  verdict_name: cellOf(row, 'verdict'),
  at: cellOf(row, 'ts'),
  bot: cellOf(row, 'sig_bot'),
  vpn: cellOf(row, 'sig_vpn'),
})

const newestFirst = (a: StoredRow, b: StoredRow): number =>
  Number(cellOf(b, 'ts')) - Number(cellOf(a, 'ts')) ||
  (String(cellOf(a, 'request_id')) < String(cellOf(b, 'request_id')) ? 1 : -1)

function page(rows: readonly StoredRow[], params: Params): unknown[] {
  const erasing = (params.erasing ?? []) as readonly unknown[]
  return rows
    .filter(
      (row) =>
        isOf(row, params) &&
        Number(cellOf(row, 'ts')) >= Number(params.oldest) &&
        !erasing.includes(cellOf(row, 'visitor_id')) &&
        (params.visitor === undefined || cellOf(row, 'visitor_id') === params.visitor),
    )
    .sort(newestFirst)
    .slice(0, Number(params.rows))
    .map(toSummary)
}

/** Whether a DELETE from this table takes the row. */
const DELETES: Readonly<Record<string, (row: StoredRow, params: Params) => boolean>> = {
  events: (row, params) => isOf(row, params) && cellOf(row, 'visitor_id') === params.visitor,
  quarantine: ({ cells }, { visitor }) => String(cells[RAW]).includes(String(visitor)),
}

export function bindClickHouse(store: ClickHouseStore, host: Host): ClickHouse {
  return {
    async insert(table, columns, lines, { token }) {
      const text = Buffer.from(lines).toString()
      const effect = () => {
        const rows = text.split('\n').filter((line) => line !== '')
        const tokens = store.tokens.get(table) ?? []
        store.tokens.set(table, tokens)
        if (tokens.includes(token)) return
        const parsed = rows.map((line) => ({ cells: JSON.parse(line) as unknown[], by: token }))
        const isBad = ({ cells }: StoredRow, i: number) =>
          cells.length !== columns.length || (table === 'events' && rows[i]?.includes(BAD_ROW))
        if (parsed.some(isBad)) throw new BadRow('cannot parse the row')
        tokens.push(token)
        if (tokens.length > TOKENS_MAX) tokens.shift()
        const stored = store.rows.get(table) ?? []
        stored.push(...parsed)
        store.rows.set(table, stored)
      }
      return host.call(`insert ${table} ${token}`, effect, { twice: true })
    },
    async query<Row>(_sql: string, params: Params = {}) {
      return host.call('query', () => {
        const rows = store.rows.get('events') ?? []
        if (params.id === undefined) return page(rows, params) as Row[]
        const found = rows.find(
          (row) => isOf(row, params) && cellOf(row, 'request_id') === params.id && cellOf(row, 'ts') === params.ts,
        )
        return found === undefined ? [] : [{ ...found.cells } as Row]
      })
    },
    async command(sql, params = {}) {
      const table = /^DELETE FROM (\w+) /.exec(sql)?.[1] ?? ''
      const deletes = DELETES[table]
      if (deletes === undefined) throw new RangeError(`not a command of the product: ${sql}`)
      const effect = () => {
        store.rows.set(
          table,
          (store.rows.get(table) ?? []).filter((row) => !deletes(row, params)),
        )
      }
      return host.call(`delete ${table}`, effect, { twice: true })
    },
    ping: async () => true,
    async close() {},
  }
}
