// Which shards listen from the start, and how one comes to listen for the first time, whatever becomes of its thread meanwhile.

import type { Config } from '../config.ts'
import type { Clock } from '../lib/clock.ts'
import type { Line } from '../lib/line.ts'
import type { Thread } from './thread.ts'

export interface ListeningShard {
  /** Resolves when the thread serves; another promise after it was lost. */
  readonly ready: Promise<Line>
  readonly thread: Thread | null
  readonly listens: readonly [host: string, port: number, itself: boolean] | null
}

const LOOK_MS = 200
/** A shard that is lost before it first listens is replaced so many times before the process gives up. */
const LOST_MAX = 5

/**
 * The shards that listen from the start, where several threads can listen on the port: as many others in place of those that decide, as
 * far as there are any (D228, D240).
 */
export function listenersAtStart({
  roles,
  shards,
  shardsMin,
}: Pick<Config, 'roles' | 'shards' | 'shardsMin'>): readonly number[] {
  const areApart = roles.has('engine') && roles.has('ingress') && shards > shardsMin
  const first = areApart ? shardsMin : 0
  return Array.from({ length: Math.min(shardsMin, shards - first) }, (_, n) => first + n)
}

/** Resolves when the shard listens, also where its thread was lost before it did and another one took its place. */
export async function listening(
  shard: ListeningShard,
  isClosed: () => boolean,
  clock: Pick<Clock, 'sleep'>,
): Promise<void> {
  for (let lost = 0; ; lost++) {
    const starting = shard.ready
    try {
      await (await starting).call('listen', ...(shard.listens ?? []))
      return
    } catch (error) {
      if (shard.thread?.isGone() === false || isClosed() || lost === LOST_MAX) throw error
      // It is replaced as soon as it is known to be gone.
      while (shard.ready === starting && !isClosed()) await clock.sleep(LOOK_MS)
    }
  }
}
