// Where readers of a process find what ClickHouse and the kv do not have yet: with its own shards, and with other processes of a cluster.

import { type Ask, openAsk } from '../bus/ask.ts'
import type { Bus } from '../bus/bus.ts'
import type { Kv } from '../kv/kv.ts'
import type { Clock } from '../lib/clock.ts'
import type { Lifetime } from '../lib/lifetime.ts'
import type { Logger } from '../lib/logger.ts'
import type { Log } from '../log/log.ts'
import {
  combineAnswers,
  type EventLocator,
  type LocatorAnswer,
  openEventLocator,
  serveEventLocator,
} from '../records/event-locator.ts'
import { openFreshKv } from './fresh-kv.ts'
import { openFreshen } from './freshen.ts'
import type { Shards } from './shards.ts'

export interface FreshReadsNeeds {
  readonly shards: Pick<Shards, 'glimpse' | 'freshen'> | null
  readonly processId: string
  readonly isCluster: boolean
  readonly partitions: number
  readonly bus: Bus
  readonly log: Pick<Log, 'last'>
  readonly kv: Kv
  readonly clock: Clock
  readonly lifetime: Lifetime
  readonly logger: Logger
}

export interface FreshReads {
  readonly sight: EventLocator
  /** Whether the kv has, when it resolves, what was answered before of a partition. */
  readonly isFresh: (partition: number) => Promise<boolean>
  /** As `openFreshKv` makes it. */
  readonly freshKv: Kv
}

const NOTHING = { place: null, pending: false, original: null, covers: [] }

export function openFreshReads(needs: FreshReadsNeeds): FreshReads {
  const { processId, isCluster, bus, kv, clock, lifetime, logger } = needs
  const onError = (error: unknown) => logger.warn({ error }, 'another process could not be answered')
  const ask = isCluster ? openAsk({ bus, clock, id: processId, onError }) : null
  if (ask !== null) lifetime.onClose(() => ask.close())
  const freshen = openFreshen({ ...needs, ask })
  return {
    sight: openLocator(needs, ask),
    isFresh: (partition) => freshen(partition, 0),
    freshKv: openFreshKv(kv, freshen),
  }
}

/** `ask`: null where there are no other processes to be asked. */
function openLocator({ shards, processId, partitions, kv }: FreshReadsNeeds, ask: Ask | null): EventLocator {
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
