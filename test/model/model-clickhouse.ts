// ClickHouse as small as it can be: tables of rows, a window of insert tokens, the deletes of erasures, the updates of splits, and
// the questions about events, told apart by their parameters.

import { hash } from 'node:crypto'
import { BadRow, type ClickHouse, type Params } from '../../src/clickhouse/clickhouse.ts'
import type { Env } from '../../src/domain/event.ts'
import { COLUMNS } from '../../src/events/row.ts'
import { Unavailable } from '../../src/lib/failures.ts'
import { erasedId } from '../../src/records/erasures.ts'
import { QUARANTINE_COLUMNS } from '../../src/sink/insert.ts'
import type { Rng } from '../helpers/rng.ts'
import type { Host } from './host.ts'

export interface StoredRow {
  readonly cells: readonly unknown[]
  readonly by: string
}
export interface ClickHouseStore {
  readonly rows: Map<string, StoredRow[]>
  /** The newest tokens of each table: only these are recognised. */
  readonly tokens: Map<string, string[]>
  /** By partition of the log: whose events ever had a row. */
  readonly seqs: Map<number, Set<number>>
  /** Tokens and digests of the rows that ever were in quarantine. */
  readonly refused: Set<string>
}
export const createClickHouseStore = (): ClickHouseStore => ({
  rows: new Map(),
  tokens: new Map(),
  seqs: new Map(),
  refused: new Set(),
})

export const TOKENS_MAX = 100
/** A row with this text in it is refused by the engine. */
export const BAD_ROW = 'a row nobody can store'

const CELLS = new Map<string, number>(COLUMNS.map((name, at) => [name, at]))
const RAW = QUARANTINE_COLUMNS.indexOf('raw')
const REFUSED_TOKEN = QUARANTINE_COLUMNS.indexOf('token')
const ERASURE_ID = 3
const cellOf = ({ cells }: StoredRow, column: (typeof COLUMNS)[number]): unknown => cells[CELLS.get(column) as number]
const isOf = (row: StoredRow, { workspace, env }: Params): boolean =>
  cellOf(row, 'workspace_id') === workspace && cellOf(row, 'env') === env

const erasedIdOf = (row: StoredRow): string => {
  const [workspace, env, visitorId] = (['workspace_id', 'env', 'visitor_id'] as const).map((name) => cellOf(row, name))
  return erasedId(workspace as string, env as Env, visitorId as string)
}

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

const visitorsIn = (params: Params): unknown[] =>
  Object.entries(params).flatMap(([name, value]) => (/^visitor\d+$/.test(name) ? [value] : []))

function page(rows: readonly StoredRow[], params: Params): unknown[] {
  const erasing = (params.erasing ?? []) as readonly unknown[]
  return rows
    .filter(
      (row) =>
        isOf(row, params) &&
        Number(cellOf(row, 'ts')) >= Number(params.oldest) &&
        !erasing.includes(erasedIdOf(row)) &&
        (params.visitor0 === undefined || visitorsIn(params).includes(cellOf(row, 'visitor_id'))),
    )
    .sort(newestFirst)
    .slice(0, Number(params.rows))
    .map(toSummary)
}

/** Whether a DELETE from this table takes the row. */
const DELETES: Readonly<Record<string, (row: StoredRow, params: Params) => boolean>> = {
  events: (row, params) =>
    isOf(row, params) &&
    cellOf(row, 'visitor_id') === params.visitor &&
    (params.own === undefined || holderOf(row) === params.own),
  quarantine(row, { visitor }) {
    const refused = refusedIn(row)
    return cellOf(refused, 'visitor_id') === visitor || holderOf(refused) === visitor
  },
}

const holderOf = (row: StoredRow): unknown =>
  (JSON.parse(String(cellOf(row, 'detail'))) as { own?: string }).own ?? cellOf(row, 'visitor_id')

/** The row of events that was refused, of one of quarantine. */
const refusedIn = ({ cells }: StoredRow): StoredRow => ({ cells: JSON.parse(String(cells[RAW])) as unknown[], by: '' })

const detailOf = (row: StoredRow) => JSON.parse(String(cellOf(row, 'detail'))) as Record<string, unknown>

const possibleOf = (row: StoredRow): unknown => (detailOf(row).may as readonly unknown[] | undefined)?.[0]

function withoutPossible(row: StoredRow): StoredRow {
  const cells = [...row.cells]
  const { may: _, ...detail } = detailOf(row)
  cells[CELLS.get('detail') as number] = JSON.stringify(detail)
  return { ...row, cells }
}

/** Rows of new visitors that may be this one. */
const namedIn = (rows: readonly StoredRow[], params: Params): unknown[] =>
  rows
    .filter((row) => isOf(row, params) && possibleOf(row) === params.possible)
    .map((row) => ({ at: cellOf(row, 'ts'), id: cellOf(row, 'request_id') }))

/** The row as the erasure of whom it may be of leaves it. */
const unnamedRow = (row: StoredRow, { ids }: Params): StoredRow =>
  (ids as readonly unknown[]).includes(cellOf(row, 'request_id')) ? withoutPossible(row) : row

/** One of quarantine as that erasure leaves it. */
function unnamedRefused(row: StoredRow, { possible }: Params): StoredRow {
  const refused = refusedIn(row)
  if (possibleOf(refused) !== possible) return row
  const cells = [...row.cells]
  cells[RAW] = JSON.stringify(withoutPossible(refused).cells)
  return { ...row, cells }
}

/** The row as a split leaves it. */
function movedRow(row: StoredRow, { from, to, ids, visits, first }: Params): StoredRow {
  const at = (ids as readonly unknown[]).indexOf(cellOf(row, 'request_id'))
  if (at < 0 || holderOf(row) !== from) return row
  const cells = [...row.cells]
  const { own: _, ...detail } = JSON.parse(String(cellOf(row, 'detail'))) as Record<string, unknown>
  const total_visits = (visits as readonly number[])[at]
  const changes = { visitor_id: to, detail: JSON.stringify(detail), first_seen_at: first, total_visits }
  for (const [name, value] of Object.entries(changes)) cells[CELLS.get(name) as number] = value
  cells[CELLS.get('last_seen_at') as number] = cellOf(row, 'ts')
  return { ...row, cells }
}

/** One of quarantine as a split leaves it. */
function movedRefused(row: StoredRow, { visitor, to, ids }: Params): StoredRow {
  const refused = refusedIn(row)
  const isMoved = (ids as readonly unknown[]).includes(cellOf(refused, 'request_id'))
  const names = [String(cellOf(refused, 'visitor_id')), holderOf(refused)]
  if (!isMoved || !names.includes(visitor)) return row
  const cells = [...row.cells]
  cells[RAW] = String(row.cells[RAW]).replaceAll(String(names[0]), String(to)).replaceAll(String(visitor), String(to))
  return { ...row, cells }
}

const countMoved = (rows: readonly StoredRow[], params: Params): number =>
  rows.filter(
    (row) =>
      isOf(row, params) &&
      (params.moved as readonly unknown[]).includes(cellOf(row, 'request_id')) &&
      (params.owners as readonly unknown[]).includes(cellOf(row, 'visitor_id')),
  ).length

/** Of rows that were deleted as well: a delete only hides. */
const seqsOf = ({ seqs }: ClickHouseStore, { home, low, high }: Params) =>
  [...(seqs.get(Number(home)) ?? [])].filter((seq) => seq >= Number(low) && seq <= Number(high)).map((seq) => ({ seq }))

const CRASHES = 0.2
const LATE = 0.3
const LATE_MS_MAX = 2_000

/** `crashes`: dice while it crashes in the middle of inserts, and is slow at others. */
export function bindClickHouse(store: ClickHouseStore, host: Host, crashes: () => Rng | null = () => null): ClickHouse {
  return {
    tokenFirst: true,
    async insert(table, columns, lines, { token }) {
      const text = Buffer.from(lines).toString()
      const dice = crashes()
      const isTorn = dice?.chance(CRASHES) === true
      if (dice?.chance(LATE)) await host.clock.sleep(dice.float() * LATE_MS_MAX)
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
        for (const { cells } of table === 'quarantine' ? parsed : [])
          store.refused.add(`${cells[REFUSED_TOKEN]} ${hash('sha256', String(cells[RAW]), 'hex')}`)
        for (const row of table === 'events' ? parsed : []) {
          const home = Number(cellOf(row, 'log_partition'))
          const seqs = store.seqs.get(home) ?? new Set()
          store.seqs.set(home, seqs.add(Number(cellOf(row, 'log_seq'))))
        }
      }
      const torn = () => {
        const tokens = store.tokens.get(table) ?? []
        store.tokens.set(table, tokens)
        if (!tokens.includes(token) && !(table === 'events' && text.includes(BAD_ROW))) tokens.push(token)
      }
      const crash = () => {
        torn()
        throw new Unavailable('not done')
      }
      return host.call(`insert ${table} ${token}`, isTorn ? crash : effect, { twice: true, torn })
    },
    async query<Row>(_sql: string, params: Params = {}) {
      return host.call('query', () => {
        const rows = store.rows.get('events') ?? []
        if (params.erasureId !== undefined) {
          const its = (store.rows.get('erasures') ?? []).filter(({ cells }) => cells[ERASURE_ID] === params.erasureId)
          return [{ rows: its.length } as Row]
        }
        if (params.digest !== undefined) {
          return [{ rows: Number(store.refused.has(`${params.token} ${params.digest}`)) } as Row]
        }
        if (params.possible !== undefined) return namedIn(rows, params) as Row[]
        if (params.home !== undefined) return seqsOf(store, params) as Row[]
        if (params.moved !== undefined) return [{ rows: countMoved(rows, params) } as Row]
        if (params.id === undefined) return page(rows, params) as Row[]
        const found = rows.find(
          (row) => isOf(row, params) && cellOf(row, 'request_id') === params.id && cellOf(row, 'ts') === params.ts,
        )
        return found === undefined ? [] : [{ ...found.cells } as Row]
      })
    },
    async command(sql) {
      throw new RangeError(`not a command of the product: ${sql}`)
    },
    async patch(table, sql, params = {}) {
      if (sql.startsWith('UPDATE events ')) {
        const changed = params.possible === undefined ? movedRow : unnamedRow
        const move = () => {
          const rows = store.rows.get('events') ?? []
          store.rows.set(
            'events',
            rows.map((row) => (isOf(row, params) ? changed(row, params) : row)),
          )
        }
        return host.call('update events', move, { twice: true })
      }
      if (sql.startsWith('UPDATE quarantine ')) {
        const changed = params.possible === undefined ? movedRefused : unnamedRefused
        const move = () => {
          const rows = store.rows.get('quarantine') ?? []
          store.rows.set(
            'quarantine',
            rows.map((row) => changed(row, params)),
          )
        }
        return host.call('update quarantine', move, { twice: true })
      }
      const deletes = DELETES[table]
      if (deletes === undefined || !sql.startsWith(`DELETE FROM ${table} `)) {
        throw new RangeError(`not a patch of the product: ${sql}`)
      }
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
