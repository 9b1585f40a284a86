// What a process knows of fresh events, from its shards, and whom it asks about others: nobody when it is alone.

import type { Ask } from '../bus/ask.ts'
import type { Kv } from '../kv/kv.ts'
import {
  combineAnswers,
  type EventLocator,
  type LocatorAnswer,
  openEventLocator,
  serveEventLocator,
} from '../records/event-locator.ts'
import type { Shards } from './shards.ts'

export interface LocatorNeeds {
  readonly shards: Pick<Shards, 'glimpse'> | null
  readonly processId: string
  /** null: there are no others. */
  readonly ask: Ask | null
  readonly partitions: number
  readonly kv: Kv
}

const NOTHING = { place: null, pending: false, original: null, covers: [] }

export function openProcessLocator(needs: LocatorNeeds): EventLocator {
  const { shards, processId, ask, partitions, kv } = needs
  const glimpse = async (scope: string, requestId: string): Promise<LocatorAnswer> => ({
    from: processId,
    ...((await shards?.glimpse(scope, requestId)) ?? NOTHING),
  })
  if (ask === null) {
    return async (scope, requestId) => combineAnswers(requestId, [await glimpse(scope, requestId)], [], partitions)
  }
  serveEventLocator(ask, glimpse)
  return openEventLocator(ask, kv, partitions)
}
