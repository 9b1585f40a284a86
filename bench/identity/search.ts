// What became of a record when a visit without a token was looked up: in which partition it is, under which keys, and whether it was
// read. Told by copies of the match index, for the diagnosis.

import { homePartition } from '../../src/domain/ids.ts'
import type { IndexEntry } from '../../src/engine/index-entry.ts'
import { openFrame } from '../../src/engine/open-frame.ts'
import type { Partition } from '../../src/engine/partition.ts'
import type { Visit } from '../../src/engine/visit.ts'
import type { Parsers } from '../../src/identity/parsers.ts'
import { shortlist } from '../../src/identity/shortlist.ts'
import { NO_FACTS } from '../../src/ipintel/addresses.ts'
import { allIndexKeysOf, unpackHeldVisitor } from '../../src/records/visitors.ts'

/** From the worst to the best. */
export const PLACES = ['in another partition', 'under no key', 'left its lists', 'listed, not read', 'read'] as const
export type Place = (typeof PLACES)[number]

export interface Search {
  /** What became of that visitor's record; good until the next visit. */
  placeOf(visitorId: string): Place
}

export interface Searches {
  /** Before the visit is decided. */
  begin(home: number, record: Uint8Array): Search
}

interface Copy {
  readonly index: Map<string, IndexEntry>
  /** All keys of each visitor. */
  readonly keys: Map<string, readonly string[]>
}

/** What a checkpoint writes, in the copy. */
function follow({ index, keys }: Copy, partition: Partition): void {
  const { dirty, gone } = partition.checkpoint()
  for (const [kind, id] of gone) if (kind === 'index') index.set(id, { total: 0, ids: [] })
  for (const { kind, id, value } of dirty) {
    if (kind === 'index') {
      const [total, ...ids] = value as [number, ...string[]]
      index.set(id, { total, ids })
    } else if (kind === 'visitor') {
      keys.set(id, allIndexKeysOf(unpackHeldVisitor(value as Uint8Array)))
    }
  }
}

function opened(record: Uint8Array, parsers: Parsers): Visit {
  const visit = openFrame({ seq: 0, bytes: record }, parsers, () => NO_FACTS)
  if (!('attributes' in visit)) throw new Error('no visit')
  return visit
}

export function createSearches(partitions: readonly Partition[], parsers: Parsers): Searches {
  const copies = partitions.map((): Copy => ({ index: new Map(), keys: new Map() }))
  return {
    begin(home, record) {
      const copy = copies[home] as Copy
      follow(copy, partitions[home] as Partition)
      const { keys, tenant } = opened(record, parsers)
      const entries = keys.map((key) => copy.index.get(tenant + key))
      const read = new Set(shortlist(keys, entries).ids)
      return {
        placeOf(visitorId) {
          if (homePartition(visitorId, partitions.length) !== home) return 'in another partition'
          if (read.has(visitorId)) return 'read'
          if (entries.some((entry) => entry?.ids.includes(visitorId))) return 'listed, not read'
          return copy.keys.get(tenant + visitorId)?.some((key) => keys.includes(key))
            ? 'left its lists'
            : 'under no key'
        },
      }
    },
  }
}
