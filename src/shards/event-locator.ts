// What a process knows of fresh events, from its shards, and whom it asks about others: nobody when it is alone.

import { openAsk } from '../bus/ask.ts'
import type { Bus } from '../bus/bus.ts'
import type { Kv } from '../kv/kv.ts'
import type { Clock } from '../lib/clock.ts'
import type { Lifetime } from '../lib/lifetime.ts'
import type { Logger } from '../lib/logger.ts'
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
  readonly isCluster: boolean
  readonly partitions: number
  readonly bus: Bus
  readonly kv: Kv
  readonly clock: Clock
  readonly lifetime: Lifetime
  readonly logger: Logger
}

const NOTHING = { place: null, pending: false, original: null, covers: [] }

export function openProcessLocator(needs: LocatorNeeds): EventLocator {
  const { shards, processId, partitions, bus, kv, clock, lifetime, logger } = needs
  const glimpse = async (scope: string, requestId: string): Promise<LocatorAnswer> => ({
    from: processId,
    ...((await shards?.glimpse(scope, requestId)) ?? NOTHING),
  })
  if (!needs.isCluster) {
    return async (scope, requestId) => combineAnswers(requestId, [await glimpse(scope, requestId)], [], partitions)
  }
  const onError = (error: unknown) => logger.warn({ error }, 'a question to other processes failed')
  const ask = openAsk({ bus, clock, id: processId, onError })
  lifetime.onClose(() => ask.close())
  serveEventLocator(ask, glimpse)
  return openEventLocator(ask, kv, partitions)
}
