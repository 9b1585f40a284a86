// What the shards of a process have counted: of those that answer in time, and of those that are gone as far as they told it.

import type { Clock } from '../lib/clock.ts'
import type { Metrics } from '../lib/metrics.ts'
import { whenAvailable } from '../lib/poll.ts'
import { addUp, atZero, countedBy, type Samples } from '../lib/prometheus.ts'
import { within } from '../lib/within.ts'

export interface Figures {
  /** Of every shard. One that does not answer soon counts with what it told last. */
  samples(): Promise<Samples[]>
  /** The thread of this shard is gone; what the next one counts comes on top. */
  lost(index: number): void
}

/** Whoever scrapes gives up after ten seconds by default. */
const ANSWER_MS_MAX = 2_000

export interface FiguresNeeds {
  readonly count: number
  readonly clock: Pick<Clock, 'sleep'>
  /** Rejects with Unavailable when the thread is lost meanwhile. */
  readonly ask: (index: number) => Promise<Samples>
  /** Told of each loss. */
  readonly restarts: Metrics['shardRestarts']
}

interface Known {
  /** What the thread there is told last. */
  told: Samples
  /** What its predecessors counted. */
  before: Promise<Samples>
  losses: number
}

export function openFigures({ count, clock, ask, restarts }: FiguresNeeds): Figures {
  const shards = Array.from({ length: count }, (): Known => ({ told: [], before: Promise.resolve([]), losses: 0 }))

  atZero(restarts, { shard: shards.map((_, index) => index) })

  async function samplesOf(shard: Known, index: number): Promise<Samples[]> {
    const { losses } = shard
    const told = await within(clock, ANSWER_MS_MAX, whenAvailable(() => ask(index))())
    if (told !== null && losses === shard.losses) shard.told = told
    return [await shard.before, told === null ? countedBy(shard.told) : shard.told]
  }

  return {
    samples: async () => (await Promise.all(shards.map(samplesOf))).flat(),
    lost(index) {
      const shard = shards[index]
      if (shard === undefined) return
      restarts.inc({ shard: index })
      const told = countedBy(shard.told)
      const { before } = shard
      Object.assign(shard, {
        told: [],
        before: before.then((known) => addUp([known, told]).getMetricsAsJSON()),
        losses: shard.losses + 1,
      } satisfies Known)
    },
  }
}
