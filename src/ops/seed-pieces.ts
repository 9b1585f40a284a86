// Made-up rows on their way: columns that the same thing decides (a device, a network, a page, an outcome) are one piece, made by
// the encoder of every other row and shared by many.

import { type NativeColumn, openTexts, type Texts } from '../clickhouse/native.ts'
import type { StoredEvent } from '../domain/event.ts'
import { type Cell, COLUMNS, toCells } from '../events/row.ts'

type Column = (typeof COLUMNS)[number]

/** Columns by what decides them, whether a row has them yet or not. All others are the same in every row. */
const OF_DEVICE: readonly string[] = [
  'platform',
  'os_version',
  'browser',
  'browser_version',
  'gpu',
  'device_type',
  'device_model',
  'app_version',
  'screen_w',
  'screen_h',
]
const OF_HOME: readonly string[] = ['language', 'timezone']
const OF_NETWORK: readonly string[] = [
  'city',
  'region',
  'country',
  'has_location',
  'lat',
  'lng',
  'ip_timezone',
  'asn',
  'asn_name',
  'datacenter',
  'ip_blocklisted',
  'blocklists',
]
const OF_PAGE: readonly string[] = ['tag', 'url', 'url_host', 'url_path']
const OF_OUTCOME: readonly string[] = [
  'sig_bot',
  'sig_vpn',
  'sig_incognito',
  'sig_tampered',
  'sig_emulator',
  'sig_proxy',
  'sig_tor',
  'sig_rooted_device',
  'sig_cloned_app',
  'vpn_provider',
  'bot_type',
  'score_abuse',
  'score_ato',
  'score_bot',
  'score_suspect',
  'verdict',
  'challenge_type',
  'rule_id',
  'rule_name',
  'rule_priority',
  'matched_rules',
  'identity_method',
  'candidates',
  'detail',
]
const NUMBERS = [
  'ts',
  'first_seen_at',
  'last_seen_at',
  'confidence',
  'total_visits',
  'linked_accounts',
  'anonymity_set',
  'log_partition',
] as const satisfies readonly Column[]
const TEXTS = ['request_id', 'visitor_id', 'ip', 'linked_id', 'email'] as const satisfies readonly Column[]
const SHARED: readonly (readonly string[])[] = [
  OF_DEVICE,
  OF_HOME,
  OF_NETWORK,
  OF_PAGE,
  OF_OUTCOME,
  ['visitor_found'],
  ['label'],
]
const VARYING: readonly string[] = [...SHARED.flat(), ...NUMBERS, ...TEXTS]
const SOURCES = [...SHARED, COLUMNS.filter((column) => !VARYING.includes(column))]
/** What decides a piece, as a place in SOURCES. */
export const DEVICE = 0
export const HOME = 1
export const NETWORK = 2
export const PAGE = 3
export const OUTCOME = 4
export const FOUND = 5
export const LABEL = 6
export const CONSTANT = 7

/** Cells of one source's columns, the same for many rows. */
export interface Piece {
  readonly source: number
  readonly cells: readonly Cell[]
  /** Those it was put into last, and its place among their pieces. */
  rows: Rows | null
  place: number
}

/** The piece of one source in an event's row. */
export function pieceOf(event: StoredEvent, source: number): Piece {
  // A place of 0 in the log marks rows that are older than anything in it.
  const cells = toCells(event, 0, 0)
  const columns = SOURCES[source] ?? []
  return {
    source,
    cells: columns.map((column) => cells[(COLUMNS as readonly string[]).indexOf(column)] as Cell),
    rows: null,
    place: 0,
  }
}

export const ROWS_MAX = 100_000

/** Up to ROWS_MAX rows that are inserted together, off the heap: what lives there for so long is copied again and again. */
export interface Rows {
  size: number
  /** By source, the pieces there are, and for each row the place of its own. */
  readonly pieces: readonly Piece[][]
  readonly places: readonly Uint32Array[]
  readonly numbers: Readonly<Record<(typeof NUMBERS)[number], Float64Array>>
  readonly texts: Readonly<Record<(typeof TEXTS)[number], Texts>>
}

const each = <Name extends string, T>(names: readonly Name[], make: () => T) =>
  Object.fromEntries(names.map((name) => [name, make()])) as Record<Name, T>

export const newRows = (): Rows => ({
  size: 0,
  pieces: SOURCES.map(() => []),
  places: SOURCES.map(() => new Uint32Array(ROWS_MAX)),
  numbers: each(NUMBERS, () => new Float64Array(ROWS_MAX)),
  texts: each(TEXTS, openTexts),
})

/** Puts a piece into the row that is being made. */
export function put(rows: Rows, piece: Piece): void {
  const { source } = piece
  if (piece.rows !== rows) {
    const pieces = rows.pieces[source] as Piece[]
    piece.rows = rows
    piece.place = pieces.length
    pieces.push(piece)
  }
  ;(rows.places[source] as Uint32Array)[rows.size] = piece.place
}

/** All of them as columns; `types` by name, as the engine has them. */
export const columnsOf = (rows: Rows, types: ReadonlyMap<string, string>): NativeColumn[] =>
  COLUMNS.map((name) => {
    const type = types.get(name) ?? ''
    // Addresses among them: the engine reads them faster than we could.
    if (isOneOf(TEXTS, name)) return { name, type: 'String', texts: rows.texts[name] }
    if (isOneOf(NUMBERS, name)) return { name, type, values: rows.numbers[name].subarray(0, rows.size), at: null }
    const source = SOURCES.findIndex((columns) => columns.includes(name))
    const at = SOURCES[source]?.indexOf(name) ?? 0
    const values = (rows.pieces[source] ?? []).map(({ cells }) => cells[at] as Cell)
    return { name, type, values, at: rows.places[source] ?? null }
  })

const isOneOf = <Name extends string>(names: readonly Name[], name: string): name is Name =>
  (names as readonly string[]).includes(name)
