// A row cut into pieces: neighbouring columns that the same thing decides (a device, a network, a page, an outcome) are one text,
// made by the encoder of every other row and used for many.

import type { StoredEvent } from '../domain/event.ts'
import { COLUMNS, toRow } from '../events/row.ts'

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
export const EVENT_COLUMNS = [
  'ts',
  'request_id',
  'visitor_id',
  'visitor_found',
  'first_seen_at',
  'last_seen_at',
  'confidence',
  'ip',
  'linked_id',
  'email',
  'label',
  'total_visits',
  'linked_accounts',
  'anonymity_set',
  'log_partition',
] as const satisfies readonly Column[]
const SOURCES = [OF_DEVICE, OF_HOME, OF_NETWORK, OF_PAGE, OF_OUTCOME, EVENT_COLUMNS]
/** What decides a piece, as a place in SOURCES. */
export const DEVICE = 0
export const HOME = 1
export const NETWORK = 2
export const PAGE = 3
export const OUTCOME = 4
export const EVENT = 5
export const CONSTANT = 6
const sourceOf = (column: Column): number => {
  const at = SOURCES.findIndex((columns) => (columns as readonly string[]).includes(column))
  return at < 0 ? CONSTANT : at
}

/** Neighbouring columns of one source are one piece. */
export interface Run {
  readonly source: number
  readonly columns: readonly Column[]
}
export const RUNS: readonly Run[] = COLUMNS.reduce<{ source: number; columns: Column[] }[]>((runs, column) => {
  const source = sourceOf(column)
  const last = runs.at(-1)
  if (last?.source === source) last.columns.push(column)
  else runs.push({ source, columns: [column] })
  return runs
}, [])
/** For each run of the event's own columns, their places in EVENT_COLUMNS. */
export const EVENT_PLACES = RUNS.map(({ source, columns }) =>
  source === EVENT ? columns.map((column) => (EVENT_COLUMNS as readonly Column[]).indexOf(column)) : [],
)

/** Bytes by the place of their run; none for runs of other sources. Each piece but the row's first begins with a comma. */
export type Pieces = readonly Uint8Array[]

const NOTHING = new Uint8Array(0)
const PLACES: ReadonlyMap<Column, number> = new Map(COLUMNS.map((column, at) => [column, at]))

/** The pieces of one source in an event's row. */
export function piecesOf(event: StoredEvent, source: number): Pieces {
  // A place of 0 in the log marks rows that are older than anything in it.
  const cells = JSON.parse(toRow(event, 0, 0)) as unknown[]
  return RUNS.map((run, at) => {
    if (run.source !== source) return NOTHING
    const texts = run.columns.map((column) => JSON.stringify(cells[PLACES.get(column) as number]))
    return Buffer.from(`${at === 0 ? '[' : ','}${texts.join(',')}`, 'latin1')
  })
}
