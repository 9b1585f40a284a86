// Where readers of a process find what ClickHouse and the kv do not have yet: with its own shards, and with other processes of a cluster.

import { openAsk } from '../bus/ask.ts'
import type { Bus } from '../bus/bus.ts'
import type { Kv } from '../kv/kv.ts'
import type { Clock } from '../lib/clock.ts'
import type { Lifetime } from '../lib/lifetime.ts'
import type { Logger } from '../lib/logger.ts'
import type { EventLocator } from '../records/event-locator.ts'
import { openProcessLocator } from './event-locator.ts'
import { openFreshKv } from './fresh-kv.ts'
import { openFreshen } from './freshen.ts'
import type { Shards } from './shards.ts'

export interface FreshReadsNeeds {
  readonly shards: Pick<Shards, 'glimpse' | 'freshen'> | null
  readonly processId: string
  readonly isCluster: boolean
  readonly partitions: number
  readonly bus: Bus
  readonly kv: Kv
  readonly clock: Clock
  readonly lifetime: Lifetime
  readonly logger: Logger
}

export interface FreshReads {
  readonly sight: EventLocator
  /** As `openFreshKv` makes it. */
  readonly freshKv: Kv
}

export function openFreshReads(needs: FreshReadsNeeds): FreshReads {
  const { shards, processId, isCluster, bus, kv, clock, lifetime, logger } = needs
  const onError = (error: unknown) => logger.warn({ error }, 'another process could not be answered')
  const ask = isCluster ? openAsk({ bus, clock, id: processId, onError }) : null
  if (ask !== null) lifetime.onClose(() => ask.close())
  return {
    sight: openProcessLocator({ ...needs, ask }),
    freshKv: openFreshKv(kv, openFreshen({ shards, ask })),
  }
}
