// Lists as tables that conditions in SQL can look into: one snapshot of hashes per list and version, loaded when a backtest
// first asks for it and forgotten by ClickHouse within the hour.

import type { ClickHouse } from '../clickhouse/clickhouse.ts'
import type { Env } from '../domain/event.ts'
import { makeObjectId, type RandomBytes } from '../domain/ids.ts'
import { type Cidr, parseCidr } from '../domain/ip.ts'
import type { Clock } from '../lib/clock.ts'
import type { ListFacts, ListSource } from '../records/list-source.ts'
import { SNAPSHOT_KIND, SNAPSHOT_LONG_PREFIX_MIN, SNAPSHOTS_TABLE, type SqlListTable } from '../rules/to-sql-lists.ts'
import type { StoreValues } from '../rules/to-sql-params.ts'

export interface ListSnapshotsNeeds {
  readonly clickhouse: Pick<ClickHouse, 'insert'>
  readonly lists: ListSource
  readonly clock: Pick<Clock, 'monotonic'>
  readonly random: RandomBytes
}

export interface ListSnapshots {
  /**
   * The list of this name as it is now, loaded; null when there is none. A load goes on when its caller no longer waits, so
   * that the next one finds it. Throws Unavailable.
   */
  table(workspace: string, env: Env, name: string): Promise<SqlListTable | null>
  /** For literals of one query: `store` while it is written, `load` before it is asked. Throws Unavailable. */
  literals(): { readonly store: StoreValues; load(): Promise<void> }
}

/** Rows live an hour from their own insert; none may vanish under a query that runs, or while others are still loaded. */
const REUSE_MS_MAX = 30 * 60_000
const SNAPSHOTS_MAX = 500
const ROWS_PER_INSERT = 50_000
const COLUMNS = ['snapshot_id', 'kind', 'entry']
const ADDRESS_BITS = { v4: 32, v6: 128 }
/** IPv6 networks are looked up by this many bits. */
const UPPER_BITS = 64

interface Held {
  readonly version: number
  readonly loadedAt: number
  readonly table: Promise<SqlListTable>
}

export function openListSnapshots({ clickhouse, lists, clock, random }: ListSnapshotsNeeds): ListSnapshots {
  const held = new Map<string, Held>()

  async function load(workspace: string, env: Env, { id, type }: ListFacts): Promise<SqlListTable> {
    const snapshotId = makeObjectId('snp', random)
    let lines: string[] = []
    let inserts = 0
    const flush = async () => {
      if (lines.length === 0) return
      const body = Buffer.from(lines.join(''))
      lines = []
      inserts += 1
      await clickhouse.insert(SNAPSHOTS_TABLE, COLUMNS, body, { token: `${snapshotId}/${inserts}` })
    }
    const write = async (kind: number, entry: string) => {
      lines.push(lineOf(snapshotId, kind, entry))
      if (lines.length >= ROWS_PER_INSERT) await flush()
    }

    const networks: Cidr[] = []
    for await (const page of lists.values(workspace, env, id)) {
      for (const value of page) {
        if (type !== 'ip') await write(SNAPSHOT_KIND.text, value)
        else {
          const cidr = parseCidr(value)
          if (cidr === null) continue
          const address = value.split('/', 1)[0] as string
          if (cidr.bits === (cidr.v6 ? ADDRESS_BITS.v6 : ADDRESS_BITS.v4)) await write(SNAPSHOT_KIND.address, address)
          else networks.push(cidr)
        }
      }
    }

    const long = networks.filter(({ v6, bits }) => v6 && bits >= SNAPSHOT_LONG_PREFIX_MIN)
    for (const { bytes, bits } of long) await write(bits, addressOf(cleared(bytes, bits)))
    const { v4From, v4End, v6From, v6End } = SNAPSHOT_KIND
    const v4 = await writeBounds(
      networks.filter(({ v6 }) => !v6),
      ADDRESS_BITS.v4,
      v4From,
      v4End,
    )
    const short = networks.filter(({ v6, bits }) => v6 && bits < SNAPSHOT_LONG_PREFIX_MIN)
    const v6 = await writeBounds(short, UPPER_BITS, v6From, v6End)
    await flush()
    return { snapshotId, type, v4, v6, longPrefixes: [...new Set(long.map(({ bits }) => bits))].sort((a, b) => a - b) }

    async function writeBounds(of: readonly Cidr[], space: number, fromKind: number, endKind: number) {
      if (of.length === 0) return null
      const merged = merge(of, space)
      for (const { from, end } of merged) {
        await write(fromKind, String(from))
        // What ends with the last address there is has no end to be found.
        if (end < 1n << 64n) await write(endKind, String(end))
      }
      return { fromZero: merged[0]?.from === 0n }
    }
  }

  return {
    async table(workspace, env, name) {
      const facts = await lists.find(workspace, env, name)
      if (facts === null) return null
      const key = `${workspace}/${env}/${facts.id}`
      const known = held.get(key)
      const now = clock.monotonic()
      if (known !== undefined && known.version === facts.version && now - known.loadedAt < REUSE_MS_MAX)
        return known.table
      const table = load(workspace, env, facts)
      const fresh = { version: facts.version, loadedAt: now, table }
      table.catch(() => {
        if (held.get(key) === fresh) held.delete(key)
      })
      held.delete(key)
      held.set(key, fresh)
      if (held.size > SNAPSHOTS_MAX) held.delete(held.keys().next().value as string)
      return table
    },

    literals() {
      const lines: string[] = []
      return {
        store(type, values) {
          const snapshotId = makeObjectId('snp', random)
          const kind = type === 'String' ? SNAPSHOT_KIND.text : SNAPSHOT_KIND.number
          for (const value of values) lines.push(lineOf(snapshotId, kind, value))
          return snapshotId
        },
        async load() {
          if (lines.length === 0) return
          const token = makeObjectId('snp', random)
          await clickhouse.insert(SNAPSHOTS_TABLE, COLUMNS, Buffer.from(lines.join('')), { token })
        },
      }
    },
  }
}

const lineOf = (snapshotId: string, kind: number, entry: string): string =>
  `${JSON.stringify([snapshotId, kind, entry])}\n`

interface Bounds {
  readonly from: bigint
  /** The first one behind. */
  readonly end: bigint
}

/** The networks by the first `space` bits of their addresses, sorted, those that overlap or touch made one. */
function merge(networks: readonly Cidr[], space: number): Bounds[] {
  const all = networks.map(({ bytes, bits }): Bounds => {
    const from = numberOf(cleared(bytes, bits).slice(0, space / 8))
    return { from, end: from + (1n << BigInt(space - bits)) }
  })
  all.sort((a, b) => (a.from < b.from ? -1 : a.from > b.from ? 1 : 0))
  const merged: Bounds[] = []
  for (const one of all) {
    const last = merged.at(-1)
    if (last === undefined || one.from > last.end) merged.push(one)
    else if (one.end > last.end) merged[merged.length - 1] = { from: last.from, end: one.end }
  }
  return merged
}

const numberOf = (bytes: readonly number[]): bigint => bytes.reduce((sum, byte) => (sum << 8n) | BigInt(byte), 0n)

function cleared(bytes: readonly number[], bits: number): number[] {
  return bytes.map((byte, i) => byte & (0xff << Math.min(8, Math.max(0, 8 * (i + 1) - bits))))
}

/** An IPv6 address in full. */
const addressOf = (bytes: readonly number[]): string =>
  Array.from({ length: 8 }, (_, i) =>
    (((bytes[2 * i] as number) << 8) | (bytes[2 * i + 1] as number)).toString(16),
  ).join(':')
