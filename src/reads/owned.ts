// Whose an event is by now: a split may have moved it since it was decided, and an erasure taken it.

import type { StoredEvent } from '../domain/event.ts'
import { homePartition } from '../domain/ids.ts'
import type { Kv } from '../kv/kv.ts'
import { Unavailable } from '../lib/failures.ts'
import { readTombstone } from '../records/erasures.ts'
import { partitionScope, visitorKey } from '../records/partitions.ts'
import { readMoved } from '../records/splits.ts'

export interface OwnedNeeds {
  readonly kv: Pick<Kv, 'get' | 'position'>
  readonly partitions: number
}

/**
 * The event as its owner has it: the log keeps what was decided, and ClickHouse may not have changed it yet. null: it is of somebody
 * who was erased. Throws Unavailable when that cannot be told.
 */
export type Owned = (event: StoredEvent) => Promise<StoredEvent | null>

export function openOwned({ kv, partitions }: OwnedNeeds): Owned {
  const tombstoneOf = ({ workspace, env }: StoredEvent, visitorId: string) =>
    readTombstone(kv, homePartition(visitorId, partitions), workspace, env, visitorId)

  /**
   * Whether nobody can tell yet if a split came before the erasure of whose visit it was: the owner of the partition decides it. Behind
   * the split the new visitor has a record, without it a tombstone.
   */
  async function isUnsettled(event: StoredEvent, to: string): Promise<boolean> {
    const holder = event.identity.holder ?? event.visitorId
    if (holder === to || (await tombstoneOf(event, holder)) === null) return false
    // In this order: the checkpoint that has the tombstone has every split before it.
    if ((await tombstoneOf(event, to)) !== null) return false
    const [record] = await kv.get(partitionScope(homePartition(to, partitions)), [
      visitorKey(event.workspace, event.env, to),
    ])
    return !record
  }

  /** null: nobody's any more. */
  async function asMoved(event: StoredEvent): Promise<StoredEvent | null> {
    const [moved] = await readMoved(kv, event.workspace, event.env, [event.requestId])
    if (moved == null) return event
    if (moved.isErased === true) return null
    if (await isUnsettled(event, moved.to)) throw new Unavailable('whether this event was erased is being decided')
    const { holder: _, recorded: __, ...identity } = event.identity
    const { to, firstSeenAt, visit } = moved
    const ageSeconds = Math.max(0, Math.floor((event.timestamp - firstSeenAt) / 1000))
    const visitor = { ...event.visitor, totalVisits: visit, ageSeconds }
    return { ...event, visitorId: to, identity, visitor, firstSeenAt, lastSeenAt: event.timestamp }
  }

  return async (decided) => {
    const event = await asMoved(decided)
    if (event === null) return null
    const { visitorId, identity } = event
    // An alias may be erased before whom it was merged into.
    const names = identity.holder === undefined ? [visitorId] : [visitorId, identity.holder]
    for (const id of names) if ((await tombstoneOf(event, id)) !== null) return null
    const { possible } = event
    if (possible === null || (await tombstoneOf(event, possible.visitorId)) === null) return event
    return { ...event, possible: null }
  }
}
