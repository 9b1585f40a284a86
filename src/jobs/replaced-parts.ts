// Knows what ClickHouse keeps of rows that were changed or deleted: patches and masks that are still to be applied, and the parts and
// patches that were replaced when they were, which stay on the disk for minutes.

import type { ClickHouse } from '../clickhouse/clickhouse.ts'
import { EVENTS_TABLE } from '../events/row.ts'
import { QUARANTINE_TABLE } from '../sink/insert.ts'

export interface ReplacedPartsNeeds {
  readonly clickhouse: Pick<ClickHouse, 'command' | 'query'>
  /** Name of the ClickHouse cluster whose replicas hold the tables; empty: a single server. */
  readonly cluster: string
}

interface Part {
  readonly table: string
  readonly name: string
  readonly isActive: 0 | 1
  readonly isMasked: 0 | 1
}

const TABLES = [EVENTS_TABLE, QUARANTINE_TABLE]
const NAME = /^(.+)_(\d+)_(\d+)_\d+(?:_\d+)?$/

const isPatch = ({ name }: Pick<Part, 'name'>): boolean => name.startsWith('patch-')

/**
 * Rewrites the parts without what was deleted, and with what was changed; nothing happens where nothing was. Resolves with the names of
 * the parts and patches that were replaced.
 */
export async function applyPatches(needs: ReplacedPartsNeeds, signal: AbortSignal): Promise<string[]> {
  await awaitLoaded(needs)
  const applied = (await allParts(needs)).filter(isPatch)
  const apply = async (table: string, what: string) => {
    if (!signal.aborted)
      await needs.clickhouse.command(`ALTER TABLE ${table} APPLY ${what} SETTINGS mutations_sync = 2`)
  }
  for (const table of TABLES) {
    if (applied.some((part) => part.table === table)) await apply(table, 'PATCHES')
    const isMasked = (await allParts(needs)).some((part) => part.table === table && part.isActive && part.isMasked)
    if (isMasked) await apply(table, 'DELETED MASK')
  }
  const replaced = (await allParts(needs)).filter((part) => !part.isActive && !isPatch(part))
  return [...applied, ...replaced].map(({ name }) => name)
}

/** Whether one of the parts, or a patch that one of the patches was merged into, is on a disk. Unavailable while a replica is away. */
export async function areLeft(needs: ReplacedPartsNeeds, names: readonly string[]): Promise<boolean> {
  await awaitLoaded(needs)
  const known = new Set(names)
  const newest = new Map<string, number>()
  for (const name of names) {
    const [, partition = '', , last = '0'] = NAME.exec(name) ?? []
    newest.set(partition, Math.max(newest.get(partition) ?? 0, Number(last)))
  }
  return (await allParts(needs)).some((part) => {
    const [, partition = '', first = '0'] = NAME.exec(part.name) ?? []
    return known.has(part.name) || (isPatch(part) && Number(first) <= (newest.get(partition) ?? -1))
  })
}

/** A server that has just started learns of replaced parts last. */
async function awaitLoaded({ clickhouse, cluster }: ReplacedPartsNeeds): Promise<void> {
  const everywhere = cluster === '' ? '' : ` ON CLUSTER '${cluster}'`
  for (const table of TABLES) await clickhouse.command(`SYSTEM WAIT LOADING PARTS${everywhere} ${table}`)
}

async function allParts({ clickhouse, cluster }: ReplacedPartsNeeds): Promise<Part[]> {
  const parts = cluster === '' ? 'system.parts' : `clusterAllReplicas('${cluster}', system.parts)`
  const [row] = await clickhouse.query<{ parts: [string, string, 0 | 1, 0 | 1][] }>(
    `SELECT groupUniqArray((table, name, toUInt8(active), toUInt8(has_lightweight_delete))) AS parts FROM ${parts}
     WHERE database = currentDatabase() AND table IN {tables:Array(String)}`,
    { tables: TABLES },
  )
  return (row?.parts ?? []).map(([table, name, isActive, isMasked]) => ({ table, name, isActive, isMasked }))
}
