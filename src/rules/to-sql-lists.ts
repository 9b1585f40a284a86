// Membership in a list as SQL over its snapshot: hashes of the entries, and for networks sorted bounds that a binary search
// finds its place in.

import type { ListType } from '../domain/list.ts'
import { addressText } from './to-sql-address.ts'
import type { SqlParams } from './to-sql-params.ts'

/** What `kind` of a snapshot's row says about `h`; from SNAPSHOT_LONG_PREFIX_MIN on it is the length of a network's prefix. */
export const SNAPSHOT_KIND = {
  /** Hash of the entry's text. */
  text: 0,
  /** Hash of an address as the engine writes it. */
  address: 1,
  /** The least IPv4 address of a network, as a number; networks are merged and do not touch. */
  v4From: 2,
  /** The least one behind it. */
  v4End: 3,
  /** The same for the upper 64 bits of IPv6 addresses. */
  v6From: 4,
  v6End: 5,
  /** The number itself. */
  number: 6,
} as const
/** Hashes of IPv6 networks, as the engine writes their least address, whose prefix does not fit the upper 64 bits. */
export const SNAPSHOT_LONG_PREFIX_MIN = 65

/** The snapshot of a list, and which kinds of rows it has. */
export interface SqlListTable {
  readonly snapshotId: string
  readonly type: ListType
  /** Networks; `fromZero`: one of them begins with the least address there is. */
  readonly v4: { readonly fromZero: boolean } | null
  readonly v6: { readonly fromZero: boolean } | null
  /** Lengths above 64, below 128. */
  readonly longPrefixes: readonly number[]
}

export const SNAPSHOTS_TABLE = 'list_snapshots'

/** Membership in a set of values that was too large for the text of a query; see `SqlParams.store`. */
export function storedSql(sql: string, type: 'String' | 'UInt64', snapshotId: string): string {
  const [what, kind] = type === 'String' ? [`cityHash64(${sql})`, SNAPSHOT_KIND.text] : [sql, SNAPSHOT_KIND.number]
  return `${what} IN (SELECT h FROM ${SNAPSHOTS_TABLE} WHERE snapshot_id = ${snapshotId} AND kind = ${kind})`
}

const rowsOf = (what: string, { snapshotId }: SqlListTable, kind: number, params: SqlParams): string =>
  `(SELECT ${what} FROM ${SNAPSHOTS_TABLE} WHERE snapshot_id = ${params.add('String', snapshotId)} AND kind = ${kind})`

const hashed = (hash: string, table: SqlListTable, kind: number, params: SqlParams): string =>
  `${hash} IN ${rowsOf('h', table, kind, params)}`

/** `hash`: the column with the hash of the text, where there is one. */
export function textListSql(sql: string, hash: string | null, table: SqlListTable, params: SqlParams): string {
  if (table.type !== 'ip') return hashed(hash ?? `cityHash64(${sql})`, table, SNAPSHOT_KIND.text, params)
  // Texts are compared: only the canonical spelling of an address is one, and what is none at all becomes another.
  const address = `toIPv6OrDefault(${sql})`
  const inList = addressListSql(address, `cityHash64(IPv6NumToString(${address}))`, table, params)
  return `(${sql} = ${addressText(address)} AND ${inList})`
}

/** `sql` is of the type IPv6. */
export function addressListSql(sql: string, hash: string, table: SqlListTable, params: SqlParams): string {
  const number = `toUInt128(${sql})`
  const upper = `toUInt64(bitShiftRight(${number}, 64))`
  const isV4 = `bitShiftRight(${number}, 32) = 65535`
  const v4 = `toUInt64(bitAnd(${number}, 4294967295))`
  const { v4From, v4End, v6From, v6End } = SNAPSHOT_KIND
  const terms = [hashed(hash, table, SNAPSHOT_KIND.address, params)]
  if (table.v4) terms.push(`(${isV4} AND ${within(v4, table.v4.fromZero, v4From, v4End)})`)
  if (table.v6) terms.push(`(NOT (${isV4}) AND ${within(upper, table.v6.fromZero, v6From, v6End)})`)
  for (const bits of table.longPrefixes) {
    const least = `cityHash64(IPv6NumToString(tupleElement(IPv6CIDRToRange(${sql}, ${bits}), 1)))`
    terms.push(hashed(least, table, bits, params))
  }
  return terms.length === 1 ? (terms[0] as string) : `(${terms.join(' OR ')})`

  /** Inside a network when the last bound at or below the position is where one begins: 0 is put before both kinds. */
  function within(position: string, fromZero: boolean, fromKind: number, endKind: number): string {
    const bounds = (kind: number) => rowsOf('arrayConcat([toUInt64(0)], groupArray(h))', table, kind, params)
    const from = `roundDown(${position}, ${bounds(fromKind)})`
    const end = `roundDown(${position}, ${bounds(endKind)})`
    return fromZero ? `(${from} > ${end} OR ${end} = 0)` : `${from} > ${end}`
  }
}
